// A folder of OGB's with types, whatever the layout of its arrays or tables: the tables whose
// columns are types, and the splits that such a table announces.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "espalier/graph/typed_import.hpp"
#include "ogb_tables.hpp"
#include "typed_folder.hpp"

namespace espalier {

/// A table of types and their numbers of vertices, such as num-node-dict, in its order.
std::vector<std::pair<std::string, std::int64_t>> read_type_sizes(const std::string& path);

/// The types that have `things`: those whose flag in the table `flags` is True; where that path is
/// empty, those that have a folder in `parts`. Throws UserError when one has a flag and no folder.
std::set<int> types_with(const TypedFolder& folder, const std::string& flags,
                         const std::filesystem::path& parts, const std::string& things);

/// Splits are FOLDER/split/NAME/{nodetype-has-split.csv.gz, TYPE/{train,valid,test}.csv.gz}, all
/// optional.
class OgbFolderOfTypes : public TypedFolder {
 public:
  using TypedFolder::TypedFolder;
  bool has_split(int type, std::size_t place) const override { return splits_[place].types.contains(type); }
  Splits read_splits(int type, const OgbLabels& labels, std::size_t place) const override;

 protected:
  /// When all types are known: finds the splits that are asked for. Throws UserError when one is
  /// not there, is a pickle, or is of a type that has no labels in `labels`.
  void find_splits(const TypedImportOptions& options, const std::function<bool(int)>& has_labels,
                   const std::filesystem::path& labels);

 private:
  struct OneSplit {
    std::string folder;
    std::set<int> types;
  };
  std::vector<OneSplit> splits_;
};

/// The layouts of csv tables and of arrays.
std::unique_ptr<TypedFolder> open_typed_ogb_folder(const TypedImportOptions& options);
std::unique_ptr<TypedFolder> open_binary_ogb_folder(const TypedImportOptions& options);

}  // namespace espalier
