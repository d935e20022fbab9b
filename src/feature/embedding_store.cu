// Embeddings on a GPU.
#include "embedding_store.inl.hpp"
#include "espalier/base/device_algorithms.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {

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

namespace {

// The sum of column j of the gradients of the k-th row that changes.
__device__ inline float sum_of(const std::int64_t* begins, const std::int64_t* order,
                               ConstMatrixView<float, Cuda> gradients, std::int64_t k, std::int64_t j) {
  float sum = 0;
  for (auto at = begins[k]; at < begins[k + 1]; ++at) sum += gradients(order[at], j);
  return sum;
}

}  // namespace

// A thread for each number; the steps are counted when all have read them.
void update_rows(const Cuda& cuda, const RowStep& step, const PushOrder<Cuda>& of,
                 ConstMatrixView<float, Cuda> gradients, const AdamRows<Cuda>& state,
                 MatrixView<float, Cuda> weights) {
  const auto columns = weights.columns, changed = std::ssize(of.rows);
  const auto *const rows = of.rows.data(), *const begins = of.begins.data(), *const order = of.order.data();
  for_each(cuda, "adam_rows", changed * columns, [=] __device__(std::int64_t thread) {
    const auto k = thread / columns, j = thread % columns, row = rows[k];
    const float g = sum_of(begins, order, gradients, k, j);
    const float correction = state.corrections[row_of_correction(state.steps[row] + 1, state.most)];
    adam_element(step, correction, g, state.first(row, j), state.second(row, j), weights(row, j));
  });
  for_each(cuda, "count_steps", changed, [=] __device__(std::int64_t k) { state.steps[rows[k]] += 1; });
}

void update_rows(const Cuda& cuda, const RowStep& step, const PushOrder<Cuda>& of,
                 ConstMatrixView<float, Cuda> gradients, MatrixView<float, Cuda> squares,
                 MatrixView<float, Cuda> weights) {
  const auto columns = weights.columns;
  const auto *const rows = of.rows.data(), *const begins = of.begins.data(), *const order = of.order.data();
  for_each(cuda, "adagrad_rows", std::ssize(of.rows) * columns, [=] __device__(std::int64_t thread) {
    const auto k = thread / columns, j = thread % columns, row = rows[k];
    adagrad_element(step, sum_of(begins, order, gradients, k, j), squares(row, j), weights(row, j));
  });
}

void shifted(const Cuda& cuda, const DeviceArray<std::int64_t>& from, std::int64_t shift,
             DeviceArray<std::int64_t>& to) {
  to.resize(from.size());
  auto* const out = to.data();
  const auto* const in = from.data();
  for_each(cuda, "shifted", std::ssize(from), [=] __device__(std::int64_t k) { out[k] = in[k] + shift; });
}

template class EmbeddingStoreOn<Cuda>;

}  // namespace espalier
