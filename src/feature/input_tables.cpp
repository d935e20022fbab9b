#include "espalier/feature/input_tables.hpp"

#include <algorithm>

namespace espalier {

namespace {

// Of a graph with one type.
std::vector<InputTable> only_table(const GraphInfo& graph, std::int64_t embedding, const NumberOrWord& bits) {
  if (graph.features > 0)
    return {{.width = graph.features,
             .pairs = graph.pairs,
             .in_file = &kept_kind(graph),
             .kept = &kept_kind(graph, bits)}};
  if (embedding > 0) return {{.width = embedding, .trainable = true}};
  return {};
}

// Types share a table where their rows are as wide, all kept in pairs or none, in a form that does
// not hang on their columns.
bool may_share(const InputTable& table, const VertexInfo& type) {
  return !table.kept->of_columns && table.width == type.features && (table.pairs > 0) == (type.pairs > 0);
}

HeldTypes types_where(const GraphInfo& graph, auto holds) {
  std::vector<bool> held;
  for (std::size_t type = 0; type < graph.types.size(); ++type) held.push_back(holds(type));
  return HeldTypes(graph.schema, held);
}

}  // namespace

const RowKind& kept_kind(const VertexInfo& type, const NumberOrWord& bits) {
  const auto* const asked = kind_asked(bits);
  return asked == nullptr || type.pairs > 0 ? kind_in_file(type.half_features, type.pairs > 0) : *asked;
}

// Types whose files' forms differ share float32.
std::vector<InputTable> input_tables(const GraphInfo& graph, std::int64_t embedding,
                                     const NumberOrWord& bits) {
  if (graph.types.size() <= 1) return only_table(graph, embedding, bits);
  std::vector<InputTable> tables;
  std::vector<std::int64_t> table_of(graph.types.size(), -1);
  for (std::size_t k = 0; k < graph.types.size(); ++k) {
    const auto& type = graph.types[k];
    if (type.features == 0) continue;
    auto table = std::ranges::find_if(tables, [&](const auto& other) { return may_share(other, type); });
    if (table == tables.end()) {
      tables.push_back({.width = type.features, .in_file = &kept_kind(type), .kept = &kept_kind(type, bits)});
      table = tables.end() - 1;
    }
    table_of[k] = table - tables.begin();
    if (table->in_file != &kept_kind(type)) table->in_file = &row_kind_of(float());
    if (kind_asked(bits) == nullptr) table->kept = table->in_file;
    table->pairs = std::max(table->pairs, type.pairs);
  }
  for (std::int64_t t = 0; t < std::ssize(tables); ++t)
    tables[t].held = types_where(graph, [&](std::size_t type) { return table_of[type] == t; });
  const bool some_without = std::ranges::find(table_of, -1) != table_of.end();
  if (some_without && embedding > 0)
    tables.push_back({.width = embedding,
                      .trainable = true,
                      .held = types_where(graph, [&](std::size_t type) { return table_of[type] < 0; })});
  return tables;
}

double table_bytes(std::span<const InputTable> tables, std::int64_t vertices, bool trainable) {
  double sum = 0;
  for (const auto& table : tables)
    if (table.trainable == trainable)
      sum += static_cast<double>(table.held.count(vertices)) * static_cast<double>(table.row_bytes());
  return sum;
}

}  // namespace espalier
