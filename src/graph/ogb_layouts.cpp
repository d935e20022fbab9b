// Layouts of the Open Graph Benchmark's folders, each described (described_graph.hpp).
//
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

#include <algorithm>
#include <filesystem>
#include <optional>

#include "array_tables.hpp"
#include "espalier/base/error.hpp"
#include "espalier/file/npy_file.hpp"
#include "graph_source.hpp"

namespace espalier {

// ---- csv, with types ----

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

// ---- arrays ----
//
// A folder in OGB's binary layouts, .npz archives, whose arrays are read in pieces. That of graphs
// without types (ogbn-papers100M), as OGB's read_binary_graph_raw reads it:
//
//   FOLDER/raw/data.npz
//     num_nodes_list   [1] the number of vertices
//     num_edges_list   [1] the m of edge_index                                 optional
//     edge_index       [2, m] sources, then targets
//     node_feat        [n, f]; float16 stays float16                           optional
//     edge_feat        [m, f]; a column may be the weight of the edge          optional
//   FOLDER/raw/node-label.npz
//     node_label       [n, 1] or [n, C]; nan = none, unknown                   optional
//
// Other arrays, as node_year, are passed over. And that of graphs with types, which OGB's
// DatasetSaver writes and its read_binary_heterograph_raw reads: an array for each type, or for
// each triplet HEAD___RELATION___TAIL.
//
//   FOLDER/raw/num_nodes_dict.npz    by type: [1], its vertices
//   FOLDER/raw/edge_index_dict.npz   by triplet: [2, m], heads, then tails
//   FOLDER/raw/num_edges_dict.npz    by triplet: [1], its m
//   FOLDER/raw/edge_feat_dict.npz    by triplet: [m, f]; edge_feat.npz is the same      optional
//   FOLDER/raw/node_feat_dict.npz    by type: [n, f]; node_feat.npz is the same         optional
//   FOLDER/raw/node-label.npz        by type: [n, 1] or [n, C]                          optional
//
// Splits are as in the csv layouts; OGB's saver writes those of types as a pickle, split_dict.pt,
// which scripts/mag240m_pickles.py turns into that.

namespace {

using FileNames = std::initializer_list<const char*>;

// The first of these that is there.
std::optional<NpzFile> find_archive(const fs::path& raw, FileNames names) {
  for (const char* one : names)
    if (const auto path = raw / one; fs::exists(path)) return NpzFile(path.string());
  return std::nullopt;
}

// No file where there is no such archive, or no such array in it.
DescribedFile member_of(const std::optional<NpzFile>& archive, const std::string& array) {
  return archive && archive->has(array) ? DescribedFile{archive->path(), array} : DescribedFile();
}

void check_number_of_edges(const NpzFile& edges, const std::string& array, std::int64_t wanted,
                           const char* by) {
  if (const auto found = count_edges(*edges.open(array)); found != wanted)
    input_error("{}: {} has {} edges, but there are {} by {}", edges.path(), array, found, wanted, by);
}

DescribedGraph describe_plain_arrays(const FolderOptions& options, const fs::path& raw) {
  const NpzFile data((raw / "data.npz").string());
  const auto nodes = read_only_count(*data.open("num_nodes_list"));
  if (nodes == 0) input_error("{}: the graph has no vertex", data.path());
  count_edges(*data.open("edge_index"));
  if (data.has("num_edges_list"))
    check_number_of_edges(data, "edge_index", read_only_count(*data.open("num_edges_list")),
                          "num_edges_list");
  auto graph = describe_plain_layout(options, "OGB raw binary", nodes, "num_nodes_list");
  graph.place = data.path();
  auto& vertices = graph.types[0];
  vertices.features = member_of(data, "node_feat");
  if (const auto labels = find_archive(raw, {"node-label.npz"})) {
    labels->open("node_label");  // it has no other use
    vertices.labels = {labels->path(), "node_label"};
  }
  set_splits(graph, options, {});
  graph.relations[0].edges = {{.file = {data.path(), "edge_index"}}};
  set_edge_features(graph.relations[0], options, member_of(data, "edge_feat"));
  if (options.edge_weight) {
    const auto features = data.open("edge_feat");
    check_edge_weight(options, features->name(), features->columns());
  }
  return graph;
}

void read_names_of_arrays(const FolderOptions& options, const fs::path& raw, const NpzFile& edges,
                          DescribedGraph& graph) {
  const NpzFile sizes((raw / "num_nodes_dict.npz").string());
  for (const auto& name : sizes.names()) {
    if (graph.type_of(name) >= 0) input_error("{}: two vertex types are called {}", sizes.path(), name);
    graph.types.push_back({.name = name, .by = "", .count = read_only_count(*sizes.open(name))});
  }
  for (const auto& name : edges.names()) {
    const auto triplet = split_triplet(name, options.inverses);
    if (triplet.head.empty())
      input_error("{}: the array {} is not called HEAD___RELATION___TAIL", edges.path(), name);
    graph.add_relation({.triplet = triplet, .by = ""}, edges.path());
  }
  graph.check_names(edges.path());
  const auto announced = find_archive(raw, {"num_edges_dict.npz"});
  for (const auto& name : announced ? announced->names() : std::vector<std::string>()) {
    if (!edges.has(name))
      input_error("{}: names the triplet {}, but {} has no such array", announced->path(), name,
                  edges.path());
    check_number_of_edges(edges, name, read_only_count(*announced->open(name)), "num_edges_dict.npz");
  }
}

// An archive with an array for each type.
std::optional<NpzFile> find_archive_of_types(const fs::path& raw, FileNames files,
                                             const DescribedGraph& graph) {
  auto archive = find_archive(raw, files);
  for (const auto& type : archive ? archive->names() : std::vector<std::string>())
    if (graph.type_of(type) < 0) input_error("{}: there is no vertex type \"{}\"", archive->path(), type);
  return archive;
}

DescribedGraph describe_typed_arrays(const FolderOptions& options, const fs::path& raw) {
  const NpzFile edges((raw / "edge_index_dict.npz").string());
  auto graph = describe_layout(options, "OGB raw binary");
  read_names_of_arrays(options, raw, edges, graph);
  graph.place = edges.path();
  const auto features = find_archive_of_types(raw, {"node_feat_dict.npz", "node_feat.npz"}, graph),
             labels = find_archive_of_types(raw, {"node-label.npz"}, graph);
  for (auto& type : graph.types) {
    type.features = member_of(features, type.name);
    type.labels = member_of(labels, type.name);
  }
  const auto edge_features = find_archive(raw, {"edge_feat_dict.npz", "edge_feat.npz"});
  for (const auto& triplet : edge_features ? edge_features->names() : std::vector<std::string>())
    if (!edges.has(triplet))
      input_error("{}: has features of {}, but {} has no such array", edge_features->path(), triplet,
                  edges.path());
  for (auto& relation : graph.relations) {
    relation.edges = {{.file = {edges.path(), relation.triplet.joined()}}};
    set_edge_features(relation, options, member_of(edge_features, relation.triplet.joined()));
  }
  set_splits(graph, options, raw / "node-label.npz");
  return graph;
}

}  // namespace

DescribedGraph describe_binary_ogb_folder(const FolderOptions& options, bool typed) {
  const auto raw = fs::path(options.folder) / "raw";
  return typed ? describe_typed_arrays(options, raw) : describe_plain_arrays(options, raw);
}

// ---- MAG240M ----

namespace {

std::vector<DescribedType> read_types(const std::string& folder) {
  const auto path = find_table(folder, "num-node-dict");
  if (path.empty())
    input_error("{}/num-node-dict.csv: no such file; scripts/mag240m_pickles.py {} makes it from meta.pt",
                folder, folder);
  return read_type_sizes(path);
}

// Triplets are the folders that are called so, in ascending order.
void find_names(const FolderOptions& options, const fs::path& processed, DescribedGraph& graph) {
  graph.types = read_types(options.folder);
  std::vector<std::string> folders;
  for (const auto& entry : fs::directory_iterator(processed))
    if (entry.is_directory() && !split_triplet(entry.path().filename()).head.empty())
      folders.push_back(entry.path().filename());
  std::ranges::sort(folders);
  for (const auto& name : folders)
    graph.add_relation({.triplet = split_triplet(name, options.inverses), .by = ""},
                       (processed / name).string());
  graph.check_names(processed.string());
}

// Splits are of the one type that has labels.
void set_target(DescribedGraph& graph, const fs::path& split) {
  if (!fs::is_directory(split)) return;
  DescribedType* target = nullptr;
  for (auto& type : graph.types) {
    if (!type.labels.given()) continue;
    if (target != nullptr)
      input_error("{}: {} and {} have labels; of which are the splits in {}?", graph.place, target->name,
                  type.name, split.string());
    target = &type;
  }
  if (target == nullptr)
    input_error("{}: holds splits, but no type has labels in {}", split.string(), graph.place);
  target->splits = {split_of_arrays("", split)};
}

DescribedGraph describe_mag240m_folder(const FolderOptions& options) {
  const auto processed = fs::path(options.folder) / "processed";
  if (!fs::is_directory(processed)) input_error("{}: no such folder", processed.string());
  auto graph = describe_layout(options, "MAG240M");
  find_names(options, processed, graph);
  graph.place = processed.string();
  for (auto& type : graph.types)
    for (const auto& [array, file] :
         {std::pair{"node_feat.npy", &type.features}, {"node_label.npy", &type.labels}})
      if (const auto path = processed / type.name / array; fs::exists(path)) file->path = path.string();
  for (auto& relation : graph.relations)
    relation.edges = {{.file = {(processed / relation.triplet.joined() / "edge_index.npy").string()}}};
  set_target(graph, fs::path(options.folder) / "split");
  return graph;
}

}  // namespace

ImportPlan plan_of(const Mag240mFolder& folder) {
  return {.describe = [=] { return describe_mag240m_folder(folder); },
          .folder = folder.folder,
          .parts = {"processed", "split"},
          .shared = true};
}

}  // namespace espalier
