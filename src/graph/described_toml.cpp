// A described graph in TOML. docs/data.md has the language; where espalier-tables, which reads
// tables with headers, has a key, it means the same here.
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "described_graph.hpp"
#include "espalier/base/named.hpp"
#include "espalier/base/text.hpp"
#include "toml_section.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

// ---- vertices ----

// A list without an id is of no vertex.
DescribedSplit read_split(const TomlSection& section, const std::string& name,
                          const std::vector<std::string>& parts) {
  DescribedSplit split{name};
  for (std::size_t s = 0; s < kSplitNames.size(); ++s) {
    if (std::ranges::find(parts, kSplitNames[s]) == parts.end()) continue;
    split.empty[s] = section.is_empty_list(kSplitNames[s]);
    if (!split.empty[s]) split.parts[s] = section.file(kSplitNames[s]);
  }
  return split;
}

// Parts, or parts of splits with a name.
std::vector<DescribedSplit> read_splits(const TomlSection& splits) {
  std::vector<DescribedSplit> found;
  std::vector<std::string> usual;
  const std::vector<std::string> parts(kSplitNames.begin(), kSplitNames.end());
  for (const auto& [key, node] : splits.in_order()) {
    if (node->is_table() && std::ranges::find(parts, key) == parts.end()) {
      if (!is_split_name(key)) splits.wrong(key, std::string("is a split: ") + kSplitNameRule);
      found.push_back(read_split(splits.section(key, parts), key, parts));
    } else {
      if (std::ranges::find(parts, key) == parts.end())
        splits.wrong(key, "is neither train, valid or test nor a section of these, a split with a name");
      usual.push_back(key);
    }
  }
  if (!usual.empty()) found.insert(found.begin(), read_split(splits, "", usual));
  return found;
}

DescribedType read_type(const TomlSection& types, const std::string& name) {
  const auto section = types.section(name, {"count", "features", "labels", "ids", "time", "splits"});
  DescribedType type{name, section.place("")};
  if (section.has("count")) type.count = section.whole_number("count");
  type.features = section.file("features");
  type.labels = section.file("labels");
  type.ids = section.file("ids");
  type.times = section.file("time");
  if (section.has("splits")) type.splits = read_splits(section.section("splits"));
  return type;
}

// ---- edges ----

PairForm read_form(const TomlSection& edges) {
  const std::map<std::string, PairField> fields = {{"source", PairField::kFirst},
                                                   {"target", PairField::kSecond},
                                                   {"weight", PairField::kValue},
                                                   {"time", PairField::kTime}};
  const std::vector<std::string> names = {"source", "target", "weight", "time"};
  const auto columns = edges.texts("columns");
  PairForm form;
  form.fields.clear();
  for (const auto& name : columns) {
    if (!fields.contains(name))
      edges.wrong("columns", fmt::format("has {}; did you mean {}?", quoted(name), nearest(name, names)));
    if (std::ranges::count(columns, name) > 1)
      edges.wrong("columns", fmt::format("has {} twice", quoted(name)));
    form.fields.push_back(fields.at(name));
  }
  for (const auto* end : {"source", "target"})
    if (std::ranges::find(columns, end) == columns.end())
      edges.wrong("columns", fmt::format("has no \"{}\"; an edge has both ends", end));
  form.names = fmt::format("{}", fmt::join(columns, ", "));
  return form;
}

PairForm with_hint(PairForm form, const TomlSection& section) {
  form.no_number_hint =
      fmt::format("; a table with a header, or ids of its own, espalier-tables {} reads", section.path());
  return form;
}

// A file; or a text, or several, and its columns.
std::vector<DescribedEdges> read_edges(const TomlSection& relation) {
  if (relation.table("edges") == nullptr) {
    if (!relation.has("edges")) relation.wrong("", "has no edges; give edges = a file");
    return {{relation.file("edges"), with_hint({}, relation)}};
  }
  const auto edges = relation.section("edges", {"file", "files", "columns"});
  if (edges.has("file") == edges.has("files")) relation.wrong("edges", "has file or files, and one of them");
  const auto files = edges.has("files") ? edges.texts("files") : std::vector{edges.text("file")};
  const auto form = with_hint(edges.has("columns") ? read_form(edges) : PairForm(), relation);
  if (files.empty()) edges.wrong("files", "names no file");
  std::vector<DescribedEdges> found;
  for (const auto& file : files) {
    found.push_back({edges.named_file(edges.has("files") ? "files" : "file", file), form});
    if (found.back().file.is_array() && edges.has("columns"))
      edges.wrong("columns", fmt::format("is of texts, but {} is an array: leave columns out", file));
  }
  return found;
}

bool has_column(const std::vector<DescribedEdges>& edges, PairField field) {
  return std::ranges::find(edges[0].form.fields, field) != edges[0].form.fields.end();
}

std::string read_end(const TomlSection& relation, const std::string& end,
                     const std::vector<DescribedType>& types) {
  if (relation.table(end) != nullptr)
    relation.wrong(end,
                   "names a column of a table with a header, which espalier-tables reads; give the type");
  const auto type = relation.text(end);
  std::vector<std::string> names;
  for (const auto& of : types) names.push_back(of.name);
  if (std::ranges::find(names, type) == names.end())
    relation.wrong(
        end, fmt::format("is {}, which is no type; did you mean {}?", quoted(type), nearest(type, names)));
  return type;
}

DescribedRelation read_relation(const TomlSection& relations, const std::string& name,
                                const std::vector<DescribedType>& types, bool directed, bool typed) {
  const auto section = relations.section(
      name, {"name", "source", "target", "edges", "weights", "time", "features", "inverse", "directed"});
  DescribedRelation relation;
  relation.by = section.place("");
  relation.triplet.relation = section.optional_text("name").value_or(name);
  relation.triplet.head = read_end(section, "source", types);
  relation.triplet.tail = read_end(section, "target", types);
  relation.edges = read_edges(section);
  relation.weights = section.file_of_columns("weights");
  relation.times = section.file("time");
  relation.features = section.file_of_columns("features");
  relation.things = "edges by " + relation.edges[0].file.name();
  for (const auto& [key, column] : {std::pair{"weights", PairField::kValue}, {"time", PairField::kTime}})
    if (section.has(key) && has_column(relation.edges, column))
      section.wrong(key, "is a column of edges, too; leave one of them out");
  auto& triplet = relation.triplet;
  if (const auto inverse = section.optional_text("inverse")) {
    if (section.has("directed"))
      section.wrong("directed", "and inverse are both there; leave one of them out");
    triplet.inverse = *inverse;
  } else if (!section.has("directed") && !directed && typed) {
    triplet.inverse = "rev_" + triplet.relation;
  } else if (!section.flag("directed", directed)) {
    if (triplet.head != triplet.tail)
      section.wrong("directed",
                    fmt::format("= false is of a relation within one type; give inverse = \"rev_{}\"", name));
    relation.both_ways = true;
  }
  return relation;
}

// ---- links ----

DescribedLinks::OfSplit read_links_of(const TomlSection& links, std::size_t split, bool one_relation) {
  std::vector<std::string> known = {"head", "tail", "relation"};
  if (split > 0) known.insert(known.end(), {"negative_heads", "negative_tails", "non_links"});
  const auto section = links.section(kSplitNames[split], known);
  for (const auto* end : {"head", "tail"}) section.text(end);
  if (section.has("non_links") && !one_relation)
    section.wrong("non_links", "is of links of one relation; give negative_heads and negative_tails");
  if (!section.has("relation") && !one_relation)
    section.wrong("relation", "is missing: links are of several relations");
  DescribedLinks::OfSplit found;
  for (auto [key, file] : {std::pair{"head", &found.heads},
                           {"tail", &found.tails},
                           {"relation", &found.relations},
                           {"negative_heads", &found.negative_heads},
                           {"negative_tails", &found.negative_tails},
                           {"non_links", &found.non_links}})
    *file = section.file(key);
  return found;
}

DescribedLinks read_links(const TomlSection& links) {
  DescribedLinks found;
  found.by = links.place("");
  found.directed = links.flag("directed", true);
  if (links.has("relations")) {
    found.relations = links.texts("relations");
    if (found.relations.empty()) links.wrong("relations", "is empty; leave it out where links are of one");
    if (std::set(found.relations.begin(), found.relations.end()).size() < found.relations.size())
      links.wrong("relations", "has a name twice");
    if (std::ranges::any_of(found.relations,
                            [](const auto& name) { return name.find('\n') != std::string::npos; }))
      links.wrong("relations", "has a name of two lines");
  }
  bool any = false;
  for (std::size_t s = 0; s < kSplitNames.size(); ++s)
    if (links.has(kSplitNames[s])) {
      found.splits[s] = read_links_of(links, s, found.relations.size() < 2);
      any = true;
    }
  if (!any) links.wrong("", "has neither train, valid nor test");
  return found;
}

// ---- all of it ----

toml::table parse(const std::string& path) {
  try {
    return toml::parse(read_input_text(path, "description"), path);
  } catch (const UserError& error) {
    input_error("{}", error.what());
  } catch (const toml::parse_error& error) {
    input_error("{}:{}: {}", path, error.source().begin.line, error.description());
  }
}

ImportOptions read_options(const TomlSection& all, const std::string& path) {
  ImportOptions options{.place = path, .splits = {}, .by_keys = true};
  options.edges.duplicates = static_cast<Duplicates>(all.choice("duplicates", kDuplicateNames));
  options.edges.features =
      static_cast<DuplicateFeatures>(all.choice("duplicate_features", kDuplicateFeatureNames));
  if (options.edges.duplicates == Duplicates::kRefuse && all.has("duplicate_features"))
    all.wrong("duplicate_features", "means nothing with duplicates = \"refuse\"; leave one of them out");
  options.edges.latest = all.choice("duplicate_times", std::array{"first", "last"}) == 1;
  options.edges.drop_self_loops = all.choice("loops", std::array{"keep", "drop"}) == 1;
  options.half = all.flag("half", false);
  return options;
}

// One type and one relation make a graph without types.
void forget_names(DescribedGraph& graph) {
  auto& relation = graph.relations[0];
  graph.types[0].name.clear();
  relation.triplet = {};
  graph.options.edges.symmetrize = relation.both_ways;
  if (relation.edges[0].file.is_array()) graph.line = "edge";
}

}  // namespace

DescribedGraph read_graph_toml(const std::string& path) {
  const auto table = parse(path);
  const TomlSection all(table, path, "",
                        {"directed", "duplicates", "duplicate_features", "duplicate_times", "loops", "half",
                         "typed", "types", "relations", "links"});
  const auto file = fs::path(path);
  DescribedGraph graph;
  graph.about = {file.stem().string(), "description " + file.filename().string(), false};
  graph.options = read_options(all, path);
  graph.place = path;
  graph.no_class = NoClass::kMinusOneToo;
  const bool directed = all.flag("directed", true);
  const auto types = all.section("types"), relations = all.section("relations");
  for (const auto& [name, node] : types.in_order()) graph.types.push_back(read_type(types, name));
  if (all.has("links"))
    graph.links = read_links(all.section("links", {"directed", "relations", "train", "valid", "test"}));
  const bool alone =
      types.size() == 1 && relations.size() == 1 && (!graph.links || graph.links->relations.empty());
  const bool typed = all.flag("typed", !alone);
  if (!typed && !alone)
    all.wrong("typed", "= false, but there are several types or relations, or links name one");
  for (const auto& [name, node] : relations.in_order())
    graph.add_relation(read_relation(relations, name, graph.types, directed, typed));
  if (graph.types.empty() || graph.relations.empty())
    input_error("{}: has no type, or no relation; give a [types.NAME] and a [relations.NAME]", path);
  if (!typed && graph.relations[0].triplet.inverse.empty()) forget_names(graph);
  for (const auto& of : graph.types)
    for (const auto& split : of.splits)
      if (auto& names = graph.options.splits; std::ranges::find(names, split.name) == names.end())
        names.push_back(split.name);
  return graph;
}

}  // namespace espalier
