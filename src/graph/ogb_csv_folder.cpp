// A folder in OGB's raw csv layout of graphs with types (that of ogbn-mag):
//
//   FOLDER/raw/num-node-dict.csv.gz       types, then their numbers of vertices
//   FOLDER/raw/triplet-type-list.csv.gz   head,relation,tail: a line for each triplet
//   FOLDER/raw/relations/HEAD___RELATION___TAIL/edge.csv.gz            "head,tail" per line
//   FOLDER/raw/relations/HEAD___RELATION___TAIL/num-edge-list.csv.gz   its lines       optional
//   FOLDER/raw/relations/HEAD___RELATION___TAIL/edge-feat.csv.gz       a line per edge  optional
//   FOLDER/raw/node-feat/TYPE/node-feat.csv.gz                                         optional
//   FOLDER/raw/nodetype-has-label.csv.gz  types, then True or False for each           optional
//   FOLDER/raw/node-label/TYPE/node-label.csv.gz
//   FOLDER/split/NAME/nodetype-has-split.csv.gz, TYPE/{train,valid,test}.csv.gz        optional
//
// Ids count within a type. Without a table of flags a type has what files it has. And that of
// graphs without types (import.hpp): the same tables, in FOLDER/raw itself.
#include "ogb_folder.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

std::string require(const FolderOptions& options, const char* stem) {
  auto path = find_table(fs::path(options.folder) / "raw", stem);
  if (path.empty())
    input_error(
        "{}/raw/{}.csv.gz: no such file, nor without .gz; FOLDER must have the raw csv layout of OGB, with "
        "FOLDER/raw/edge.csv.gz and FOLDER/raw/num-node-list.csv.gz, or the binary one, with "
        "FOLDER/raw/data.npz",
        options.folder, stem);
  return path;
}

// Of edges in a folder.
void set_tables(DescribedRelation& relation, const FolderOptions& options, const fs::path& folder) {
  relation.edges = {{.file = {find_table(folder, "edge")},
                     .form = {},
                     .table = true,
                     .announced = find_table(folder, "num-edge-list")}};
  set_edge_features(relation, options, {find_table(folder, "edge-feat")});
}

DescribedGraph describe_plain(const FolderOptions& options, const fs::path& raw) {
  if (!fs::is_directory(options.folder)) input_error("{}: no such folder", options.folder);
  const auto counts = require(options, "num-node-list");
  const auto nodes = read_count(counts);
  if (nodes == 0) input_error("{}: the graph has no vertex", counts);
  auto graph = describe_plain_layout(options, "OGB raw csv", nodes, "num-node-list");
  graph.place = require(options, "edge");
  auto& vertices = graph.types[0];
  vertices.features.path = find_table(raw, "node-feat");
  vertices.labels.path = find_table(raw, "node-label");
  set_splits(graph, options, {});
  if (options.edge_weight) {
    CsvReader csv(require(options, "edge-feat"));
    if (csv.next_line()) check_edge_weight(options, csv.path(), csv.count_fields());
  }
  set_tables(graph.relations[0], options, raw);
  return graph;
}

fs::path relation_folder(const fs::path& raw, const Triplet& triplet) {
  return raw / "relations" / triplet.joined();
}

void read_names_of_tables(const FolderOptions& options, const fs::path& raw, DescribedGraph& graph) {
  graph.types = read_type_sizes(find_table(raw, "num-node-dict"));
  const auto path = find_table(raw, "triplet-type-list");
  if (path.empty()) input_error("{}/triplet-type-list.csv.gz: no such file, nor without .gz", raw.string());
  CsvReader csv(path);
  while (csv.next_line()) {
    Triplet triplet;
    for (auto* name : {&triplet.head, &triplet.relation, &triplet.tail}) *name = csv.text();
    csv.end_line();
    if (options.inverses) triplet.inverse = "rev_" + triplet.relation;
    graph.add_relation({.triplet = triplet, .by = ""}, fmt::format("{}:{}", path, csv.line()));
  }
  graph.check_names(path);
  for (std::size_t t = 0; t < graph.relations.size(); ++t) {
    const auto& triplet = graph.relations[t].triplet;
    if (const auto folder = relation_folder(raw, triplet); find_table(folder, "edge").empty())
      input_error("{}:{}: names the triplet {}, but there is no {}/edge.csv.gz, nor without .gz", path, t + 1,
                  triplet.joined(), folder.string());
  }
}

DescribedGraph describe_typed(const FolderOptions& options, const fs::path& raw) {
  auto graph = describe_layout(options, "OGB raw csv");
  read_names_of_tables(options, raw, graph);
  graph.place = raw.string();
  for (auto& relation : graph.relations) {
    set_tables(relation, options, relation_folder(raw, relation.triplet));
    relation.things = "edges of " + relation.triplet.joined();
  }
  for (auto& type : graph.types) type.features.path = find_table(raw / "node-feat" / type.name, "node-feat");
  const auto labels = raw / "node-label";
  for (const int type : types_with(graph, find_table(raw, "nodetype-has-label"), labels, "labels")) {
    auto& of = graph.types[type];
    const auto folder = labels / of.name;
    of.labels.path = find_table(folder, "node-label");
    if (!of.labels.given())
      input_error("{}/node-label.csv.gz: no such file, nor without .gz, but {} has labels", folder.string(),
                  of.name);
  }
  set_splits(graph, options, labels);
  return graph;
}

}  // namespace

DescribedGraph describe_csv_ogb_folder(const FolderOptions& options, bool typed) {
  const auto raw = fs::path(options.folder) / "raw";
  return typed ? describe_typed(options, raw) : describe_plain(options, raw);
}

}  // namespace espalier
