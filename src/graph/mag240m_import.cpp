#include "espalier/graph/mag240m_import.hpp"

#include <algorithm>
#include <filesystem>

#include "array_tables.hpp"
#include "espalier/base/error.hpp"
#include "first_rank.hpp"
#include "import_typed.hpp"
#include "input_files.hpp"
#include "ogb_meta.hpp"
#include "ogb_typed_splits.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

class Mag240mFolder : public TypedFolder {
 public:
  explicit Mag240mFolder(const TypedImportOptions& options)
      : options_(options),
        processed_(fs::path(options.folder) / "processed"),
        split_(fs::path(options.folder) / "split") {
    if (!fs::is_directory(processed_)) input_error("{}: no such folder", processed_.string());
    read_types();
    find_triplets();
    find_target();
  }

  GraphDescription describe() const override { return describe_folder(options_.folder, "MAG240M"); }
  std::string place() const override { return processed_.string(); }
  void read_edges(int triplet, const std::function<void(const EdgePiece&)>& use) const override {
    const auto& of = triplets()[triplet];
    read_edge_pairs([&] { return open_npy(edge_array(triplet)); }, vertices(type_of(of.head)),
                    vertices(type_of(of.tail)), use);
  }
  std::string edge_place(int triplet, std::int64_t edge) const override {
    return edge_of_array(edge_array(triplet), edge);
  }
  std::unique_ptr<FeatureRows> open_features(int type) const override {
    const auto path = array_of(type, "node_feat");
    return fs::exists(path) ? open_feature_array(open_npy(path), types()[type].size()) : nullptr;
  }
  std::unique_ptr<FeatureRows> open_edge_features(int, std::int64_t) const override { return nullptr; }
  OgbLabels read_labels(int type) const override {
    const auto path = array_of(type, "node_label");
    return fs::exists(path) ? read_label_array(*open_npy(path), types()[type].size()) : OgbLabels();
  }
  bool has_split(int type, std::size_t) const override { return type == target_; }
  Splits read_splits(int type, const OgbLabels& labels, std::size_t) const override {
    SplitCollector splits(types()[type].size(), labels, HiddenTests::kLeave);
    for (const auto part : {Split::kTrain, Split::kValid, Split::kTest})
      read_split_array(*open_npy(split_array(part)), vertices(type), part, splits);
    return splits.finish();
  }

 private:
  ArrayVertices vertices(int type) const { return {types()[type].size(), size_in_words(type)}; }
  std::string edge_array(int triplet) const {
    return (processed_ / triplets()[triplet].joined() / "edge_index.npy").string();
  }
  std::string array_of(int type, const std::string& name) const {
    return (processed_ / types()[type].name / (name + ".npy")).string();
  }
  std::string split_array(Split part) const {
    return (split_ / (std::string(kSplitNames[static_cast<std::size_t>(part)]) + ".npy")).string();
  }

  void read_types();
  void find_triplets();
  void find_target();

  TypedImportOptions options_;
  fs::path processed_, split_;
  int target_ = -1;  // the type that the splits are of; -1: there are none
};

void Mag240mFolder::read_types() {
  const auto path = find_table(options_.folder, "num-node-dict");
  if (path.empty())
    input_error("{}/num-node-dict.csv: no such file; scripts/mag240m_pickles.py {} makes it from meta.pt",
                options_.folder, options_.folder);
  read_type_sizes(path, [&](const std::string& name, std::int64_t size) { add_type(name, size); });
}

// The folders that are called so, in ascending order.
void Mag240mFolder::find_triplets() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(processed_))
    if (entry.is_directory() && !split_triplet(entry.path().filename()).head.empty())
      names.push_back(entry.path().filename());
  std::ranges::sort(names);
  for (const auto& name : names) add_triplet(split_triplet(name), (processed_ / name).string());
  check_names(processed_.string());
}

void Mag240mFolder::find_target() {
  if (!fs::is_directory(split_)) return;
  for (int type = 0; type < std::ssize(types()); ++type) {
    if (!fs::exists(array_of(type, "node_label"))) continue;
    if (target_ >= 0)
      input_error("{}: {} and {} have labels; of which are the splits in {}?", processed_.string(),
                  types()[target_].name, types()[type].name, split_.string());
    target_ = type;
  }
  if (target_ < 0)
    input_error("{}: holds splits, but no type has labels in {}", split_.string(), processed_.string());
}

}  // namespace

void import_mag240m(const Communicator& comm, const TypedImportOptions& options, const OutputFile& output) {
  on_first_rank(comm, [&] { refuse_input_as_output(options.folder, output.path, {"processed", "split"}); });
  import_typed(comm, options, output, [&] { return std::make_unique<Mag240mFolder>(options); });
}

}  // namespace espalier
