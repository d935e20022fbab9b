#include "espalier/feature/edge_store.hpp"

#include <algorithm>

#include "espalier/base/index_type.hpp"

namespace espalier {

EdgeTable edge_table(const GraphInfo& graph) {
  EdgeTable table;
  bool half = true;
  for (const auto& edges : graph.edge_features) {
    table.held.push_back(edges.has());
    table.rows += edges.entries;
    table.width = std::max(table.width, edges.features);
    half &= !edges.has() || edges.half;
  }
  table.kind = &kind_in_file(half && table.width > 0);
  return table;
}

double edge_store_bytes(const GraphInfo& graph) {
  const auto table = edge_table(graph);
  return static_cast<double>(table.rows) *
             static_cast<double>(table.row_bytes() + index_bytes(graph.columns)) +
         8.0 * static_cast<double>(graph.nodes);
}

std::int64_t list_edges(const Cpu&, const BlockView<Cpu>& block, const std::int64_t* vertices,
                        const EdgeColumnsOn<Cpu>& columns, std::int64_t all_columns, std::int64_t* numbers,
                        std::int32_t* entries) {
  std::int64_t listed = 0;
  for (std::int64_t row = 0; row < block.rows; ++row)
    for (auto e = block.row_begin(row); e < block.row_end(row); ++e) {
      const int relation = block.relation(e);
      if (columns.held[relation] == 0) continue;
      numbers[listed] = vertices[row] * all_columns + vertices[block.indices[e]] - columns.shifts[relation];
      entries[listed++] = static_cast<std::int32_t>(e - block.indptr[0]);
    }
  return listed;
}

}  // namespace espalier
