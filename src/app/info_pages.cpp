// Types and relations of a graph, as tables.
#include <fmt/ranges.h>
#include <algorithm>

#include "espalier/base/log.hpp"
#include "espalier/base/row_range.hpp"
#include "espalier/base/text.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/file/csv.hpp"
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

// The links of a graph.

namespace {

std::string relations_in_words(const LinkInfo& links) {
  constexpr std::ptrdiff_t kShown = 8;
  const auto shown = std::min(kShown, std::ssize(links.names));
  return fmt::format("{}: {}{}{}", links.names.size(),
                     fmt::join(links.names.begin(), links.names.begin() + shown, ", "),
                     shown < std::ssize(links.names) ? ", ..." : "",
                     links.graph_relations.empty() ? "; they are no relations of the graph" : "");
}

std::string negatives_in_words(const LinkInfo& links) {
  std::string words;
  for (std::size_t s = 0; s < links.splits.size(); ++s) {
    const auto& of = links.splits[s];
    if (!of.gives_candidates()) continue;
    words += words.empty() ? "" : "; ";
    if (of.non_links > 0)
      words += fmt::format("{}: {} for all links", kSplitNames[s], counted(of.non_links, "pair"));
    else
      words += fmt::format("{}: {} and {} for each link", kSplitNames[s], counted(of.negative_heads, "head"),
                           counted(of.negative_tails, "tail"));
  }
  return words;
}

}  // namespace

void show_links(const Communicator& world, const GraphFile& file) {
  const auto& links = file.info().links;
  if (!links.exist) return;
  note_activity("reading the links");
  const auto odd = odd_links(links, check_links(world, file));
  info_line("links",
            fmt::format("train {}, valid {}, test {}, {}", links.splits[0].links, links.splits[1].links,
                        links.splits[2].links, links.directed ? "directed" : "undirected"));
  if (!links.names.empty()) info_line("of relations", relations_in_words(links));
  const auto negatives = negatives_in_words(links);
  if (!negatives.empty()) info_line("negatives", negatives);
  for (const auto& sentence : odd) info_line("note", sentence);
  for (const auto& sentence : leaks_in_words(file, find_link_leaks(world, file), false))
    info_line("leak", sentence);
}

// Features and labels of vertices and edges.

std::string labels_in_words(const Communicator& world, const GraphFile& file, int type) {
  const auto& info = file.info().types[type];
  const auto vertices = file.info().schema.types()[type].size();
  if (!info.has_labels) return "none";
  if (info.classes == 0) return fmt::format("all {} vertices are unlabelled (-1)", vertices);
  auto counts = count_labels(world, file, type);
  const auto unknown = counts.back();
  counts.pop_back();
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
  std::int64_t total = 0;
  for (const auto count : counts) total += count;
  const auto* noun = info.multi_label ? "label" : "class";
  const auto range = fmt::format("{} {} has least ({}), {} {} most ({})", noun, least - counts.begin(),
                                 *least, noun, most - counts.begin(), *most);
  if (info.multi_label)
    return fmt::format(
        "{} per vertex, 0 or 1, {:.3f} of them 1{}; {}", info.classes,
        static_cast<double>(total) / static_cast<double>(std::max<std::int64_t>(1, vertices) * info.classes),
        unknown > 0 ? fmt::format(", {} unknown", unknown) : "", range);
  return fmt::format("{}, {} of {} labelled; {}", counted(info.classes, "class"), total,
                     counted(vertices, "vertex"), range);
}

std::string ids_in_words(const Communicator& world, const GraphFile& file, int type) {
  const auto& of = file.info().schema.types()[type];
  in_row_parts(
      world, of.size(),
      [&](std::int64_t begin, std::int64_t end) { file.read_texts(Column::kIds, type, begin, end); }, 32);
  const std::string words = file.info().types[type].ids == IdKind::kNumbers ? "numbers" : "texts";
  if (of.size() == 0) return words + ", of no vertex";
  return fmt::format("{}, {} to {}", words, excerpt(file.read_texts(Column::kIds, type, 0, 1)[0], 40),
                     excerpt(file.read_texts(Column::kIds, type, of.size() - 1, of.size())[0], 40));
}

static std::string names_in_words(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 200;
  std::string words;
  for (const auto& name : names) {
    if (words.size() > kMost) return words + ", ..";
    words += (words.empty() ? "" : ", ") + csv_field(excerpt(name, 40));
  }
  return words;
}

std::string class_names_in_words(const GraphFile& file, int type) {
  return names_in_words(file.read_texts(Column::kClassNames, type, 0, file.info().types[type].class_names));
}

void show_columns(const GraphFile& file) {
  for (const auto& [group, of] : file.info().feature_columns) {
    const std::string noun = group.starts_with("/edges/") ? "edge columns" : "columns";
    const auto first = group.find('/', 1) + 1;
    const auto owner = first < group.size() ? group.substr(first, group.size() - first - 1) + ": " : "";
    info_line(noun.c_str(), fmt::format("{}{}, {}{}", owner, of.names.size(), names_in_words(of.names),
                                        of.scales.empty() ? "" : "; filled or scaled"));
  }
}

static std::string numbers_in_words(const NumberFacts& facts, std::int64_t numbers) {
  return fmt::format("from {:.4g} to {:.4g}, {:.1f} % not zero", facts.least, facts.most,
                     100.0 * static_cast<double>(facts.nonzero) / static_cast<double>(numbers));
}

std::string features_in_words(const Communicator& world, const GraphFile& file, int type) {
  const auto& info = file.info().types[type];
  const auto& vertices = file.info().schema.types()[type];
  const auto values = vertices.size() * info.features;
  if (info.features == 0) return "none";
  const auto words = fmt::format("{} x {}", info.features, info.half_features ? "float16" : "float32");
  if (values == 0) return words + ", of no vertex";
  if (info.pairs > 0)
    return words +
           fmt::format(
               ", sparse: {} numbers, {:.3g} in a row and {} at most, {:.2g} % of a matrix",
               info.feature_entries,
               static_cast<double>(info.feature_entries * info.features) / static_cast<double>(values),
               info.pairs, 100.0 * static_cast<double>(info.feature_entries) / static_cast<double>(values));
  return words + ", " + numbers_in_words(read_feature_facts(world, file, type), values);
}

std::string in_words(const SplitInfo& split) {
  return fmt::format("{}{}train {}, valid {}, test {}", split.name, split.name.empty() ? "" : ": ",
                     split.train, split.valid, split.test);
}

void show_unreached(const Communicator& world, const GraphFile& file) {
  const auto& info = file.info();
  const auto& schema = info.schema;
  const auto unreached = count_unreached(world, file);
  for (std::size_t t = 0; t < unreached.size(); ++t) {
    const bool reached = std::ranges::any_of(
        schema.relations(), [&](const auto& of) { return of.target == static_cast<int>(t); });
    if (unreached[t].all == 0) continue;
    info_line("no in-edge",
              fmt::format("{}{}{}{}", info.typed ? schema.types()[t].name + ": " : "",
                          counted(unreached[t].all, "vertex"),
                          unreached[t].of_train == 0
                              ? ""
                              : fmt::format(", {} of {} to train", unreached[t].train, unreached[t].of_train),
                          reached ? "" : "; no relation leads to them"));
  }
}

std::string edge_features_in_words(const Communicator& world, const GraphFile& file, int relation) {
  const auto& info = file.info().edge_features[relation];
  const auto words =
      fmt::format("{} x {} {}", info.entries, info.features, info.half ? "float16" : "float32");
  if (info.entries == 0) return words;
  return words + ", " +
         numbers_in_words(read_edge_feature_facts(world, file, relation), info.entries * info.features);
}

void show_times(const Communicator& world, const GraphFile& file, Column column, int owner) {
  const auto info = file.column(column, owner);
  if (info.rows == 0) return;
  const auto [earliest, latest] = read_time_range(world, file, column, owner);
  const auto& schema = file.info().schema;
  const bool of_edges = column == Column::kEdgeTime;
  const auto of = of_edges ? schema.full_name(owner) : schema.types()[owner].name;
  info_line(of_edges ? "edge times" : "times",
            fmt::format("{}{} to {}{}{}", file.info().typed ? of + ": " : "", earliest, latest,
                        info.unit.empty() ? "" : " ", excerpt(info.unit)));
}

}  // namespace espalier
