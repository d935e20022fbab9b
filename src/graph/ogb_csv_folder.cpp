// The csv layout of a graph without types.
#include <filesystem>
#include <optional>

#include "edge_pieces.hpp"
#include "espalier/graph/csv.hpp"
#include "ogb_folder.hpp"
#include "ogb_meta.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

// The column of weights, line by line.
class WeightTable {
 public:
  WeightTable(const std::string& path, std::int64_t column) : csv_(path), column_(column) {}
  /// False where the table has ended.
  bool next() {
    if (!csv_.next_line()) return false;
    if (rows_++ == 0) columns_ = csv_.count_fields();
    for (std::int64_t k = 0; k < column_; ++k) csv_.skip_field();
    weight_ = stored_weight(csv_.number(), [&](const std::string& words) { csv_.fail("{}", words); });
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

struct EdgeTables {
  std::string edges, weights;  // paths; no weights: empty
  std::int64_t weight_column = 0;
  TableVertices vertices;
  std::int64_t announced = -1;  // lines by num-edge-list; -1: it does not say
};

class TableEdges : public EdgeSource {
 public:
  explicit TableEdges(EdgeTables tables) : tables_(std::move(tables)) {}
  bool weighted() const override { return !tables_.weights.empty(); }
  std::string name() const override { return tables_.edges; }
  std::string place(std::int64_t edge) const override {
    return fmt::format("{}:{}", tables_.edges, edge + 1);
  }
  void read(const std::function<void(const EdgePiece&)>& use) const override;

 private:
  EdgeTables tables_;
};

void TableEdges::read(const std::function<void(const EdgePiece&)>& use) const {
  CsvReader csv(tables_.edges);
  std::optional<WeightTable> weights;
  if (weighted()) weights.emplace(tables_.weights, tables_.weight_column);
  EdgePieces pieces(weighted(), use);
  std::int64_t edges = 0;
  bool enough = true;  // weights
  for (; csv.next_line(); ++edges) {
    const auto source = read_vertex(csv, tables_.vertices), target = read_vertex(csv, tables_.vertices);
    csv.end_line();
    enough = enough && (!weights || weights->next());
    if (enough) pieces.add(source, target, weights ? weights->weight() : 1);
  }
  if (tables_.announced >= 0) check_lines(csv, edges, tables_.announced, "edges by num-edge-list");
  if (weights) weights->finish(edges);
  pieces.finish();
}

class OgbCsvFolder : public OgbFolder {
 public:
  explicit OgbCsvFolder(const OgbOptions& options) : OgbFolder(options) {
    if (!fs::is_directory(options.folder)) input_error("{}: no such folder", options.folder);
    nodes_ = read_count(require("num-node-list"));
    if (nodes_ == 0) input_error("{}: the graph has no vertex", find("num-node-list"));
  }

  GraphDescription describe() const override { return describe_folder(options_.folder, "OGB raw csv"); }
  void check_edge_weight() const override {
    if (!options_.edge_weight) return;
    CsvReader csv(require("edge-feat"));
    if (csv.next_line()) OgbFolder::check_edge_weight(csv.path(), csv.count_fields());
  }
  std::unique_ptr<EdgeSource> open_edges() const override {
    EdgeTables tables{require("edge"), "", 0, {nodes_, nodes_in_words()}, -1};
    if (options_.edge_weight) {
      tables.weights = require("edge-feat");
      tables.weight_column = *options_.edge_weight;
    }
    if (const auto path = find("num-edge-list"); !path.empty()) tables.announced = read_count(path);
    return std::make_unique<TableEdges>(std::move(tables));
  }
  std::unique_ptr<FeatureRows> open_features() const override {
    const auto path = find("node-feat");
    return path.empty() ? nullptr : open_feature_table(path, nodes_);
  }
  OgbLabels read_labels() const override {
    const auto path = find("node-label");
    return path.empty() ? OgbLabels() : read_label_table(path, nodes_);
  }

 protected:
  std::unique_ptr<FeatureRows> open_all_edge_features(std::int64_t edges) const override {
    const auto path = find("edge-feat");
    return path.empty() ? nullptr : open_feature_table(path, edges, "edges");
  }
  std::string nodes_in_words() const override {
    return fmt::format("num-node-list says {} vertices", nodes_);
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
};

}  // namespace

std::unique_ptr<OgbFolder> open_csv_ogb_folder(const OgbOptions& options) {
  return std::make_unique<OgbCsvFolder>(options);
}

}  // namespace espalier
