// Tables of OGB's folders whose columns are types, and the splits that such a table announces.
#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "espalier/graph/typed_import.hpp"
#include "ogb_tables.hpp"
#include "typed_folder.hpp"

namespace espalier {

/// The first line of a table whose columns are types. Throws UserError when two are alike.
std::vector<std::string> read_type_header(CsvReader& csv);

/// Moves to the line of values under such a header.
void next_type_values(CsvReader& csv, std::size_t types);

/// A table of types and their numbers of vertices, such as num-node-dict: calls add(type, size) in
/// its order.
void read_type_sizes(const std::string& path,
                     const std::function<void(const std::string&, std::int64_t)>& add);

/// What has things of types: those whose flag in FOLDER/FLAGS.csv[.gz] is True; without such a
/// table those that have a folder. Throws UserError when one has a flag and no folder.
struct TypeFlags {
  std::filesystem::path folder;
  std::string flags;            ///< the table's name
  std::filesystem::path parts;  ///< where a type's own folder is
  std::string things;           ///< in words
};
std::set<int> types_with(const TypedFolder& folder, const TypeFlags& what);

/// FOLDER/split/NAME/{nodetype-has-split.csv.gz, TYPE/{train,valid,test}.csv.gz}, all optional.
class OgbTypedSplits {
 public:
  /// Throws UserError when the split is not there, or is a pickle.
  OgbTypedSplits(const TypedFolder& folder, const std::string& path, const std::string& split);
  const std::set<int>& types() const { return types_; }
  const std::string& folder() const { return folder_; }
  Splits read(const std::string& type, const TableVertices& vertices, const OgbLabels& labels) const;

 private:
  std::string folder_;
  std::set<int> types_;
};

/// All that are asked for.
std::vector<OgbTypedSplits> open_splits(const TypedFolder& folder, const TypedImportOptions& options);

}  // namespace espalier
