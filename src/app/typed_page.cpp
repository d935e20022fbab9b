// Types and relations of a graph, as tables.
#include <algorithm>

#include "espalier/base/counted.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/progress.hpp"
#include "espalier/graph/degrees.hpp"
#include "info_pages.hpp"
#include "vertex_marks.hpp"

namespace espalier {

namespace {

// ---- edges ----

struct EdgeFacts {
  std::vector<std::int64_t> entries, most;       // [relations]; the largest in-degree
  std::vector<std::uint64_t> forward, backward;  // [relations] sums over edges, and reversed edges
  std::int64_t self_loops = 0, isolated = 0;

  explicit EdgeFacts(std::size_t relations)
      : entries(relations, 0), most(relations, 0), forward(relations, 0), backward(relations, 0) {}

  void add_row(const Schema& schema, std::int64_t row, std::span<const std::int64_t> columns) {
    for (std::size_t e = 0; e < columns.size();) {
      const int r = schema.relation_of(columns[e]);
      const auto first = e;
      for (; e < columns.size() && columns[e] < schema.begin(r + 1); ++e) {
        const auto source = columns[e] + schema.shifts()[r];
        forward[r] += edge_hash(row, source);
        backward[r] += edge_hash(source, row);
        self_loops += source == row;
      }
      entries[r] += static_cast<std::int64_t>(e - first);
      most[r] = std::max(most[r], static_cast<std::int64_t>(e - first));
    }
  }

  void add_ranks(const Communicator& world) {
    world.all_reduce(std::span(entries), Reduction::kSum, kInfoLabel);
    world.all_reduce(std::span(most), Reduction::kMax, kInfoLabel);
    world.all_reduce(std::span(forward), Reduction::kSum, kInfoLabel);
    world.all_reduce(std::span(backward), Reduction::kSum, kInfoLabel);
    self_loops = world.all_reduce(self_loops, Reduction::kSum, kInfoLabel);
  }
};

// Collective.
EdgeFacts read_edges(const Communicator& world, const GraphFile& file) {
  const auto& info = file.info();
  EdgeFacts facts(info.schema.relations().size());
  VertexMarks has_edge(info.nodes, world.size());
  const auto read = [&](std::int64_t begin, std::int64_t end) {
    const auto a = file.read_rows<std::int64_t>(begin, end);
    for (std::int64_t v = 0; v < a.rows; ++v) {
      facts.add_row(info.schema, begin + v, a.row_indices(v));
      has_edge.mark_row(begin + v, a.row_size(v));
    }
    for (const auto column : a.indices) has_edge.mark(info.schema.vertex_of(column));
  };
  in_row_parts(world, info.nodes, read, 1 + info.edges / info.nodes);
  facts.isolated = has_edge.count_unmarked(world, kInfoLabel);
  facts.add_ranks(world);
  return facts;
}

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
  const auto facts = read_edges(world, file);
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
