#include "layer_wise.inl.hpp"

#include "each_entry.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {

namespace {

// places: in, of the batch's picks; out, local ids. Calls write(entry, factor) for every entry.
template <class Index, class Write>
void for_each_entry(const Cuda& cuda, const char* name, const SharedList<std::int64_t, Cuda>& offsets,
                    const LayerPicks<Index, Cuda>& picks, const std::int32_t* local, std::int32_t* places,
                    const Write& write) {
  const auto* const first_pick = picks.offsets.data();
  const auto* const factors = picks.factors.data();
  for_each_in_batches(cuda, name, {0, offsets.size() - 1}, offsets,
                      [=] __device__(std::int64_t batch, std::int64_t k) {
                        const auto pick = first_pick[batch] + places[k];
                        places[k] = local[pick];
                        write(k, factors[pick]);
                      });
}

// entries: null for a matrix without values, else `values` itself.
struct WriteValue {
  const float* entries;
  float* values;
  __device__ void operator()(std::int64_t k, double factor) const {
    values[k] = layer_value(layer_product(entries == nullptr ? 1.0f : entries[k], factor), 1.0);
  }
};

struct WriteProduct {
  const float* entries;
  double* products;
  __device__ void operator()(std::int64_t k, double factor) const {
    products[k] = layer_product(entries == nullptr ? 1.0f : entries[k], factor);
  }
};

// As WriteValue, row by row: the entry of a row in its own column has the factor 1.
template <class Index>
void value_rows(const Cuda& cuda, const SharedList<std::int64_t, Cuda>& rows,
                const LayerPicks<Index, Cuda>& picks, const std::int32_t* local, const float* of_matrix,
                Entries<std::int32_t, Cuda>& entries) {
  const auto* const first_row = rows.data();
  const auto* const first_pick = picks.offsets.data();
  const auto* const factors = picks.factors.data();
  const auto* const indptr = entries.offsets.data();
  auto* const places = entries.ids.data();
  auto* const values = entries.values.data();
  for_each_in_batches(cuda, "layer_value_rows", {0, rows.size() - 1}, rows,
                      [=] __device__(std::int64_t batch, std::int64_t row) {
                        const auto own = row - first_row[batch];
                        for (auto k = indptr[row]; k < indptr[row + 1]; ++k) {
                          const auto pick = first_pick[batch] + places[k];
                          places[k] = local[pick];
                          const double factor = places[k] == own ? 1.0 : factors[pick];
                          WriteValue{of_matrix, values}(k, factor);
                        }
                      });
}

void normalize(const Cuda& cuda, const double* products, const std::int64_t* indptr, std::int64_t rows,
               float* values) {
  for_each(cuda, "normalize_layer", rows, [=] __device__(std::int64_t row) {
    const auto begin = indptr[row], end = indptr[row + 1];
    double sum = 0;
    for (auto k = begin; k < end; ++k) sum += products[k];
    for (auto k = begin; k < end; ++k) values[k] = layer_value(products[k], sum);
  });
}

}  // namespace

template <class Index>
LayerOn<Cuda> value_layer(const Cuda& cuda, Entries<std::int32_t, Cuda> entries,
                          const SharedList<std::int64_t, Cuda>& offsets,
                          const SharedList<std::int64_t, Cuda>& rows, const LayerPicks<Index, Cuda>& picks,
                          const std::int32_t* local, bool normalizes_rows) {
  const bool has_values = !entries.values.empty();
  entries.values.resize(entries.ids.size());
  const float* const of_matrix = has_values ? entries.values.data() : nullptr;
  if (picks.keeps_own) {
    value_rows(cuda, rows, picks, local, of_matrix, entries);
    return {std::move(entries)};
  }
  if (!normalizes_rows) {
    for_each_entry(cuda, "layer_values", offsets, picks, local, entries.ids.data(),
                   WriteValue{of_matrix, entries.values.data()});
    return {std::move(entries)};
  }
  DeviceArray<double> products(entries.ids.size());
  for_each_entry(cuda, "layer_products", offsets, picks, local, entries.ids.data(),
                 WriteProduct{of_matrix, products.data()});
  normalize(cuda, products.data(), entries.offsets.data(), entries.rows(), entries.values.data());
  return {std::move(entries)};
}

template <class Index>
DeviceArray<std::uint8_t> relations_of(const Cuda& cuda, const ColumnsOf& columns,
                                       const Entries<std::int32_t, Cuda>& entries,
                                       const SharedList<std::int64_t, Cuda>& offsets,
                                       const LayerPicks<Index, Cuda>& picks) {
  DeviceArray<std::uint8_t> relations(entries.ids.size());
  auto* const to = relations.data();
  const auto* const places = entries.ids.data();
  const auto* const first_pick = picks.offsets.data();
  const auto* const of_picks = picks.columns.data();
  for_each_in_batches(
      cuda, "relations_of_entries", {0, offsets.size() - 1}, offsets,
      [=] __device__(std::int64_t batch, std::int64_t k) {
        to[k] = static_cast<std::uint8_t>(columns.relation(of_picks[first_pick[batch] + places[k]]));
      });
  return relations;
}

template <class Index>
DeviceArray<Index> vertices_of(const Cuda& cuda, const ColumnsOf& columns, const DeviceArray<Index>& picks) {
  DeviceArray<Index> vertices(picks.size());
  auto* const to = vertices.data();
  const auto* const from = picks.data();
  for_each(cuda, "vertices_of_columns", std::ssize(picks),
           [=] __device__(std::int64_t k) { to[k] = static_cast<Index>(columns.vertex(from[k])); });
  return vertices;
}

ESPALIER_INSTANTIATE_LAYER_WISE(std::int32_t, Cuda)
ESPALIER_INSTANTIATE_LAYER_WISE(std::int64_t, Cuda)

}  // namespace espalier
