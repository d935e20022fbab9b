// A fetch and a push on a GPU.
#include <bit>

#include "espalier/base/device_algorithms.hpp"
#include "espalier/base/launch.hpp"
#include "row_push.inl.hpp"

namespace espalier {

void concatenate(const Cuda& cuda, IdLists lists, std::int64_t* all) {
  for (const auto& list : lists) {
    copy_bytes_on_device(cuda, list.data(), all, list.size_bytes());
    all += list.size();
  }
}

template <class Id>
void find_sources(const Cuda& cuda, const OwnerGroups<Id, Cuda>& groups, std::int64_t others,
                  std::int64_t first_row, std::int64_t* source) {
  const auto* const order = groups.order.data();
  const auto* const ids = groups.ids.data();
  for_each(cuda, "find_sources", groups.size(),
           [=] __device__(std::int64_t j) { source[order[j]] = j < others ? j : ~(ids[j] - first_row); });
}

void repeat(const Cuda& cuda, const std::vector<std::int64_t>& counts, std::span<const std::int64_t> values,
            std::int64_t* all) {
  for (std::size_t m = 0; m < counts.size(); ++m) {
    const auto value = values[m];
    for_each(cuda, "repeat", counts[m], [=] __device__(std::int64_t k) { all[k] = value; });
    all += counts[m];
  }
}

void take(const Cuda& cuda, const std::int64_t* from, const DeviceArray<std::int64_t>& order,
          std::int64_t* to) {
  const auto* const places = order.data();
  for_each(cuda, "take", std::ssize(order), [=] __device__(std::int64_t k) { to[k] = from[places[k]]; });
}

template <class Id>
void count_changed(const Cuda& cuda, const Id* asked, std::int64_t count, std::int64_t first,
                   const DeviceArray<std::int32_t>& changed, std::int32_t version,
                   DeviceArray<std::int64_t>& before) {
  DeviceArray<std::int64_t> counted(count);
  auto* const has = counted.data();
  const auto* const since = changed.data();
  for_each(cuda, "count_changed", count,
           [=] __device__(std::int64_t k) { has[k] = since[asked[k] - first] > version; });
  before.resize(count + 1);
  exclusive_sum(cuda, has, before.data(), count);
}

template <class Id>
void take_changed(const Cuda& cuda, const Id* asked, std::int64_t count, const std::int64_t* before,
                  Id* numbers, Id* rows) {
  for_each(cuda, "take_changed", count, [=] __device__(std::int64_t k) {
    const auto at = before[k] - before[0];
    if (before[k + 1] == before[k]) return;
    numbers[at] = static_cast<Id>(k);
    rows[at] = asked[k];
  });
}

template <class Id>
void put_rows(const Cuda& cuda, ConstMatrixView<float, Cuda> from, const Id* places,
              MatrixView<float, Cuda> to) {
  const auto columns = from.columns;
  for_each(cuda, "put_rows", from.rows * columns, [=] __device__(std::int64_t thread) {
    const auto k = thread / columns, j = thread % columns;
    to(static_cast<std::int64_t>(places[k]), j) = from(k, j);
  });
}

void mark_changed(const Cuda& cuda, const DeviceArray<std::int64_t>& places, std::int32_t version,
                  DeviceArray<std::int32_t>& changed) {
  const auto* const place = places.data();
  auto* const since = changed.data();
  for_each(cuda, "mark_changed", std::ssize(places),
           [=] __device__(std::int64_t k) { since[place[k]] = version; });
}

// A stable sort by minibatch, then one by row; then the first of each row's is found.
template <class Id>
void order_pushed(const Cuda& cuda, const PushedRows<Id, Cuda>& pushed, std::int64_t first_row,
                  std::int64_t rows, PushOrder<Cuda>& result) {
  constexpr int kBits = 64;
  const auto count = pushed.size();
  DeviceArray<std::uint64_t> keys(count), sorted_keys(count);
  DeviceArray<std::int64_t> places(count), by_batch(count), order(count);
  auto *const key = keys.data(), *const sorted = sorted_keys.data();
  auto *const place = places.data(), *const of_batch = by_batch.data(), *const ordered = order.data();
  const auto* const ids = pushed.ids.data();
  const auto* const batches = pushed.batches.data();
  for_each(cuda, "key_by_batch", count, [=] __device__(std::int64_t k) {
    key[k] = static_cast<std::uint64_t>(batches[k]);
    place[k] = k;
  });
  sort_pairs(cuda, key, sorted, place, of_batch, count, kBits);
  for_each(cuda, "key_by_row", count, [=] __device__(std::int64_t k) {
    key[k] = static_cast<std::uint64_t>(ids[of_batch[k]] - first_row);
  });
  sort_pairs(cuda, key, sorted, of_batch, ordered, count, std::bit_width(static_cast<std::uint64_t>(rows)));
  DeviceArray<std::int64_t> begin_of_row(count), before(count + 1);
  auto *const begins_row = begin_of_row.data(), *const number = before.data();
  for_each(cuda, "find_rows", count,
           [=] __device__(std::int64_t k) { begins_row[k] = k == 0 || sorted[k] != sorted[k - 1]; });
  exclusive_sum(cuda, begins_row, number, count);
  const std::int64_t end = count;
  const auto changed = read_at(cuda, number, {&end, 1})[0];
  result.rows.resize(changed);
  result.begins.resize(changed + 1);
  auto *const row_of = result.rows.data(), *const begins = result.begins.data();
  for_each(cuda, "number_rows", count + 1, [=] __device__(std::int64_t k) {
    if (k == count) {
      begins[changed] = count;
    } else if (begins_row[k] != 0) {
      row_of[number[k]] = static_cast<std::int64_t>(sorted[k]);
      begins[number[k]] = k;
    }
  });
  result.order = std::move(order);
}

// A thread for each number of each row.
void place_rows(const Cuda& cuda, const PushOrder<Cuda>& of, ConstMatrixView<float, Cuda> pushed, Push push,
                MatrixView<float, Cuda> block) {
  const auto columns = block.columns;
  const auto *const rows = of.rows.data(), *const begins = of.begins.data(), *const order = of.order.data();
  for_each(cuda, "place_rows", std::ssize(of.rows) * columns, [=] __device__(std::int64_t thread) {
    const auto row = thread / columns, j = thread % columns;
    float& to = block(rows[row], j);
    float value = to;
    for (auto k = begins[row]; k < begins[row + 1]; ++k)
      value = push == Push::kAdd ? value + pushed(order[k], j) : pushed(order[k], j);
    to = value;
  });
}

template void put_rows(const Cuda&, ConstMatrixView<float, Cuda>, const std::int32_t*,
                       MatrixView<float, Cuda>);
template void order_pushed(const Cuda&, const PushedRows<std::int32_t, Cuda>&, std::int64_t, std::int64_t,
                           PushOrder<Cuda>&);
template void put_rows(const Cuda&, ConstMatrixView<float, Cuda>, const std::int64_t*,
                       MatrixView<float, Cuda>);
template void order_pushed(const Cuda&, const PushedRows<std::int64_t, Cuda>&, std::int64_t, std::int64_t,
                           PushOrder<Cuda>&);
template class RowStoreOn<Cuda>;

}  // namespace espalier
