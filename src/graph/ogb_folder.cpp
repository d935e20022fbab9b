#include "ogb_folder.hpp"

#include <cmath>
#include <filesystem>

#include "espalier/graph/csv.hpp"
#include "import_edge_features.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

void check_weight_column(const CsvReader& csv, std::int64_t column) {
  const auto columns = csv.count_fields();
  if (column >= columns)
    usage_error("--edge-weight {}: {} has {} column{}, counted from 0", column, csv.path(), columns,
                columns == 1 ? "" : "s");
}

}  // namespace

// ---- finding files ----

OgbFolder::OgbFolder(const OgbOptions& options) : options_(options) {
  if (!fs::is_directory(options.folder)) input_error("{}: no such folder", options.folder);
  if (fs::exists(fs::path(options.folder) / "raw" / "data.npz"))
    input_error(
        "{}/raw/data.npz: the binary variant of the OGB layout cannot be imported; convert it to csv first",
        options.folder);
  nodes_ = read_count(require("num-node-list"));
  if (nodes_ == 0) input_error("{}: the graph has no vertex", find("num-node-list"));
}

std::string OgbFolder::find(const std::string& stem) const {
  return find_table(fs::path(options_.folder) / "raw", stem);
}

std::string OgbFolder::require(const std::string& stem) const {
  const auto path = find(stem);
  if (path.empty())
    input_error(
        "{}/raw/{}.csv.gz: no such file, nor without .gz; FOLDER must have the raw csv layout of OGB, with "
        "FOLDER/raw/edge.csv.gz and FOLDER/raw/num-node-list.csv.gz",
        options_.folder, stem);
  return path;
}

// ---- edges ----

template <class Index>
EdgeList<Index> OgbFolder::read_edges() const {
  CsvReader csv(require("edge"));
  const TableVertices vertices{nodes_, fmt::format("num-node-list says {} vertices", nodes_)};
  const auto count_file = find("num-edge-list");
  const auto announced = count_file.empty() ? -1 : read_count(count_file);
  EdgeList<Index> edges;
  if (announced > 0) {
    edges.sources.reserve(announced);
    edges.targets.reserve(announced);
  }
  while (csv.next_line()) {
    edges.sources.push_back(static_cast<Index>(read_vertex(csv, vertices)));
    edges.targets.push_back(static_cast<Index>(read_vertex(csv, vertices)));
    csv.end_line();
  }
  const auto lines = static_cast<std::int64_t>(edges.sources.size());
  if (announced >= 0) check_lines(csv, lines, announced, "edges by num-edge-list");
  if (options_.edge_weight) edges.weights = read_weights(lines);
  return edges;
}

template EdgeList<std::int32_t> OgbFolder::read_edges() const;
template EdgeList<std::int64_t> OgbFolder::read_edges() const;

void OgbFolder::check_edge_weight() const {
  if (!options_.edge_weight) return;
  CsvReader csv(require("edge-feat"));
  if (csv.next_line()) check_weight_column(csv, *options_.edge_weight);
}

Buffer<float> OgbFolder::read_weights(std::int64_t edges) const {
  CsvReader csv(require("edge-feat"));
  Buffer<float> weights;
  weights.reserve(edges);
  std::int64_t columns = -1;
  while (csv.next_line()) {
    if (columns < 0) {
      columns = csv.count_fields();
      check_weight_column(csv, *options_.edge_weight);
    }
    for (std::int64_t k = 0; k < *options_.edge_weight; ++k) csv.skip_field();
    const auto weight = static_cast<float>(csv.number());
    if (!(weight >= 0 && std::isfinite(weight)))
      csv.fail("weight {} is not a finite number of at least 0", weight);
    if (csv.count_fields() != columns)
      csv.fail("has {} fields, the first line has {}", csv.count_fields(), columns);
    weights.push_back(weight);
  }
  check_lines(csv, static_cast<std::int64_t>(weights.size()), edges, "edges");
  return weights;
}

// ---- vertices ----

template <class T>
Matrix<T> OgbFolder::read_features() const {
  const auto path = find("node-feat");
  Matrix<T> features;
  if (path.empty()) return features;
  const auto rows = open_feature_table(path, nodes_);
  features.resize(nodes_, rows->columns());
  read_rows(*rows, features);
  rows->finish();
  return features;
}

template Matrix<float> OgbFolder::read_features() const;
template Matrix<Half> OgbFolder::read_features() const;

std::unique_ptr<FeatureRows> OgbFolder::open_edge_features(std::int64_t edges) const {
  const auto path = options_.edge_features ? find("edge-feat") : "";
  if (path.empty()) return nullptr;
  auto rows = open_feature_table(path, edges, "edges");
  return options_.edge_weight ? without_column(std::move(rows), *options_.edge_weight) : std::move(rows);
}

OgbLabels OgbFolder::read_labels() const {
  const auto path = find("node-label");
  return path.empty() ? OgbLabels() : read_label_table(path, nodes_);
}

std::string OgbFolder::split_folder(const std::string& split) const {
  return find_split_folder(options_.folder, split);
}

Splits OgbFolder::read_splits(const OgbLabels& labels, const std::string& split) const {
  const auto folder = split_folder(split);
  if (folder.empty() || is_split_of_links(folder, options_.folder)) return {};
  const TableVertices vertices{nodes_, fmt::format("num-node-list says {} vertices", nodes_)};
  return read_split_tables(folder, vertices, labels, HiddenTests::kRefuse);
}

}  // namespace espalier
