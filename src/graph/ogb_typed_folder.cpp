#include "ogb_typed_folder.hpp"

#include <algorithm>
#include <set>

#include "ogb_meta.hpp"
#include "ogb_tables.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

std::string place(const CsvReader& csv) {
  return fmt::format("{}:{}", csv.path(), csv.line());
}

// The first line of a table whose columns are types.
std::vector<std::string> read_header(CsvReader& csv) {
  std::vector<std::string> names;
  if (!csv.next_line()) input_error("{}: is empty; expected a line of vertex types", csv.path());
  while (csv.has_field()) names.emplace_back(csv.text());
  for (auto name = names.begin(); name != names.end(); ++name)
    if (std::find(names.begin(), name, *name) != name) csv.fail("two vertex types are called {}", *name);
  return names;
}

// The second line of such a table.
void next_values(CsvReader& csv, std::size_t types) {
  if (!csv.next_line()) input_error("{}: ends after its header", csv.path());
  if (csv.count_fields() != static_cast<std::int64_t>(types))
    csv.fail("has {} fields, the header has {}", csv.count_fields(), types);
}

bool flag(CsvReader& csv) {
  const auto word = csv.text();
  if (word == "True" || word == "true" || word == "1") return true;
  if (word != "False" && word != "false" && word != "0") csv.fail("a flag is neither True nor False");
  return false;
}

class OgbTypedFolder : public TypedFolder {
 public:
  explicit OgbTypedFolder(const TypedOptions& options)
      : options_(options), raw_(fs::path(options.folder) / "raw") {
    read_types();
    read_triplets();
    split_folder_ = find_split_folder(options.folder, options.split);
    labelled_ = types_with(raw_, "nodetype-has-label", "node-label", "labels");
    if (!split_folder_.empty()) split_ = types_with(split_folder_, "nodetype-has-split", "", "splits");
    check_targets();
  }

  GraphDescription describe() const override { return describe_folder(options_.folder, "OGB raw csv"); }

  std::int64_t announced_edges(int triplet) const override {
    const auto path = find_table(relation_folder(triplet), "num-edge-list");
    return path.empty() ? 0 : read_count(path);
  }
  void read_edges(int triplet, EdgeSink& sink) const override;
  std::string edge_place(int triplet, std::int64_t edge) const override {
    return fmt::format("{}:{}", edge_table(triplet), edge + 1);
  }

  std::unique_ptr<FeatureRows> open_features(int type) const override {
    const auto path = find_table(raw_ / "node-feat" / name(type), "node-feat");
    return path.empty() ? nullptr : open_feature_table(path, types()[type].size());
  }
  OgbLabels read_labels(int type) const override {
    if (!labelled_.contains(type)) return {};
    return read_label_table(find_table(raw_ / "node-label" / name(type), "node-label"), types()[type].size());
  }
  bool has_split(int type) const override { return split_.contains(type); }
  Splits read_splits(int type, const OgbLabels& labels) const override {
    return read_split_tables((fs::path(split_folder_) / name(type)).string(), vertices(type), labels,
                             HiddenTests::kLeave);
  }

 private:
  const std::string& name(int type) const { return types()[type].name; }
  TableVertices vertices(int type) const { return {types()[type].size(), size_in_words(type)}; }
  int type_of(const std::string& name) const {
    const auto* found = find_type(name);
    return found == nullptr ? -1 : static_cast<int>(found - types().data());
  }
  fs::path relation_folder(int triplet) const { return raw_ / "relations" / triplets()[triplet].joined(); }
  std::string edge_table(int triplet) const { return find_table(relation_folder(triplet), "edge"); }

  void read_types();
  void read_triplets();
  std::set<int> types_with(const fs::path& folder, const std::string& flags, const std::string& below,
                           const char* things) const;
  void check_targets() const;

  TypedOptions options_;
  fs::path raw_;
  std::string split_folder_;
  std::set<int> labelled_, split_;
};

void OgbTypedFolder::read_types() {
  CsvReader csv(find_table(raw_, "num-node-dict"));
  const auto names = read_header(csv);
  next_values(csv, names.size());
  for (const auto& name : names) {
    const auto size = csv.integer();
    if (size < 0) csv.fail("{} is not a number of vertices", size);
    add_type(name, size);
  }
  if (csv.next_line()) csv.fail("a second graph; only folders with one graph (ogbn sets) can be imported");
}

void OgbTypedFolder::read_triplets() {
  const auto path = find_table(raw_, "triplet-type-list");
  if (path.empty()) input_error("{}/triplet-type-list.csv.gz: no such file, nor without .gz", raw_.string());
  CsvReader csv(path);
  while (csv.next_line()) {
    Triplet triplet;
    for (auto* name : {&triplet.head, &triplet.relation, &triplet.tail}) *name = csv.text();
    csv.end_line();
    add_triplet(triplet, place(csv));
  }
  check_names(path);
  for (int t = 0; t < std::ssize(triplets()); ++t)
    if (edge_table(t).empty())
      input_error("{}:{}: names the triplet {}, but there is no {}/edge.csv.gz, nor without .gz", path, t + 1,
                  triplets()[t].joined(), relation_folder(t).string());
}

// The types whose flag is True in FOLDER/FLAGS; without such a table those that have a folder.
std::set<int> OgbTypedFolder::types_with(const fs::path& folder, const std::string& flags,
                                         const std::string& below, const char* things) const {
  std::set<int> found;
  const auto parts = below.empty() ? folder : folder / below;
  const auto path = find_table(folder, flags);
  if (path.empty()) {
    for (int t = 0; t < std::ssize(types()); ++t)
      if (fs::is_directory(parts / name(t))) found.insert(t);
    return found;
  }
  CsvReader csv(path);
  const auto names = read_header(csv);
  for (const auto& one : names)
    if (type_of(one) < 0) csv.fail("there is no vertex type \"{}\"", one);
  next_values(csv, names.size());
  for (const auto& one : names) {
    if (!flag(csv)) continue;
    if (!fs::is_directory(parts / one))
      csv.fail("says that {} has {}, but there is no {}", one, things, (parts / one).string());
    found.insert(type_of(one));
  }
  return found;
}

void OgbTypedFolder::check_targets() const {
  for (const int type : labelled_)
    if (const auto folder = raw_ / "node-label" / name(type); find_table(folder, "node-label").empty())
      input_error("{}/node-label.csv.gz: no such file, nor without .gz, but {} has labels", folder.string(),
                  name(type));
  for (const int type : split_)
    if (!labelled_.contains(type))
      input_error("{}: {} has a split, but no labels in {}", split_folder_, name(type),
                  (raw_ / "node-label").string());
}

// Edges in pieces of bounded size.
void OgbTypedFolder::read_edges(int triplet, EdgeSink& sink) const {
  constexpr std::size_t kPiece = 1 << 14;
  const auto head = vertices(type_of(triplets()[triplet].head)),
             tail = vertices(type_of(triplets()[triplet].tail));
  CsvReader csv(edge_table(triplet));
  std::vector<std::int64_t> heads, tails;
  std::int64_t lines = 0;
  const auto pass_on = [&] {
    sink.add_heads(heads);
    sink.add_tails(tails);
    heads.clear();
    tails.clear();
  };
  for (; csv.next_line(); ++lines) {
    heads.push_back(read_vertex(csv, head));
    tails.push_back(read_vertex(csv, tail));
    csv.end_line();
    if (heads.size() == kPiece) pass_on();
  }
  pass_on();
  if (!find_table(relation_folder(triplet), "num-edge-list").empty())
    check_lines(csv, lines, announced_edges(triplet), "edges by num-edge-list");
}

}  // namespace

bool is_typed_ogb_folder(const std::string& folder) {
  return !find_table(fs::path(folder) / "raw", "num-node-dict").empty();
}

std::unique_ptr<TypedFolder> open_typed_ogb_folder(const TypedOptions& options) {
  return std::make_unique<OgbTypedFolder>(options);
}

}  // namespace espalier
