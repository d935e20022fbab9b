// A folder in OGB's binary layout of a graph without types (ogbn-papers100M), as its
// read_binary_graph_raw reads it: .npz archives, whose arrays are read in pieces.
//
//   FOLDER/raw/data.npz
//     num_nodes_list   [1] the number of vertices
//     num_edges_list   [1] the m of edge_index                                 optional
//     edge_index       [2, m] sources, then targets
//     node_feat        [n, f]; float16 stays float16                           optional
//     edge_feat        [m, f]; a column may be the weight of the edge          optional
//   FOLDER/raw/node-label.npz
//     node_label       [n, 1] or [n, C]; nan = none, unknown                   optional
//   FOLDER/split/NAME  as in the csv layout (ogb_import.hpp), or train.npy, valid.npy, test.npy
//
// Other arrays, as node_year, are passed over.
#include <filesystem>
#include <optional>

#include "array_tables.hpp"
#include "edge_pieces.hpp"
#include "npy_file.hpp"
#include "ogb_folder.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

constexpr const char* kEdges = "edge_index";
constexpr const char* kEdgeFeatures = "edge_feat";

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

class OgbDataFolder : public OgbFolder {
 public:
  explicit OgbDataFolder(const OgbOptions& options)
      : OgbFolder(options, "OGB raw binary"),
        raw_(fs::path(options.folder) / "raw"),
        data_((raw_ / "data.npz").string()) {
    const auto nodes = read_only_count(*data_.open("num_nodes_list"));
    if (nodes == 0) input_error("{}: the graph has no vertex", data_.path());
    vertices_ = {nodes, fmt::format("num_nodes_list says {} vertices", nodes)};
    edges_ = count_edges(*data_.open(kEdges));
    if (!data_.has("num_edges_list")) return;
    if (const auto wanted = read_only_count(*data_.open("num_edges_list")); wanted != edges_)
      input_error("{}: {} has {} edges, but there are {} by num_edges_list", data_.path(), kEdges, edges_,
                  wanted);
  }

  std::string name() const override { return data_.path(); }
  std::string place(std::int64_t edge) const override {
    return edge_of_array(fmt::format("{}: {}", data_.path(), kEdges), edge);
  }
  void read(const std::function<void(const EdgePiece&)>& use) const override {
    std::optional<WeightColumn> weights;
    if (weighted())
      weights.emplace(open_feature_array(data_.open(kEdgeFeatures), edges_, "edges"), *options_.edge_weight);
    read_edge_pairs([&] { return data_.open(kEdges); }, vertices_, vertices_,
                    [&](EdgePiece piece) {
                      if (weights) piece.weights = weights->next(piece.sources.size(), piece.vanished);
                      use(piece);
                    });
  }
  void check_edge_weight() const override {
    if (!weighted()) return;
    const auto features = data_.open(kEdgeFeatures);
    OgbFolder::check_edge_weight(features->name(), features->columns());
  }
  std::unique_ptr<FeatureRows> open_features() const override {
    return data_.has("node_feat") ? open_feature_array(data_.open("node_feat"), nodes()) : nullptr;
  }
  std::unique_ptr<FeatureRows> open_labels() const override {
    const auto path = raw_ / "node-label.npz";
    return fs::exists(path) ? open_feature_array(NpzFile(path.string()).open("node_label"), nodes())
                            : nullptr;
  }

 protected:
  std::unique_ptr<FeatureRows> open_all_edge_features(std::int64_t edges) const override {
    return data_.has(kEdgeFeatures) ? open_feature_array(data_.open(kEdgeFeatures), edges, "edges") : nullptr;
  }

 private:
  fs::path raw_;
  NpzFile data_;
  std::int64_t edges_ = 0;
};

}  // namespace

std::unique_ptr<OgbFolder> open_ogb_data_folder(const OgbOptions& options) {
  return std::make_unique<OgbDataFolder>(options);
}

}  // namespace espalier
