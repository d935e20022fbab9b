// A folder in OGB's binary layout of graphs with types, which its DatasetSaver writes and its
// read_binary_heterograph_raw reads: .npz archives with an array for each type, or for each triplet
// HEAD___RELATION___TAIL.
//
//   FOLDER/raw/num_nodes_dict.npz    by type: [1], its vertices
//   FOLDER/raw/edge_index_dict.npz   by triplet: [2, m], heads, then tails
//   FOLDER/raw/num_edges_dict.npz    by triplet: [1], its m
//   FOLDER/raw/edge_feat_dict.npz    by triplet: [m, f]; edge_feat.npz is the same      optional
//   FOLDER/raw/node_feat_dict.npz    by type: [n, f]; node_feat.npz is the same         optional
//   FOLDER/raw/node-label.npz        by type: [n, 1] or [n, C]                          optional
//   FOLDER/split/NAME                as in the csv layout (ogb_typed_folder.cpp)        optional
//
// OGB's saver writes splits as a pickle, split_dict.pt; scripts/mag240m_pickles.py turns it into
// the csv layout's.
#include <filesystem>
#include <optional>

#include "array_tables.hpp"
#include "espalier/base/error.hpp"
#include "npy_file.hpp"
#include "ogb_typed_splits.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

class OgbBinaryFolder : public OgbFolderOfTypes {
 public:
  explicit OgbBinaryFolder(const TypedImportOptions& options)
      : OgbFolderOfTypes(describe_folder(options.folder, "OGB raw binary")),
        raw_(fs::path(options.folder) / "raw"),
        edges_((raw_ / "edge_index_dict.npz").string()) {
    read_types();
    read_triplets();
    features_ = open_of_types({"node_feat_dict.npz", "node_feat.npz"});
    labels_ = open_of_types({"node-label.npz"});
    edge_features_ = open_optional({"edge_feat_dict.npz", "edge_feat.npz"});
    for (const auto& triplet : edge_features_ ? edge_features_->names() : std::vector<std::string>())
      if (!edges_.has(triplet))
        input_error("{}: has features of {}, but {} has no such array", edge_features_->path(), triplet,
                    edges_.path());
    find_splits(
        options, [&](int type) { return has(labels_, name(type)); }, raw_ / "node-label.npz");
  }

  std::string place() const override { return edges_.path(); }
  void read_edges(int triplet, const std::function<void(const EdgePiece&)>& use) const override {
    read_edge_pairs([&] { return edges_.open(joined(triplet)); }, heads(triplet), tails(triplet), use);
  }
  std::string edge_place(int triplet, std::int64_t edge) const override {
    return edge_of_array(edges_.open(joined(triplet))->name(), edge);
  }
  std::unique_ptr<FeatureRows> open_features(int type) const override { return open_rows(features_, type); }
  std::unique_ptr<FeatureRows> open_edge_features(int triplet, std::int64_t edges) const override {
    if (!has(edge_features_, joined(triplet))) return nullptr;
    return open_feature_array(edge_features_->open(joined(triplet)), edges, "edges");
  }
  std::unique_ptr<FeatureRows> open_labels(int type) const override { return open_rows(labels_, type); }

 private:
  std::string joined(int triplet) const { return triplets()[triplet].joined(); }
  static bool has(const std::optional<NpzFile>& archive, const std::string& array) {
    return archive && archive->has(array);
  }

  std::unique_ptr<FeatureRows> open_rows(const std::optional<NpzFile>& archive, int type) const {
    if (!has(archive, name(type))) return nullptr;
    return open_feature_array(archive->open(name(type)), types()[type].size());
  }

  void read_types();
  void read_triplets();
  std::optional<NpzFile> open_optional(std::initializer_list<const char*> names) const;
  std::optional<NpzFile> open_of_types(std::initializer_list<const char*> names) const;

  fs::path raw_;
  NpzFile edges_;
  std::optional<NpzFile> features_, labels_, edge_features_;
};

void OgbBinaryFolder::read_types() {
  const NpzFile sizes((raw_ / "num_nodes_dict.npz").string());
  for (const auto& name : sizes.names()) {
    if (type_of(name) >= 0) input_error("{}: two vertex types are called {}", sizes.path(), name);
    add_type(name, read_only_count(*sizes.open(name)));
  }
}

void OgbBinaryFolder::read_triplets() {
  const auto& path = edges_.path();
  for (const auto& name : edges_.names()) {
    const auto triplet = split_triplet(name);
    if (triplet.head.empty())
      input_error("{}: the array {} is not called HEAD___RELATION___TAIL", path, name);
    add_triplet(triplet, path);
  }
  check_names(path);
  const auto announced = open_optional({"num_edges_dict.npz"});
  for (const auto& name : announced ? announced->names() : std::vector<std::string>()) {
    if (!edges_.has(name))
      input_error("{}: names the triplet {}, but {} has no such array", announced->path(), name, path);
    if (const auto found = count_edges(*edges_.open(name)), wanted = read_only_count(*announced->open(name));
        found != wanted)
      input_error("{}: {} has {} edges, but there are {} by num_edges_dict.npz", path, name, found, wanted);
  }
}

std::optional<NpzFile> OgbBinaryFolder::open_optional(std::initializer_list<const char*> names) const {
  for (const char* one : names)
    if (const auto path = raw_ / one; fs::exists(path)) return NpzFile(path.string());
  return std::nullopt;
}

std::optional<NpzFile> OgbBinaryFolder::open_of_types(std::initializer_list<const char*> names) const {
  auto archive = open_optional(names);
  for (const auto& type : archive ? archive->names() : std::vector<std::string>())
    if (type_of(type) < 0) input_error("{}: there is no vertex type \"{}\"", archive->path(), type);
  return archive;
}

}  // namespace

std::unique_ptr<TypedFolder> open_binary_ogb_folder(const TypedImportOptions& options) {
  return std::make_unique<OgbBinaryFolder>(options);
}

}  // namespace espalier
