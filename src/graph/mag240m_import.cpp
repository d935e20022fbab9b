#include "espalier/graph/mag240m_import.hpp"

#include <algorithm>
#include <filesystem>

#include "array_tables.hpp"
#include "espalier/base/error.hpp"
#include "input_files.hpp"
#include "ogb_folder.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

class Mag240mFolder : public GraphSource {
 public:
  explicit Mag240mFolder(const TypedImportOptions& options)
      : GraphSource(describe_folder(options.folder, "MAG240M"), import_options(options)),
        processed_(fs::path(options.folder) / "processed"),
        split_(fs::path(options.folder) / "split") {
    if (!fs::is_directory(processed_)) input_error("{}: no such folder", processed_.string());
    read_types(options.folder);
    find_triplets(options.inverses);
    find_target();
  }

  std::string place() const override { return processed_.string(); }
  void read_edges(int triplet, const std::function<void(const EdgePiece&)>& use) const override {
    read_edge_pairs([&] { return open_npy(edge_array(triplet)); }, heads(triplet), tails(triplet), use);
  }
  std::string edge_place(int triplet, std::int64_t edge) const override {
    return edge_of_array(edge_array(triplet), edge);
  }
  std::unique_ptr<FeatureRows> open_features(int type) const override { return open_rows(type, "node_feat"); }
  std::unique_ptr<FeatureRows> open_labels(int type) const override { return open_rows(type, "node_label"); }
  bool has_split(int type, std::size_t, Split) const override { return type == target_; }
  Splits read_splits(int type, const OgbLabels& labels, std::size_t) const override {
    return read_split_arrays(split_, vertices(type), labels, HiddenTests::kLeave);
  }

 private:
  std::string edge_array(int triplet) const {
    return (processed_ / triplets()[triplet].joined() / "edge_index.npy").string();
  }
  std::string array_of(int type, const std::string& array) const {
    return (processed_ / name(type) / (array + ".npy")).string();
  }

  std::unique_ptr<FeatureRows> open_rows(int type, const std::string& array) const {
    const auto path = array_of(type, array);
    return fs::exists(path) ? open_feature_array(open_npy(path), types()[type].size()) : nullptr;
  }

  void read_types(const std::string& folder);
  void find_triplets(bool inverses);
  void find_target();

  fs::path processed_, split_;
  int target_ = -1;  // the type that the splits are of; -1: there are none
};

void Mag240mFolder::read_types(const std::string& folder) {
  const auto path = find_table(folder, "num-node-dict");
  if (path.empty())
    input_error("{}/num-node-dict.csv: no such file; scripts/mag240m_pickles.py {} makes it from meta.pt",
                folder, folder);
  for (const auto& [name, size] : read_type_sizes(path)) add_type(name, size);
}

// The folders that are called so, in ascending order.
void Mag240mFolder::find_triplets(bool inverses) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(processed_))
    if (entry.is_directory() && !split_triplet(entry.path().filename()).head.empty())
      names.push_back(entry.path().filename());
  std::ranges::sort(names);
  for (const auto& name : names) add_triplet(split_triplet(name, inverses), (processed_ / name).string());
  check_names(processed_.string());
}

void Mag240mFolder::find_target() {
  if (!fs::is_directory(split_)) return;
  for (int type = 0; type < std::ssize(types()); ++type) {
    if (!fs::exists(array_of(type, "node_label"))) continue;
    if (target_ >= 0)
      input_error("{}: {} and {} have labels; of which are the splits in {}?", processed_.string(),
                  name(target_), name(type), split_.string());
    target_ = type;
  }
  if (target_ < 0)
    input_error("{}: holds splits, but no type has labels in {}", split_.string(), processed_.string());
}

}  // namespace

void import_mag240m(const Communicator& comm, const TypedImportOptions& options, const OutputFile& output) {
  import_graph(comm, output, [&] {
    refuse_input_as_output(options.folder, output.path, {"processed", "split"});
    return std::make_unique<Mag240mFolder>(options);
  });
}

}  // namespace espalier
