#include "layer_wise.inl.hpp"

#include <algorithm>

#include "espalier/base/host_device.hpp"

namespace espalier {

namespace {

// The largest square of an entry, over all ranks; 1 for a matrix without values. Collective.
template <class Index>
double largest_square(const DistCsr<Index>& m) {
  double largest = m.has_values ? 0 : 1;
  for (const float value : m.local.values)
    largest = std::max(largest, static_cast<double>(value) * static_cast<double>(value));
  return m.grid->world().all_reduce(largest, Reduction::kMax, "setup");
}

}  // namespace

template <class Index>
LayerOn<Cpu> value_layer(const Cpu& cpu, Entries<std::int32_t> entries,
                         const SharedList<std::int64_t>& offsets, const SharedList<std::int64_t>& rows,
                         const LayerPicks<Index>& picks, const std::int32_t* local, bool normalizes_rows) {
  const bool has_values = !entries.values.empty();
  entries.values.resize(entries.ids.size());
#pragma omp parallel num_threads(cpu.threads)
  {
    std::vector<double> products;
#pragma omp for schedule(dynamic, 64)
    for (std::int64_t row = 0; row < entries.rows(); ++row) {
      const auto begin = entries.begin(row), size = entries.size(row);
      if (size == 0) continue;
      const auto batch = segment_of(offsets.data(), offsets.size() - 1, begin);
      const auto first_pick = picks.offsets[batch], own = picks.keeps_own ? row - rows[batch] : -1;
      products.resize(size);
      double sum = 0;
      for (std::int64_t k = 0; k < size; ++k) {
        auto& id = entries.ids[begin + k];
        const auto pick = first_pick + id;
        id = local[pick];
        products[k] = layer_product(has_values ? entries.values[begin + k] : 1.0f,
                                    id == own ? 1.0 : picks.factors[pick]);
        sum += products[k];
      }
      for (std::int64_t k = 0; k < size; ++k)
        entries.values[begin + k] = layer_value(products[k], normalizes_rows ? sum : 1.0);
    }
  }
  // They grew entry by entry, and stay as long as the minibatches.
  entries.ids.shrink_to_fit();
  entries.values.shrink_to_fit();
  return {std::move(entries)};
}

template <class Index>
Buffer<std::uint8_t> relations_of(const Cpu& cpu, const ColumnsOf& columns,
                                  const Entries<std::int32_t>& entries,
                                  const SharedList<std::int64_t>& offsets, const LayerPicks<Index>& picks) {
  Buffer<std::uint8_t> relations(entries.ids.size());
#pragma omp parallel for num_threads(cpu.threads) schedule(dynamic, 1)
  for (std::int64_t batch = 0; batch < offsets.size() - 1; ++batch)
    for (auto k = offsets[batch]; k < offsets[batch + 1]; ++k)
      relations[k] =
          static_cast<std::uint8_t>(columns.relation(picks.columns[picks.offsets[batch] + entries.ids[k]]));
  return relations;
}

template <class Index>
Buffer<Index> vertices_of(const Cpu&, const ColumnsOf& columns, const Buffer<Index>& picks) {
  Buffer<Index> vertices(picks.size());
  std::ranges::transform(picks, vertices.begin(),
                         [&](Index column) { return static_cast<Index>(columns.vertex(column)); });
  return vertices;
}

std::vector<double> pick_factors(SamplerMode mode, std::uint64_t total,
                                 std::span<const std::uint64_t> in_order, double divisor) {
  std::vector<double> factors;
  const auto s = std::ssize(in_order);
  std::uint64_t remaining = total;
  for (std::int64_t j = 1; j <= s; ++j) {
    const auto weight = in_order[j - 1];
    factors.push_back(pick_factor(mode, total, remaining, weight, j, s, divisor));
    remaining -= weight;
  }
  return factors;
}

template <class Index>
EntryWeight square_weight(const DistCsr<Index>& m) {
  std::int64_t entries = m.local.entries();
  if (m.parts() > 1) entries = m.grid->column_comm().all_reduce(entries, Reduction::kSum, "setup");
  const auto largest = largest_square(m);
  return {.squared = true, .shift = largest > 0 ? shift_for_sum(largest, entries) : 0};
}

template <class Index>
bool has_equal_rows(const DistCsr<Index>& m) {
  std::int64_t row = 0;
  const auto is_equal = [](const RowView<Index>& entries) {
    return std::all_of(entries.values.data(), entries.values.data() + entries.size,
                       [&](float value) { return value == entries.values[0]; });
  };
  while (m.has_values && row < m.local.rows && is_equal(row_view(m.local, row))) ++row;
  const std::int64_t others = m.has_values && row < m.local.rows;
  return m.grid->world().all_reduce(others, Reduction::kMax, "setup") == 0;
}

#define ESPALIER_INSTANTIATE(Index)                          \
  template EntryWeight square_weight(const DistCsr<Index>&); \
  template bool has_equal_rows(const DistCsr<Index>&);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE
ESPALIER_INSTANTIATE_LAYER_WISE(std::int32_t, Cpu)
ESPALIER_INSTANTIATE_LAYER_WISE(std::int64_t, Cpu)

}  // namespace espalier
