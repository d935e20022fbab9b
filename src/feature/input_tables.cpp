#include "espalier/feature/input_tables.hpp"

#include <algorithm>

namespace espalier {

namespace {

// Of a graph with one type.
std::vector<InputTable> only_table(const GraphInfo& graph, std::int64_t embedding) {
  if (graph.features > 0)
    return {{.width = graph.features, .pairs = graph.pairs, .half = graph.half_features}};
  if (embedding > 0) return {{.width = embedding, .learnt = true}};
  return {};
}

// Types share a table where their rows are as wide, all kept in pairs or none.
bool is_of(const InputTable& table, const VertexInfo& type) {
  return table.width == type.features && (table.pairs > 0) == (type.pairs > 0);
}

HeldTypes types_where(const GraphInfo& graph, auto holds) {
  std::vector<bool> held;
  for (const auto& type : graph.types) held.push_back(holds(type));
  return HeldTypes(graph.schema, held);
}

}  // namespace

std::vector<InputTable> input_tables(const GraphInfo& graph, std::int64_t embedding) {
  if (graph.types.size() <= 1) return only_table(graph, embedding);
  std::vector<InputTable> tables;
  bool some_without = false;
  for (const auto& type : graph.types) {
    some_without |= type.features == 0;
    if (type.features == 0) continue;
    auto table = std::ranges::find_if(tables, [&](const auto& other) { return is_of(other, type); });
    if (table == tables.end()) {
      tables.push_back({.width = type.features, .half = true});
      table = tables.end() - 1;
    }
    table->half = table->half && type.half_features;
    table->pairs = std::max(table->pairs, type.pairs);
  }
  for (auto& table : tables)
    table.held = types_where(graph, [&](const auto& type) { return is_of(table, type); });
  if (some_without && embedding > 0)
    tables.push_back({.width = embedding, .learnt = true, .held = types_where(graph, [](const auto& type) {
                                                            return type.features == 0;
                                                          })});
  return tables;
}

double table_bytes(std::span<const InputTable> tables, std::int64_t vertices, bool learnt) {
  double sum = 0;
  for (const auto& table : tables)
    if (table.learnt == learnt)
      sum += static_cast<double>(table.held.count(vertices)) * static_cast<double>(table.row_bytes());
  return sum;
}

}  // namespace espalier
