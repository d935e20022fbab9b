// Types and relations of a graph, as tables.
#include <algorithm>

#include "espalier/base/counted.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/progress.hpp"
#include "espalier/graph/graph_facts.hpp"
#include "info_pages.hpp"

namespace espalier {

namespace {

// ---- edges ----

// "none", or the name of the inverse, with a word where its edges are not these, reversed.
std::string inverse_in_words(const Schema& schema, const EdgeFacts& facts, int relation) {
  const int inverse = schema.relations()[relation].inverse;
  if (inverse < 0) return "none";
  const bool holds =
      facts.entries[relation] == facts.entries[inverse] && facts.forward[relation] == facts.backward[inverse];
  return schema.full_name(inverse) + (holds ? "" : ", wrongly: it has other edges");
}

void show_relations(const Schema& schema, const EdgeFacts& facts) {
  std::size_t width = 8;
  for (int r = 0; r < std::ssize(schema.relations()); ++r)
    width = std::max(width, schema.full_name(r).size());
  log::info("\n  {:<{}} {:>14} {:>14} {:>10}   {}", "relation", width, "edges", "mean in-degree", "largest",
            "inverse");
  for (int r = 0; r < std::ssize(schema.relations()); ++r) {
    const auto targets = schema.types()[schema.relations()[r].target].size();
    const auto mean =
        static_cast<double>(facts.entries[r]) / static_cast<double>(std::max<std::int64_t>(1, targets));
    log::info("  {:<{}} {:>14} {:>14.3f} {:>10}   {}", schema.full_name(r), width, facts.entries[r], mean,
              facts.most[r], inverse_in_words(schema, facts, r));
  }
}

// ---- vertices ----

std::string features_in_short(const VertexInfo& info) {
  if (info.features == 0) return "none";
  return fmt::format("{} x {}{}", info.features, info.half_features ? "float16" : "float32",
                     info.pairs > 0 ? " sparse" : "");
}

std::string labels_in_short(const VertexInfo& info) {
  if (!info.has_labels) return "none";
  return counted(info.classes, info.multi_label ? "label" : "class");
}

void show_types(const GraphInfo& info) {
  std::size_t width = 4;
  for (const auto& type : info.schema.types()) width = std::max(width, type.name.size());
  log::info("\n  {:<{}} {:>14} {:>16} {:>16} {:>12} {:>12} {:>12}", "type", width, "vertices", "features",
            "labels", "train", "valid", "test");
  for (std::size_t t = 0; t < info.types.size(); ++t) {
    const auto& of = info.types[t];
    const auto& type = info.schema.types()[t];
    log::info("  {:<{}} {:>14} {:>16} {:>16} {:>12} {:>12} {:>12}", type.name, width, type.size(),
              features_in_short(of), labels_in_short(of), of.train, of.valid, of.test);
  }
}

std::string target_in_words(const GraphInfo& info) {
  if (info.target < 0)
    return std::ranges::any_of(info.types, &VertexInfo::has_labels)
               ? "several types have labels: graph.target says which one is meant"
               : "none: no type has labels";
  return info.schema.types()[info.target].name;
}

// Those of each type and relation that has some, in words.
void show_contents(const Communicator& world, const GraphFile& file) {
  const auto& info = file.info();
  for (int t = 0; t < std::ssize(info.types); ++t) {
    const auto& name = info.schema.types()[t].name;
    if (info.types[t].features > 0) info_line("features", name + ": " + features_in_words(world, file, t));
    if (info.types[t].has_labels) info_line("labels", name + ": " + labels_in_words(world, file, t));
    if (info.types[t].class_names > 0) info_line("class names", name + ": " + class_names_in_words(file, t));
    for (const auto& split : info.types[t].splits)
      if (!split.name.empty()) info_line("splits", name + ": " + in_words(split));
    if (info.types[t].ids != IdKind::kNone) info_line("ids", name + ": " + ids_in_words(world, file, t));
    show_times(world, file, Column::kTime, t);
  }
  show_columns(file);
  for (int r = 0; r < std::ssize(info.edge_features); ++r)
    if (info.edge_features[r].has())
      info_line("edge features", info.schema.full_name(r) + ": " + edge_features_in_words(world, file, r));
  for (int r = 0; r < std::ssize(info.edge_times); ++r) show_times(world, file, Column::kEdgeTime, r);
}

}  // namespace

void show_typed_graph(const Communicator& world, const GraphFile& file) {
  const auto& info = file.info();
  note_activity("reading the edges");
  const auto facts = read_edge_facts(world, file, kInfoLabel);
  check_edge_features(file, facts.entries);
  info_line("vertices", fmt::format("{}, of {}", info.nodes, counted(std::ssize(info.types), "type")));
  info_line("edges", fmt::format("{}, of {}, {}, {}-bit ids", info.edges,
                                 counted(std::ssize(info.schema.relations()), "relation"),
                                 info.weighted ? "weighted" : "unweighted", info.wide_indices ? 64 : 32));
  info_line("self loops", std::to_string(facts.self_loops));
  info_line("isolated", fmt::format("{} without any edge", counted(facts.isolated, "vertex")));
  show_unreached(world, file);
  info_line("target", target_in_words(info));
  note_activity("reading features, labels and splits");
  show_contents(world, file);
  show_types(info);
  show_relations(info.schema, facts);
  log::info("");
}

}  // namespace espalier
