// Whose rows `espalier infer` writes: those of all vertices; on a graph with types those of the
// target, or of each type that --types names, in a group of its own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "espalier/infer/row_file.hpp"
#include "espalier/job/job.hpp"

namespace espalier {

/// Which rows, as `espalier infer` takes the options of these names.
struct RowsAskedFor {
  std::optional<std::string> types = {};  ///< "paper,author" or "all"; none: the target's
  std::string nodes = {};                 ///< a list of vertices; empty: all
  std::string named_by = {};              ///< "ids", "numbers" or empty: how the list names them
  bool predictions = false;               ///< their classes, too
  std::string csv = {};                   ///< the same as CSV
};

/// Collective. In the order of the file's types. `layer`: whose rows. Throws UserError(kUsage,
/// kInput) where --types, --nodes and --predictions do not fit the graph or each other.
std::vector<RowTable> row_tables(const RowsAskedFor& asked, const Job& job, std::int64_t layer);

/// The types that they are of, "paper,author": none of a graph without types.
std::string types_of(const std::vector<RowTable>& tables, const GraphInfo& graph);

/// A warning to the listener of the job, of rows that no loss has read.
void warn_of_untrained(const RowFileShape& shape, const Job& job);

}  // namespace espalier
