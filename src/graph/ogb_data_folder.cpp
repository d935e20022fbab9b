#include "ogb_data_folder.hpp"

#include <filesystem>
#include <optional>

#include "array_tables.hpp"
#include "edge_pieces.hpp"
#include "npz_file.hpp"
#include "ogb_meta.hpp"

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
  const std::vector<float>& next(std::size_t count) {
    weights_.clear();
    for (; count > 0; --count) {
      rows_->next(row_);
      weights_.push_back(stored_weight(
          row_[column_], [&](const std::string& words) { input_error("{}: {}", rows_->place(), words); }));
    }
    return weights_;
  }

 private:
  std::unique_ptr<FeatureRows> rows_;
  std::vector<double> row_;
  std::vector<float> weights_;
  std::int64_t column_;
};

class ArrayEdges : public EdgeSource {
 public:
  ArrayEdges(const NpzFile& data, ArrayVertices vertices, std::optional<std::int64_t> weight)
      : data_(data), vertices_(std::move(vertices)), weight_(weight) {}
  bool weighted() const override { return weight_.has_value(); }
  std::string name() const override { return data_.path(); }
  std::string place(std::int64_t edge) const override {
    return edge_of_array(fmt::format("{}: {}", data_.path(), kEdges), edge);
  }
  void read(const std::function<void(const EdgePiece&)>& use) const override {
    std::optional<WeightColumn> weights;
    if (weight_) {
      const auto edges = count_edges(*data_.open(kEdges));
      weights.emplace(open_feature_array(data_.open(kEdgeFeatures), edges, "edges"), *weight_);
    }
    read_edge_pairs([&] { return data_.open(kEdges); }, vertices_, vertices_,
                    [&](const EdgePiece& piece) {
                      use({piece.sources, piece.targets,
                           weights ? std::span<const float>(weights->next(piece.sources.size()))
                                   : std::span<const float>()});
                    });
  }

 private:
  const NpzFile& data_;
  ArrayVertices vertices_;
  std::optional<std::int64_t> weight_;
};

class OgbDataFolder : public OgbFolder {
 public:
  explicit OgbDataFolder(const OgbOptions& options)
      : OgbFolder(options), raw_(fs::path(options.folder) / "raw"), data_((raw_ / "data.npz").string()) {
    nodes_ = read_only_count(*data_.open("num_nodes_list"));
    if (nodes_ == 0) input_error("{}: the graph has no vertex", data_.path());
    const auto edges = count_edges(*data_.open(kEdges));
    if (!data_.has("num_edges_list")) return;
    if (const auto wanted = read_only_count(*data_.open("num_edges_list")); wanted != edges)
      input_error("{}: {} has {} edges, but there are {} by num_edges_list", data_.path(), kEdges, edges,
                  wanted);
  }

  GraphDescription describe() const override { return describe_folder(options_.folder, "OGB raw binary"); }
  void check_edge_weight() const override {
    if (!options_.edge_weight) return;
    const auto features = data_.open(kEdgeFeatures);
    OgbFolder::check_edge_weight(features->name(), features->columns());
  }
  std::unique_ptr<EdgeSource> open_edges() const override {
    return std::make_unique<ArrayEdges>(data_, ArrayVertices{nodes_, nodes_in_words()}, options_.edge_weight);
  }
  std::unique_ptr<FeatureRows> open_features() const override {
    return data_.has("node_feat") ? open_feature_array(data_.open("node_feat"), nodes_) : nullptr;
  }
  OgbLabels read_labels() const override {
    const auto path = raw_ / "node-label.npz";
    return fs::exists(path) ? read_label_array(*NpzFile(path.string()).open("node_label"), nodes_)
                            : OgbLabels();
  }

 protected:
  std::unique_ptr<FeatureRows> open_all_edge_features(std::int64_t edges) const override {
    return data_.has(kEdgeFeatures) ? open_feature_array(data_.open(kEdgeFeatures), edges, "edges") : nullptr;
  }
  std::string nodes_in_words() const override {
    return fmt::format("num_nodes_list says {} vertices", nodes_);
  }

 private:
  fs::path raw_;
  NpzFile data_;
};

}  // namespace

bool is_ogb_data_folder(const std::string& folder) {
  return fs::exists(fs::path(folder) / "raw" / "data.npz");
}

std::unique_ptr<OgbFolder> open_ogb_data_folder(const OgbOptions& options) {
  return std::make_unique<OgbDataFolder>(options);
}

}  // namespace espalier
