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
#include <filesystem>
#include <optional>

#include "array_tables.hpp"
#include "espalier/file/npy_file.hpp"
#include "ogb_folder.hpp"

namespace espalier {

namespace fs = std::filesystem;

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

}  // namespace espalier
