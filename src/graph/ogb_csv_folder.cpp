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
// graphs without types (ogb_import.hpp): the same tables, in FOLDER/raw itself.
#include <optional>

#include "edge_pieces.hpp"
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
  OgbCsvFolder(const OgbOptions& options, bool typed) : OgbFolder(options, "OGB raw csv") {
    typed ? read_types() : read_plain();
  }

  std::string place() const override { return typed() ? raw_.string() : edge_table(0); }
  void read_edges(int triplet, const std::function<void(const EdgePiece&)>& use) const override;
  std::string edge_place(int triplet, std::int64_t edge) const override {
    return fmt::format("{}:{}", edge_table(triplet), edge + 1);
  }
  std::unique_ptr<FeatureRows> open_features(int type) const override {
    return open_feature_table(table_of("node-feat", type), vertices(type).count);
  }
  std::unique_ptr<FeatureRows> open_labels(int type) const override {
    const bool has = !typed() || labelled_.contains(type);
    return open_feature_table(has ? table_of("node-label", type) : "", vertices(type).count);
  }

 protected:
  std::unique_ptr<FeatureRows> open_all_edge_features(int triplet, std::int64_t edges) const override {
    return open_feature_table(table_of_edges(triplet, "edge-feat"), edges,
                              typed() ? "edges of " + triplets()[triplet].joined() : "edges");
  }

 private:
  // Paths: empty when absent.
  std::string table_of(const char* stem, int type) const {
    return find_table(typed() ? raw_ / stem / name(type) : raw_, stem);
  }
  fs::path relation_folder(int triplet) const { return raw_ / "relations" / triplets()[triplet].joined(); }
  std::string table_of_edges(int triplet, const char* stem) const {
    return find_table(typed() ? relation_folder(triplet) : raw_, stem);
  }
  std::string edge_table(int triplet) const { return table_of_edges(triplet, "edge"); }
  std::string require(const char* stem) const;

  void read_plain();
  void read_types();
  void read_triplets();

  std::set<int> labelled_;  // where there are types
};

std::string OgbCsvFolder::require(const char* stem) const {
  auto path = find_table(raw_, stem);
  if (path.empty())
    input_error(
        "{}/raw/{}.csv.gz: no such file, nor without .gz; FOLDER must have the raw csv layout of OGB, with "
        "FOLDER/raw/edge.csv.gz and FOLDER/raw/num-node-list.csv.gz, or the binary one, with "
        "FOLDER/raw/data.npz",
        options_.folder, stem);
  return path;
}

void OgbCsvFolder::read_plain() {
  if (!fs::is_directory(options_.folder)) input_error("{}: no such folder", options_.folder);
  const auto counts = require("num-node-list");
  const auto nodes = read_count(counts);
  if (nodes == 0) input_error("{}: the graph has no vertex", counts);
  set_plain(nodes, fmt::format("num-node-list says {} vertices", nodes));
  require("edge");
  find_splits({}, {});
  if (!weighted(0)) return;
  CsvReader csv(require("edge-feat"));
  if (csv.next_line()) check_edge_weight(csv.path(), csv.count_fields());
}

void OgbCsvFolder::read_types() {
  for (const auto& [name, size] : read_type_sizes(find_table(raw_, "num-node-dict"))) add_type(name, size);
  read_triplets();
  const auto labels = raw_ / "node-label";
  labelled_ = types_with(*this, find_table(raw_, "nodetype-has-label"), labels, "labels");
  for (const int type : labelled_)
    if (table_of("node-label", type).empty())
      input_error("{}/node-label.csv.gz: no such file, nor without .gz, but {} has labels",
                  (labels / name(type)).string(), name(type));
  find_splits([&](int type) { return labelled_.contains(type); }, labels);
}

void OgbCsvFolder::read_triplets() {
  const auto path = find_table(raw_, "triplet-type-list");
  if (path.empty()) input_error("{}/triplet-type-list.csv.gz: no such file, nor without .gz", raw_.string());
  CsvReader csv(path);
  while (csv.next_line()) {
    Triplet triplet;
    for (auto* name : {&triplet.head, &triplet.relation, &triplet.tail}) *name = csv.text();
    csv.end_line();
    if (options_.inverses) triplet.inverse = "rev_" + triplet.relation;
    add_triplet(triplet, fmt::format("{}:{}", path, csv.line()));
  }
  check_names(path);
  for (int t = 0; t < std::ssize(triplets()); ++t)
    if (edge_table(t).empty())
      input_error("{}:{}: names the triplet {}, but there is no {}/edge.csv.gz, nor without .gz", path, t + 1,
                  triplets()[t].joined(), relation_folder(t).string());
}

void OgbCsvFolder::read_edges(int triplet, const std::function<void(const EdgePiece&)>& use) const {
  std::optional<WeightTable> weights;
  if (weighted(0)) weights.emplace(require("edge-feat"), *options_.edge_weight);
  EdgePieces pieces(weighted(0), use);
  bool enough = true;  // weights
  const auto edges =
      read_edge_table(edge_table(triplet), heads(triplet), tails(triplet),
                      table_of_edges(triplet, "num-edge-list"), [&](std::int64_t head, std::int64_t tail) {
                        enough = enough && (!weights || weights->next(pieces.vanished()));
                        if (enough) pieces.add(head, tail, weights ? weights->weight() : 1);
                      });
  if (weights) weights->finish(edges);
  pieces.finish();
}

}  // namespace

std::unique_ptr<GraphSource> open_csv_ogb_folder(const OgbOptions& options, bool typed) {
  return std::make_unique<OgbCsvFolder>(options, typed);
}

}  // namespace espalier
