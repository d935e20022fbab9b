#include "ogb_typed_folder.hpp"

#include <optional>
#include <set>

#include "edge_pieces.hpp"
#include "ogb_meta.hpp"
#include "ogb_tables.hpp"
#include "ogb_typed_splits.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

std::string line_of(const CsvReader& csv) {
  return fmt::format("{}:{}", csv.path(), csv.line());
}

class OgbTypedFolder : public TypedFolder {
 public:
  explicit OgbTypedFolder(const TypedImportOptions& options)
      : options_(options), raw_(fs::path(options.folder) / "raw") {
    read_types();
    read_triplets();
    splits_ = open_splits(*this, options);
    labelled_ = types_with(*this, {raw_, "nodetype-has-label", raw_ / "node-label", "labels"});
    check_targets();
  }

  GraphDescription describe() const override { return describe_folder(options_.folder, "OGB raw csv"); }

  std::string place() const override { return raw_.string(); }
  void read_edges(int triplet, const std::function<void(const EdgePiece&)>& use) const override;
  std::string edge_place(int triplet, std::int64_t edge) const override {
    return fmt::format("{}:{}", edge_table(triplet), edge + 1);
  }

  std::unique_ptr<FeatureRows> open_features(int type) const override {
    const auto path = find_table(raw_ / "node-feat" / name(type), "node-feat");
    return path.empty() ? nullptr : open_feature_table(path, types()[type].size());
  }
  std::unique_ptr<FeatureRows> open_edge_features(int triplet, std::int64_t edges) const override {
    const auto path = find_table(relation_folder(triplet), "edge-feat");
    return path.empty() ? nullptr
                        : open_feature_table(path, edges, "edges of " + triplets()[triplet].joined());
  }
  OgbLabels read_labels(int type) const override {
    if (!labelled_.contains(type)) return {};
    return read_label_table(find_table(raw_ / "node-label" / name(type), "node-label"), types()[type].size());
  }
  bool has_split(int type, std::size_t place) const override { return splits_[place].types().contains(type); }
  Splits read_splits(int type, const OgbLabels& labels, std::size_t place) const override {
    return splits_[place].read(name(type), vertices(type), labels);
  }

 private:
  const std::string& name(int type) const { return types()[type].name; }
  TableVertices vertices(int type) const { return {types()[type].size(), size_in_words(type)}; }
  fs::path relation_folder(int triplet) const { return raw_ / "relations" / triplets()[triplet].joined(); }
  std::string edge_table(int triplet) const { return find_table(relation_folder(triplet), "edge"); }

  void read_types();
  void read_triplets();
  void check_targets() const;

  TypedImportOptions options_;
  fs::path raw_;
  std::set<int> labelled_;
  std::vector<OgbTypedSplits> splits_;
};

void OgbTypedFolder::read_types() {
  read_type_sizes(find_table(raw_, "num-node-dict"),
                  [&](const std::string& name, std::int64_t size) { add_type(name, size); });
}

void OgbTypedFolder::read_triplets() {
  const auto path = find_table(raw_, "triplet-type-list");
  if (path.empty()) input_error("{}/triplet-type-list.csv.gz: no such file, nor without .gz", raw_.string());
  CsvReader csv(path);
  while (csv.next_line()) {
    Triplet triplet;
    for (auto* name : {&triplet.head, &triplet.relation, &triplet.tail}) *name = csv.text();
    csv.end_line();
    add_triplet(triplet, line_of(csv));
  }
  check_names(path);
  for (int t = 0; t < std::ssize(triplets()); ++t)
    if (edge_table(t).empty())
      input_error("{}:{}: names the triplet {}, but there is no {}/edge.csv.gz, nor without .gz", path, t + 1,
                  triplets()[t].joined(), relation_folder(t).string());
}

void OgbTypedFolder::check_targets() const {
  for (const int type : labelled_)
    if (const auto folder = raw_ / "node-label" / name(type); find_table(folder, "node-label").empty())
      input_error("{}/node-label.csv.gz: no such file, nor without .gz, but {} has labels", folder.string(),
                  name(type));
  for (const auto& split : splits_)
    for (const int type : split.types())
      if (!labelled_.contains(type))
        input_error("{}: {} has a split, but no labels in {}", split.folder(), name(type),
                    (raw_ / "node-label").string());
}

void OgbTypedFolder::read_edges(int triplet, const std::function<void(const EdgePiece&)>& use) const {
  const auto head = vertices(type_of(triplets()[triplet].head)),
             tail = vertices(type_of(triplets()[triplet].tail));
  CsvReader csv(edge_table(triplet));
  EdgePieces pieces(false, use);
  std::int64_t lines = 0;
  for (; csv.next_line(); ++lines) {
    const auto from = read_vertex(csv, head), to = read_vertex(csv, tail);
    csv.end_line();
    pieces.add(from, to, 1);
  }
  if (const auto path = find_table(relation_folder(triplet), "num-edge-list"); !path.empty())
    check_lines(csv, lines, read_count(path), "edges by num-edge-list");
  pieces.finish();
}

}  // namespace

bool is_typed_ogb_folder(const std::string& folder) {
  return !find_table(fs::path(folder) / "raw", "num-node-dict").empty();
}

std::unique_ptr<TypedFolder> open_typed_ogb_folder(const TypedImportOptions& options) {
  return std::make_unique<OgbTypedFolder>(options);
}

}  // namespace espalier
