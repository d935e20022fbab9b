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

// A stable sort by minibatch, then one by row; then a thread for each number of each row: the first
// of a row's reads the others.
template <class Id>
void place_rows(const Cuda& cuda, const PushedRows<Id, Cuda>& pushed, std::int64_t first_row, Push push,
                MatrixView<float, Cuda> block) {
  constexpr int kBits = 64;
  const auto count = pushed.size(), columns = block.columns;
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
  sort_pairs(cuda, key, sorted, of_batch, ordered, count,
             std::bit_width(static_cast<std::uint64_t>(block.rows)));
  const auto* const from = pushed.rows.data.data();
  for_each(cuda, "place_rows", count * columns, [=] __device__(std::int64_t thread) {
    const auto first = thread / columns, j = thread % columns;
    const auto row = sorted[first];
    if (first > 0 && sorted[first - 1] == row) return;
    float& to = block(static_cast<std::int64_t>(row), j);
    float value = to;
    for (auto k = first; k < count && sorted[k] == row; ++k) {
      const float x = from[ordered[k] * columns + j];
      value = push == Push::kAdd ? value + x : x;
    }
    to = value;
  });
}

template class RowStoreOn<Cuda>;

}  // namespace espalier
