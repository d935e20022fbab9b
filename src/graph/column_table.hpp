// The table of columns.
#pragma once

#include <compare>
#include <cstddef>
#include <span>
#include <string>

#include "espalier/graph/graph_file.hpp"

namespace espalier {

/// What a column is of.
enum class Of { kType, kSplit, kRelation, kLinks, kLinkSplit };
/// kIds: texts, or int64.
enum class Holds { kNumbers, kIntegers, kTexts, kIds };

struct ColumnLine {
  Column column;
  Of of;
  const char* folder;  ///< "nodes"; below it is the type, or relation, that it is of, if
                       ///< there are some
  const char* name;    ///< "features"
  Holds holds;
  std::size_t least = 1, most = 1;    ///< dimensions
  const char* a_row_for_each = "";    ///< "vertices"; empty: it has as many as it likes
  const char* typed_folder = folder;  ///< where the graph has types
};

/// In the order of Column.
std::span<const ColumnLine> column_table();
inline const ColumnLine& line_of(Column column) {
  return column_table()[static_cast<std::size_t>(column)];
}

/// One column of a file.
struct ColumnAt {
  Column column;
  int owner = 0;           ///< the type, the relation, or the split of links
  std::string split = {};  ///< of a split of a type its name, if it has one

  auto operator<=>(const ColumnAt&) const = default;
};

/// The column of a part of a split.
inline Column split_column(Split split) {
  return static_cast<Column>(static_cast<int>(Column::kTrain) + static_cast<int>(split));
}

/// "/nodes/paper/features". `schema`: null for a graph without types.
std::string path_of(const ColumnAt& at, const Schema* schema);

}  // namespace espalier
