#include "ogb_binary_folder.hpp"

#include <filesystem>
#include <optional>

#include "array_tables.hpp"
#include "espalier/base/error.hpp"
#include "npz_file.hpp"
#include "ogb_meta.hpp"
#include "ogb_typed_splits.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

class OgbBinaryFolder : public TypedFolder {
 public:
  explicit OgbBinaryFolder(const TypedImportOptions& options)
      : options_(options),
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
    splits_ = open_splits(*this, options);
    for (const auto& split : splits_)
      for (const int type : split.types())
        if (!has(labels_, type))
          input_error("{}: {} has a split, but no labels in {}", split.folder(), name(type),
                      (raw_ / "node-label.npz").string());
  }

  GraphDescription describe() const override { return describe_folder(options_.folder, "OGB raw binary"); }
  std::string place() const override { return edges_.path(); }
  void read_edges(int triplet, const std::function<void(const EdgePiece&)>& use) const override {
    const auto& of = triplets()[triplet];
    read_edge_pairs([&] { return edges_.open(joined(triplet)); }, vertices(type_of(of.head)),
                    vertices(type_of(of.tail)), use);
  }
  std::string edge_place(int triplet, std::int64_t edge) const override {
    return edge_of_array(edges_.open(joined(triplet))->name(), edge);
  }
  std::unique_ptr<FeatureRows> open_features(int type) const override {
    if (!has(features_, type)) return nullptr;
    return open_feature_array(features_->open(name(type)), types()[type].size());
  }
  std::unique_ptr<FeatureRows> open_edge_features(int triplet, std::int64_t edges) const override {
    if (!edge_features_ || !edge_features_->has(joined(triplet))) return nullptr;
    return open_feature_array(edge_features_->open(joined(triplet)), edges, "edges");
  }
  OgbLabels read_labels(int type) const override {
    return has(labels_, type) ? read_label_array(*labels_->open(name(type)), types()[type].size())
                              : OgbLabels();
  }
  bool has_split(int type, std::size_t place) const override { return splits_[place].types().contains(type); }
  Splits read_splits(int type, const OgbLabels& labels, std::size_t place) const override {
    return splits_[place].read(name(type), {types()[type].size(), size_in_words(type)}, labels);
  }

 private:
  const std::string& name(int type) const { return types()[type].name; }
  std::string joined(int triplet) const { return triplets()[triplet].joined(); }
  ArrayVertices vertices(int type) const { return {types()[type].size(), size_in_words(type)}; }
  bool has(const std::optional<NpzFile>& archive, int type) const {
    return archive && archive->has(name(type));
  }

  void read_types();
  void read_triplets();
  std::optional<NpzFile> open_optional(std::initializer_list<const char*> names) const;
  std::optional<NpzFile> open_of_types(std::initializer_list<const char*> names) const;

  TypedImportOptions options_;
  fs::path raw_;
  NpzFile edges_;
  std::optional<NpzFile> features_, labels_, edge_features_;
  std::vector<OgbTypedSplits> splits_;
};

void OgbBinaryFolder::read_types() {
  const NpzFile sizes((raw_ / "num_nodes_dict.npz").string());
  for (const auto& name : sizes.names()) {
    if (type_of(name) >= 0)
      input_error("{}: two vertex types are called {}", (raw_ / "num_nodes_dict.npz").string(), name);
    add_type(name, read_only_count(*sizes.open(name)));
  }
}

void OgbBinaryFolder::read_triplets() {
  const auto path = (raw_ / "edge_index_dict.npz").string(), counts = (raw_ / "num_edges_dict.npz").string();
  for (const auto& name : edges_.names()) {
    const auto triplet = split_triplet(name);
    if (triplet.head.empty())
      input_error("{}: the array {} is not called HEAD___RELATION___TAIL", path, name);
    add_triplet(triplet, path);
  }
  check_names(path);
  if (!fs::exists(counts)) return;
  const NpzFile announced(counts);
  for (const auto& name : announced.names()) {
    if (!edges_.has(name))
      input_error("{}: names the triplet {}, but {} has no such array", counts, name, path);
    if (const auto found = count_edges(*edges_.open(name)), wanted = read_only_count(*announced.open(name));
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

bool is_binary_ogb_folder(const std::string& folder) {
  return fs::exists(fs::path(folder) / "raw" / "edge_index_dict.npz");
}

std::unique_ptr<TypedFolder> open_binary_ogb_folder(const TypedImportOptions& options) {
  return std::make_unique<OgbBinaryFolder>(options);
}

}  // namespace espalier
