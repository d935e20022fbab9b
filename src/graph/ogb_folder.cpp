#include "ogb_folder.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "espalier/graph/csv.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

std::int64_t read_count(const std::string& path) {
  CsvReader csv(path);
  if (!csv.next_line()) input_error("{}: is empty; expected one number", path);
  const auto count = csv.integer();
  csv.end_line();
  if (count < 0) csv.fail("{} is not a number of things", count);
  if (csv.next_line()) csv.fail("a second graph; only folders with one graph (ogbn sets) can be imported");
  return count;
}

void check_lines(const CsvReader& csv, std::int64_t lines, std::int64_t wanted, const char* things) {
  if (lines == wanted) return;
  input_error("{}: has {} lines, but there are {} {}; is the download complete?", csv.path(), lines, wanted,
              things);
}

void check_weight_column(const CsvReader& csv, std::int64_t column) {
  const auto columns = csv.count_fields();
  if (column >= columns)
    usage_error("--edge-weight {}: {} has {} column{}, counted from 0", column, csv.path(), columns,
                columns == 1 ? "" : "s");
}

std::int64_t vertex(CsvReader& csv, std::int64_t nodes) {
  const auto id = csv.integer();
  if (id < 0 || id >= nodes)
    csv.fail("vertex {} is out of range: num-node-list says {} vertices, 0 to {}", id, nodes, nodes - 1);
  return id;
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
  for (const char* ending : {".csv.gz", ".csv"}) {
    const auto path = fs::path(options_.folder) / "raw" / (stem + ending);
    if (fs::exists(path)) return path.string();
  }
  return {};
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

namespace {

// meta.json, or an empty object where there is no such file or it is something else.
nlohmann::json read_meta(const fs::path& folder) {
  auto none = nlohmann::json::object();
  std::error_code error;
  if (!fs::is_regular_file(folder / "meta.json", error)) return none;
  std::ifstream file(folder / "meta.json");
  auto meta = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  return meta.is_object() ? meta : none;
}

// true, "True" and "true" say yes (OGB writes such words in quotes).
bool says(const nlohmann::json& value, bool what) {
  if (value.is_boolean()) return value.get<bool>() == what;
  if (!value.is_string()) return false;
  auto word = value.get<std::string>();
  for (auto& letter : word) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return word == (what ? "true" : "false");
}

}  // namespace

std::string OgbFolder::one_direction_by() const {
  const auto meta = read_meta(options_.folder);
  for (const auto& [key, value] :
       {std::pair{"add_inverse_edge", true}, {"is_directed", false}, {"directed", false}})
    if (const auto found = meta.find(key); found != meta.end() && says(*found, value))
      return fmt::format("\"{}\": {}", key, found->dump());
  return {};
}

GraphDescription OgbFolder::describe() const {
  const auto folder = fs::absolute(options_.folder).lexically_normal();
  const auto name = folder.filename().empty() ? folder.parent_path().filename() : folder.filename();
  GraphDescription description{name.string(), "OGB raw csv folder " + name.string(), false};
  const auto meta = read_meta(folder);
  if (meta.contains("name") && meta["name"].is_string()) description.name = meta["name"];
  if (meta.contains("source") && meta["source"].is_string()) description.source = meta["source"];
  return description;
}

// ---- edges ----

template <class Index>
EdgeList<Index> OgbFolder::read_edges() const {
  CsvReader csv(require("edge"));
  const auto count_file = find("num-edge-list");
  const auto announced = count_file.empty() ? -1 : read_count(count_file);
  EdgeList<Index> edges;
  if (announced > 0) {
    edges.sources.reserve(announced);
    edges.targets.reserve(announced);
  }
  while (csv.next_line()) {
    edges.sources.push_back(static_cast<Index>(vertex(csv, nodes_)));
    edges.targets.push_back(static_cast<Index>(vertex(csv, nodes_)));
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

// ---- features ----

namespace {

template <class T>
T stored_feature(const CsvReader& csv, double value, std::int64_t column) {
  const auto single = static_cast<float>(value);
  if (!std::isfinite(single)) csv.fail("column {} is {}, not a finite number", column, value);
  if constexpr (std::is_same_v<T, float>) {
    return single;
  } else {
    const auto half = to_half(single);
    if (!std::isfinite(to_float(half)))
      csv.fail("column {} is {}, too large for float16; import without --half", column, value);
    return half;
  }
}

}  // namespace

template <class T>
Matrix<T> OgbFolder::read_features() const {
  const auto path = find("node-feat");
  Matrix<T> features;
  if (path.empty()) return features;
  CsvReader csv(path);
  std::int64_t row = 0;
  for (; csv.next_line(); ++row) {
    if (row == 0) features.resize(nodes_, csv.count_fields());
    if (row == nodes_) csv.fail("one line too many: the graph has {} vertices", nodes_);
    auto* values = features.row(row);
    for (std::int64_t k = 0; k < features.columns; ++k) {
      if (!csv.has_field())
        csv.fail("has {} fields, the first line has {}", csv.count_fields(), features.columns);
      values[k] = stored_feature<T>(csv, csv.number(), k);
    }
    if (csv.has_field())
      csv.fail("has {} fields, the first line has {}", csv.count_fields(), features.columns);
  }
  check_lines(csv, row, nodes_, "vertices");
  return features;
}

template Matrix<float> OgbFolder::read_features() const;
template Matrix<Half> OgbFolder::read_features() const;

// ---- labels ----

namespace {

std::int32_t class_label(CsvReader& csv) {
  const double value = csv.number();
  if (std::isnan(value)) return -1;
  if (!(value >= 0 && value < std::numeric_limits<std::int32_t>::max() && value == std::floor(value)))
    csv.fail("label {} is not a whole number of at least 0, nor nan for none", value);
  return static_cast<std::int32_t>(value);
}

std::uint8_t task_label(CsvReader& csv) {
  const double value = csv.number();
  if (std::isnan(value)) return kUnknownLabel;
  if (value != 0 && value != 1)
    csv.fail(
        "label {} is not 0 or 1, nor nan for unknown; a file with several label columns holds one of these "
        "per class",
        value);
  return static_cast<std::uint8_t>(value);
}

}  // namespace

OgbLabels OgbFolder::read_labels() const {
  OgbLabels labels;
  const auto path = find("node-label");
  if (path.empty()) return labels;
  CsvReader csv(path);
  std::int64_t row = 0;
  for (; csv.next_line(); ++row) {
    if (row == 0) {
      labels.columns = csv.count_fields();
      if (labels.columns > 1) labels.multi.resize(nodes_, labels.columns);
    }
    if (row == nodes_) csv.fail("one line too many: the graph has {} vertices", nodes_);
    if (csv.count_fields() != labels.columns)
      csv.fail("has {} fields, the first line has {}", csv.count_fields(), labels.columns);
    if (labels.columns == 1) labels.classes.push_back(class_label(csv));
    for (std::int64_t k = 0; labels.columns > 1 && k < labels.columns; ++k)
      labels.multi(row, k) = task_label(csv);
  }
  check_lines(csv, row, nodes_, "vertices");
  return labels;
}

// ---- splits ----

std::string OgbFolder::split_folder() const {
  const auto parent = fs::path(options_.folder) / "split";
  std::vector<std::string> names;
  if (fs::is_directory(parent))
    for (const auto& entry : fs::directory_iterator(parent))
      if (entry.is_directory()) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "" : ", ") + name;
  if (options_.split.empty()) {
    if (names.size() > 1)
      usage_error("{} holds several splits; choose one with --split: {}", parent.string(), list);
    return names.empty() ? std::string() : (parent / names[0]).string();
  }
  if (std::find(names.begin(), names.end(), options_.split) == names.end())
    input_error("--split {}: no such folder in {}; there is {}", options_.split, parent.string(),
                names.empty() ? "none" : list);
  return (parent / options_.split).string();
}

std::array<Buffer<std::int64_t>, 3> OgbFolder::read_splits(const OgbLabels& labels) const {
  std::array<Buffer<std::int64_t>, 3> splits;
  const auto folder = split_folder();
  if (folder.empty()) return splits;
  constexpr signed char kNone = -1;
  std::vector<signed char> owner(nodes_, kNone);
  for (std::size_t s = 0; s < splits.size(); ++s) {
    const auto stem = (fs::path(folder) / kSplitNames[s]).string();
    CsvReader csv(fs::exists(stem + ".csv") && !fs::exists(stem + ".csv.gz") ? stem + ".csv"
                                                                             : stem + ".csv.gz");
    while (csv.next_line()) {
      const auto id = vertex(csv, nodes_);
      csv.end_line();
      auto& mine = owner[id];
      if (mine != kNone)
        csv.fail("vertex {} is already in {}; splits must not overlap", id, kSplitNames[mine]);
      if (labels.columns == 1 && labels.classes[id] < 0)
        csv.fail("vertex {} has no label in node-label; it cannot be in a split", id);
      mine = static_cast<signed char>(s);
    }
  }
  for (std::size_t v = 0; v < owner.size(); ++v)
    if (owner[v] != kNone) splits[owner[v]].push_back(static_cast<std::int64_t>(v));
  return splits;
}

}  // namespace espalier
