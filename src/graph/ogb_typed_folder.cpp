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
// Ids count within a type. Without a table of flags a type has what files it has.
#include "edge_pieces.hpp"
#include "ogb_tables.hpp"
#include "ogb_typed_splits.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

class OgbTypedFolder : public OgbFolderOfTypes {
 public:
  explicit OgbTypedFolder(const TypedImportOptions& options)
      : OgbFolderOfTypes(describe_folder(options.folder, "OGB raw csv")),
        raw_(fs::path(options.folder) / "raw") {
    for (const auto& [name, size] : read_type_sizes(find_table(raw_, "num-node-dict"))) add_type(name, size);
    read_triplets();
    const auto labels = raw_ / "node-label";
    labelled_ = types_with(*this, find_table(raw_, "nodetype-has-label"), labels, "labels");
    for (const int type : labelled_)
      if (label_table(type).empty())
        input_error("{}/node-label.csv.gz: no such file, nor without .gz, but {} has labels",
                    (labels / name(type)).string(), name(type));
    find_splits(
        options, [&](int type) { return labelled_.contains(type); }, labels);
  }

  std::string place() const override { return raw_.string(); }
  void read_edges(int triplet, const std::function<void(const EdgePiece&)>& use) const override {
    EdgePieces pieces(false, use);
    read_edge_table(edge_table(triplet), heads(triplet), tails(triplet),
                    find_table(relation_folder(triplet), "num-edge-list"),
                    [&](std::int64_t head, std::int64_t tail) { pieces.add(head, tail, 1); });
    pieces.finish();
  }
  std::string edge_place(int triplet, std::int64_t edge) const override {
    return fmt::format("{}:{}", edge_table(triplet), edge + 1);
  }

  std::unique_ptr<FeatureRows> open_features(int type) const override {
    return open_feature_table(find_table(raw_ / "node-feat" / name(type), "node-feat"), types()[type].size());
  }
  std::unique_ptr<FeatureRows> open_edge_features(int triplet, std::int64_t edges) const override {
    return open_feature_table(find_table(relation_folder(triplet), "edge-feat"), edges,
                              "edges of " + triplets()[triplet].joined());
  }
  std::unique_ptr<FeatureRows> open_labels(int type) const override {
    return open_feature_table(labelled_.contains(type) ? label_table(type) : "", types()[type].size());
  }

 private:
  fs::path relation_folder(int triplet) const { return raw_ / "relations" / triplets()[triplet].joined(); }
  std::string edge_table(int triplet) const { return find_table(relation_folder(triplet), "edge"); }
  std::string label_table(int type) const {
    return find_table(raw_ / "node-label" / name(type), "node-label");
  }

  void read_triplets();

  fs::path raw_;
  std::set<int> labelled_;
};

void OgbTypedFolder::read_triplets() {
  const auto path = find_table(raw_, "triplet-type-list");
  if (path.empty()) input_error("{}/triplet-type-list.csv.gz: no such file, nor without .gz", raw_.string());
  CsvReader csv(path);
  while (csv.next_line()) {
    Triplet triplet;
    for (auto* name : {&triplet.head, &triplet.relation, &triplet.tail}) *name = csv.text();
    csv.end_line();
    add_triplet(triplet, fmt::format("{}:{}", path, csv.line()));
  }
  check_names(path);
  for (int t = 0; t < std::ssize(triplets()); ++t)
    if (edge_table(t).empty())
      input_error("{}:{}: names the triplet {}, but there is no {}/edge.csv.gz, nor without .gz", path, t + 1,
                  triplets()[t].joined(), relation_folder(t).string());
}

}  // namespace

std::unique_ptr<TypedFolder> open_typed_ogb_folder(const TypedImportOptions& options) {
  return std::make_unique<OgbTypedFolder>(options);
}

}  // namespace espalier
