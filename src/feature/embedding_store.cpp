// Embeddings on the CPU.
#include "embedding_store.inl.hpp"

namespace espalier {

std::vector<EmbeddedType> embedded_types(const HeldTypes& held, const Schema& schema) {
  std::vector<EmbeddedType> types;
  for (int t = 0; t < std::ssize(schema.types()); ++t) {
    const auto& type = schema.types()[static_cast<std::size_t>(t)];
    if (held.holds_type(t))
      types.push_back({type.name, type.begin - held.shift(t), type.end - held.shift(t)});
  }
  return types;
}

void repeat(const Cpu&, const std::vector<std::int64_t>& counts, std::span<const std::int64_t> values,
            std::int64_t* all) {
  for (std::size_t m = 0; m < counts.size(); ++m) all = std::fill_n(all, counts[m], values[m]);
}

void take(const Cpu&, const std::int64_t* from, const Buffer<std::int64_t>& order, std::int64_t* to) {
  for (const auto place : order) *to++ = from[place];
}

namespace {

struct PlacedRow {
  std::int64_t row, batch, place;
  friend auto operator<=>(const PlacedRow&, const PlacedRow&) = default;
};

}  // namespace

template <class Id>
void order_pushed(const Cpu&, const PushedRows<Id, Cpu>& pushed, std::int64_t first_row, std::int64_t,
                  PushOrder<Cpu>& order) {
  std::vector<PlacedRow> rows;
  rows.reserve(static_cast<std::size_t>(pushed.size()));
  for (std::int64_t k = 0; k < pushed.size(); ++k)
    rows.push_back({pushed.ids[k] - first_row, pushed.batches[k], k});
  std::ranges::sort(rows);
  order.rows.clear();
  order.begins.clear();
  order.order.clear();
  for (const auto& row : rows) {
    if (order.rows.empty() || order.rows.back() != row.row) {
      order.rows.push_back(row.row);
      order.begins.push_back(std::ssize(order.order));
    }
    order.order.push_back(row.place);
  }
  order.begins.push_back(std::ssize(order.order));
}

namespace {

// use(row of the shard, the sum of its gradients), by many threads.
template <class Use>
void for_each_row(const Cpu& cpu, const PushOrder<Cpu>& order, ConstMatrixView<float> gradients,
                  const Use& use) {
  const auto count = std::ssize(order.rows), columns = gradients.columns;
#pragma omp parallel num_threads(cpu.threads)
  {
    Buffer<float> sum(static_cast<std::size_t>(columns));
#pragma omp for schedule(static)
    for (std::int64_t row = 0; row < count; ++row) {
      std::ranges::fill(sum, 0.0f);
      for (auto k = order.begins[row]; k < order.begins[row + 1]; ++k) {
        const auto* const from = gradients.row(order.order[k]);
        for (std::int64_t j = 0; j < columns; ++j) sum[j] += from[j];
      }
      use(order.rows[row], sum.data());
    }
  }
}

}  // namespace

void update_rows(const Cpu& cpu, const RowStep& step, const PushOrder<Cpu>& order,
                 ConstMatrixView<float> gradients, const AdamRows<Cpu>& state, MatrixView<float> weights) {
  for_each_row(cpu, order, gradients, [&](std::int64_t row, const float* g) {
    const float steps = state.steps[row] += 1;
    const float correction = state.corrections[row_of_correction(steps, state.most)];
    auto *const first = state.first.row(row), *const second = state.second.row(row);
    auto* const weight = weights.row(row);
    for (std::int64_t j = 0; j < weights.columns; ++j)
      adam_element(step, correction, g[j], first[j], second[j], weight[j]);
  });
}

void update_rows(const Cpu& cpu, const RowStep& step, const PushOrder<Cpu>& order,
                 ConstMatrixView<float> gradients, MatrixView<float> squares, MatrixView<float> weights) {
  for_each_row(cpu, order, gradients, [&](std::int64_t row, const float* g) {
    auto *const of_row = squares.row(row), *const weight = weights.row(row);
    for (std::int64_t j = 0; j < weights.columns; ++j) adagrad_element(step, g[j], of_row[j], weight[j]);
  });
}

void shifted(const Cpu&, const Buffer<std::int64_t>& from, std::int64_t shift, Buffer<std::int64_t>& to) {
  to.resize(from.size());
  for (std::size_t k = 0; k < from.size(); ++k) to[k] = from[k] + shift;
}

template class EmbeddingStoreOn<Cpu>;

}  // namespace espalier
