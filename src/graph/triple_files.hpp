// Files of triples, read by one rank: names become numbers.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "espalier/base/buffer.hpp"

namespace espalier {

/// In the order of entries of a matrix whose rows are tails. 12 bytes: names of 2^31 entities would
/// be in memory beside them.
struct Triple {
  std::int32_t tail = 0;
  std::int32_t relation = 0;
  std::int32_t head = 0;

  friend auto operator<=>(const Triple&, const Triple&) = default;
};

struct TripleTables {
  std::vector<std::string> entities, relations;  ///< names, ascending
  std::array<Buffer<Triple>, 3> splits;          ///< by Split; ascending, each once
  std::array<std::int64_t, 3> given = {};        ///< triples in each file, repeated ones too
};

/// An empty path is a split without triples. Throws UserError(kInput) with file and line.
TripleTables read_triples(const std::array<std::string, 3>& files);

}  // namespace espalier
