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
#include "edge_pieces.hpp"
#include "npy_file.hpp"
#include "ogb_folder.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

// Weights of edges, one after the other: a column of their features.
class WeightColumn {
 public:
  WeightColumn(std::unique_ptr<FeatureRows> rows, std::int64_t column)
      : rows_(std::move(rows)), row_(rows_->columns()), column_(column) {}
  // So many.
  const std::vector<float>& next(std::size_t count, std::int64_t& vanished) {
    const auto fail = [&](const std::string& words) { input_error("{}: {}", rows_->place(), words); };
    weights_.clear();
    for (; count > 0; --count) {
      rows_->next(row_);
      weights_.push_back(stored_weight(row_[column_], fail, vanished));
    }
    return weights_;
  }

 private:
  std::unique_ptr<FeatureRows> rows_;
  std::vector<double> row_;
  std::vector<float> weights_;
  std::int64_t column_;
};

class OgbBinaryFolder : public OgbFolder {
 public:
  OgbBinaryFolder(const OgbOptions& options, bool typed)
      : OgbFolder(options, "OGB raw binary"),
        edges_((raw_ / (typed ? "edge_index_dict.npz" : "data.npz")).string()) {
    typed ? read_typed() : read_plain();
  }

  std::string place() const override { return edges_.path(); }
  void read_edges(int triplet, const std::function<void(const EdgePiece&)>& use) const override {
    std::optional<WeightColumn> weights;
    if (weighted(0))
      weights.emplace(open_all_edge_features(triplet, count_edges(*open_edges(triplet))),
                      *options_.edge_weight);
    read_edge_pairs([&] { return open_edges(triplet); }, heads(triplet), tails(triplet),
                    [&](EdgePiece piece) {
                      if (weights) piece.weights = weights->next(piece.sources.size(), piece.vanished);
                      use(piece);
                    });
  }
  std::string edge_place(int triplet, std::int64_t edge) const override {
    return edge_of_array(open_edges(triplet)->name(), edge);
  }
  std::unique_ptr<FeatureRows> open_features(int type) const override {
    return open_rows(features_, typed() ? name(type) : "node_feat", vertices(type).count);
  }
  std::unique_ptr<FeatureRows> open_labels(int type) const override {
    return open_rows(labels_, typed() ? name(type) : "node_label", vertices(type).count);
  }

 protected:
  std::unique_ptr<FeatureRows> open_all_edge_features(int triplet, std::int64_t edges) const override {
    return open_rows(edge_features_, typed() ? joined(triplet) : "edge_feat", edges, "edges");
  }

 private:
  std::string joined(int triplet) const { return triplets()[triplet].joined(); }
  std::unique_ptr<NpyArray> open_edges(int triplet) const {
    return edges_.open(typed() ? joined(triplet) : "edge_index");
  }
  static std::unique_ptr<FeatureRows> open_rows(const std::optional<NpzFile>& archive,
                                                const std::string& array, std::int64_t count,
                                                const char* things = "vertices") {
    if (!archive || !archive->has(array)) return nullptr;
    return open_feature_array(archive->open(array), count, things);
  }
  void check_count(const std::string& of, const NpyArray& edges, std::int64_t wanted, const char* by) const {
    if (const auto found = count_edges(edges); found != wanted)
      input_error("{}: {} has {} edges, but there are {} by {}", edges_.path(), of, found, wanted, by);
  }

  void read_plain();
  void read_typed();
  void read_triplets();
  std::optional<NpzFile> open_optional(std::initializer_list<const char*> names) const;
  std::optional<NpzFile> open_of_types(std::initializer_list<const char*> names) const;

  NpzFile edges_;
  std::optional<NpzFile> features_, labels_, edge_features_;
};

void OgbBinaryFolder::read_plain() {
  const auto nodes = read_only_count(*edges_.open("num_nodes_list"));
  if (nodes == 0) input_error("{}: the graph has no vertex", edges_.path());
  set_plain(nodes, fmt::format("num_nodes_list says {} vertices", nodes));
  const auto edges = edges_.open("edge_index");
  count_edges(*edges);
  if (edges_.has("num_edges_list"))
    check_count("edge_index", *edges, read_only_count(*edges_.open("num_edges_list")), "num_edges_list");
  features_ = edge_features_ = edges_;
  labels_ = open_optional({"node-label.npz"});
  if (labels_) labels_->open("node_label");  // it has no other use
  find_splits({}, {});
  if (!weighted(0)) return;
  const auto features = edges_.open("edge_feat");
  check_edge_weight(features->name(), features->columns());
}

void OgbBinaryFolder::read_typed() {
  const NpzFile sizes((raw_ / "num_nodes_dict.npz").string());
  for (const auto& name : sizes.names()) {
    if (type_of(name) >= 0) input_error("{}: two vertex types are called {}", sizes.path(), name);
    add_type(name, read_only_count(*sizes.open(name)));
  }
  read_triplets();
  features_ = open_of_types({"node_feat_dict.npz", "node_feat.npz"});
  labels_ = open_of_types({"node-label.npz"});
  edge_features_ = open_optional({"edge_feat_dict.npz", "edge_feat.npz"});
  for (const auto& triplet : edge_features_ ? edge_features_->names() : std::vector<std::string>())
    if (!edges_.has(triplet))
      input_error("{}: has features of {}, but {} has no such array", edge_features_->path(), triplet,
                  edges_.path());
  find_splits([&](int type) { return labels_ && labels_->has(name(type)); }, raw_ / "node-label.npz");
}

void OgbBinaryFolder::read_triplets() {
  const auto& path = edges_.path();
  for (const auto& name : edges_.names()) {
    const auto triplet = split_triplet(name, options_.inverses);
    if (triplet.head.empty())
      input_error("{}: the array {} is not called HEAD___RELATION___TAIL", path, name);
    add_triplet(triplet, path);
  }
  check_names(path);
  const auto announced = open_optional({"num_edges_dict.npz"});
  for (const auto& name : announced ? announced->names() : std::vector<std::string>()) {
    if (!edges_.has(name))
      input_error("{}: names the triplet {}, but {} has no such array", announced->path(), name, path);
    check_count(name, *edges_.open(name), read_only_count(*announced->open(name)), "num_edges_dict.npz");
  }
}

std::optional<NpzFile> OgbBinaryFolder::open_optional(std::initializer_list<const char*> names) const {
  for (const char* one : names)
    if (const auto path = raw_ / one; fs::exists(path)) return NpzFile(path.string());
  return std::nullopt;
}

std::optional<NpzFile> OgbBinaryFolder::open_of_types(std::initializer_list<const char*> names) const {
  auto archive = open_optional(names);
  for (const auto& type : archive ? archive->names() : std::vector<std::string>())
    if (type_of(type) < 0) input_error("{}: there is no vertex type \"{}\"", archive->path(), type);
  return archive;
}

}  // namespace

std::unique_ptr<GraphSource> open_binary_ogb_folder(const OgbOptions& options, bool typed) {
  return std::make_unique<OgbBinaryFolder>(options, typed);
}

}  // namespace espalier
