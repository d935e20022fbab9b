// Embeddings on a GPU.
#include "embedding_store.inl.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {

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
                 ConstMatrixView<float, Cuda> gradients, const AdagradRows<Cuda>& state,
                 MatrixView<float, Cuda> weights) {
  const auto columns = weights.columns;
  const auto *const rows = of.rows.data(), *const begins = of.begins.data(), *const order = of.order.data();
  for_each(cuda, "adagrad_rows", std::ssize(of.rows) * columns, [=] __device__(std::int64_t thread) {
    const auto k = thread / columns, j = thread % columns, row = rows[k];
    adagrad_element(step, sum_of(begins, order, gradients, k, j), state.squares(row, j), weights(row, j));
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
