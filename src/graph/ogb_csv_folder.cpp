// The csv layout of a graph without types.
#include <filesystem>
#include <optional>

#include "edge_pieces.hpp"
#include "espalier/graph/csv.hpp"
#include "ogb_folder.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

// The column of weights, line by line.
class WeightTable {
 public:
  WeightTable(const std::string& path, std::int64_t column) : csv_(path), column_(column) {}
  /// False where the table has ended.
  bool next(std::int64_t& vanished) {
    if (!csv_.next_line()) return false;
    if (rows_++ == 0) columns_ = csv_.count_fields();
    for (std::int64_t k = 0; k < column_; ++k) csv_.skip_field();
    const auto fail = [&](const std::string& words) { csv_.fail("{}", words); };
    weight_ = stored_weight(csv_.number(), fail, vanished);
    if (csv_.count_fields() != columns_)
      csv_.fail("has {} fields, the first line has {}", csv_.count_fields(), columns_);
    return true;
  }
  float weight() const { return weight_; }
  /// After the last of so many edges.
  void finish(std::int64_t edges) {
    while (csv_.next_line()) ++rows_;
    check_lines(csv_, rows_, edges, "edges");
  }

 private:
  CsvReader csv_;
  std::int64_t column_, columns_ = 0, rows_ = 0;
  float weight_ = 1;
};

class OgbCsvFolder : public OgbFolder {
 public:
  explicit OgbCsvFolder(const OgbOptions& options) : OgbFolder(options, "OGB raw csv") {
    if (!fs::is_directory(options.folder)) input_error("{}: no such folder", options.folder);
    const auto nodes = read_count(require("num-node-list"));
    if (nodes == 0) input_error("{}: the graph has no vertex", find("num-node-list"));
    vertices_ = {nodes, fmt::format("num-node-list says {} vertices", nodes)};
    edges_ = require("edge");
  }

  std::string name() const override { return edges_; }
  std::string place(std::int64_t edge) const override { return fmt::format("{}:{}", edges_, edge + 1); }
  void read(const std::function<void(const EdgePiece&)>& use) const override;
  void check_edge_weight() const override {
    if (!weighted()) return;
    CsvReader csv(require("edge-feat"));
    if (csv.next_line()) OgbFolder::check_edge_weight(csv.path(), csv.count_fields());
  }
  std::unique_ptr<FeatureRows> open_features() const override {
    return open_feature_table(find("node-feat"), vertices_.count);
  }
  std::unique_ptr<FeatureRows> open_labels() const override {
    return open_feature_table(find("node-label"), vertices_.count);
  }

 protected:
  std::unique_ptr<FeatureRows> open_all_edge_features(std::int64_t edges) const override {
    return open_feature_table(find("edge-feat"), edges, "edges");
  }

 private:
  // The path of FOLDER/raw/STEM.csv.gz, or without .gz: empty when absent, or an error.
  std::string find(const std::string& stem) const {
    return find_table(fs::path(options_.folder) / "raw", stem);
  }
  std::string require(const std::string& stem) const {
    const auto path = find(stem);
    if (path.empty())
      input_error(
          "{}/raw/{}.csv.gz: no such file, nor without .gz; FOLDER must have the raw csv layout of OGB, with "
          "FOLDER/raw/edge.csv.gz and FOLDER/raw/num-node-list.csv.gz, or the binary one, with "
          "FOLDER/raw/data.npz",
          options_.folder, stem);
    return path;
  }

  std::string edges_;
};

void OgbCsvFolder::read(const std::function<void(const EdgePiece&)>& use) const {
  std::optional<WeightTable> weights;
  if (weighted()) weights.emplace(require("edge-feat"), *options_.edge_weight);
  EdgePieces pieces(weighted(), use);
  bool enough = true;  // weights
  const auto edges = read_edge_table(edges_, vertices_, vertices_, find("num-edge-list"),
                                     [&](std::int64_t source, std::int64_t target) {
                                       enough = enough && (!weights || weights->next(pieces.vanished()));
                                       if (enough)
                                         pieces.add(source, target, weights ? weights->weight() : 1);
                                     });
  if (weights) weights->finish(edges);
  pieces.finish();
}

}  // namespace

std::unique_ptr<OgbFolder> open_csv_ogb_folder(const OgbOptions& options) {
  return std::make_unique<OgbCsvFolder>(options);
}

}  // namespace espalier
