// A folder of OGB's, whatever the layout of its tables or arrays: its splits, weights among the
// features of edges, and the tables whose columns are types.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "espalier/graph/ogb_import.hpp"
#include "graph_source.hpp"
#include "ogb_tables.hpp"

namespace espalier {

/// A table of types and their numbers of vertices, such as num-node-dict, in its order.
std::vector<std::pair<std::string, std::int64_t>> read_type_sizes(const std::string& path);

/// The types that have `things`: those whose flag in the table `flags` is True; where that path is
/// empty, those that have a folder in `parts`. Throws UserError when one has a flag and no folder.
std::set<int> types_with(const GraphSource& source, const std::string& flags,
                         const std::filesystem::path& parts, const std::string& things);

/// What becomes of such a folder.
ImportOptions import_options(const TypedImportOptions& options, bool symmetrize = false);

/// Splits are FOLDER/split/NAME/{train,valid,test}.csv.gz or, where there are none, .npy; of a
/// graph with types NAME/TYPE/train.csv.gz of the types that nodetype-has-split.csv.gz names.
class OgbFolder : public GraphSource {
 public:
  /// `options` must outlive it.
  OgbFolder(const OgbOptions& options, const std::string& layout)
      : GraphSource(describe_folder(options.folder, layout), import_options(options, options.symmetrize)),
        options_(options),
        raw_(std::filesystem::path(options.folder) / "raw") {}

  bool weighted(int) const override { return options_.edge_weight.has_value(); }
  std::string one_direction_by() const override { return espalier::one_direction_by(options_.folder); }
  /// Without the column of weights.
  std::unique_ptr<FeatureRows> open_edge_features(int triplet, std::int64_t edges) const override;
  bool has_split(int type, std::size_t place, Split) const override {
    return splits_[place].types.contains(type);
  }
  Splits read_splits(int type, const OgbLabels& labels, std::size_t place) const override;

 protected:
  /// When all types are known: finds the splits that are asked for. Throws UserError when one is
  /// not there, is a pickle, or is of a type that has no labels in `labels`.
  void find_splits(const std::function<bool(int)>& has_labels, const std::filesystem::path& labels);
  /// Throws UserError(kUsage) where features of edges, so many columns at `place`, have none that
  /// is the weight.
  void check_edge_weight(const std::string& place, std::int64_t columns) const;
  /// All columns; null where edges have none.
  virtual std::unique_ptr<FeatureRows> open_all_edge_features(int triplet, std::int64_t edges) const = 0;

  const OgbOptions& options_;
  std::filesystem::path raw_;

 private:
  struct OneSplit {
    std::string folder;
    std::set<int> types;
  };
  std::vector<OneSplit> splits_;  // as they were asked for
};

/// The layouts of csv tables and of arrays.
std::unique_ptr<GraphSource> open_csv_ogb_folder(const OgbOptions& options, bool typed);
std::unique_ptr<GraphSource> open_binary_ogb_folder(const OgbOptions& options, bool typed);

}  // namespace espalier
