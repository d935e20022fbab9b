// What became of edges that are imported, in words.
#pragma once

#include <cstdint>
#include <string>

#include "espalier/graph/edge_list.hpp"

namespace espalier {

struct EdgeReport {
  EdgeOptions options;
  bool weighted = false, featured = false, timed = false;
  bool by_keys = false;               ///< as ImportOptions
  std::string line = "line";          ///< what an edge is in its file
  std::string one_direction_by = {};  ///< who says that only one direction of each edge is listed
  bool advises = true;                ///< there are options or keys that another choice takes
};

/// Words that name options of the command, with the keys of a description in their place.
std::string in_keys(std::string words);

/// Warns of so many weights, of all that were given, that float32 holds as 0: whoever weighs edges
/// so lightly hardly means that they are to weigh nothing.
void report_vanished(const EdgeReport& of, std::int64_t vanished, std::int64_t given);

/// Prints what met, and what came of it: a warning with the default, which nobody may have asked
/// for. `to_keep`: what keeps how often an edge is listed.
void report_repeated(const std::string& met, const EdgeReport& of, const std::string& to_keep);

/// Prints what was read of a graph without types, what met in one entry, and which entries have no
/// reverse.
void report_edges(const EdgeReport& of, const EdgeCounts& counts, std::int64_t entries, std::int64_t one_way,
                  double seconds);

}  // namespace espalier
