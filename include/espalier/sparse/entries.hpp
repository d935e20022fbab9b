// Rows of picks: some entries of some sparse rows. What draws put out, and what exchanges send.
#pragma once

#include <cstdint>

#include "espalier/base/device_array.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

/// Row r has ids[offsets[r] .. offsets[r+1]), and the values beside them, unless they are empty.
template <class Id, class Space = Cpu>
struct Entries {
  Array<Space, std::int64_t> offsets = no_row_starts<Space>();  ///< [rows + 1]
  Array<Space, Id> ids;                                         ///< [entries]
  Array<Space, float> values;                                   ///< [entries], or empty

  std::int64_t rows() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
  std::int64_t entries() const { return static_cast<std::int64_t>(ids.size()); }
  std::int64_t bytes() const { return entries() * sizeof(Id) + values.size() * sizeof(float); }

  // On the CPU rows are looked at, and grow one by one.
  std::int64_t begin(std::int64_t row) const { return offsets[row]; }
  std::int64_t size(std::int64_t row) const { return offsets[row + 1] - offsets[row]; }
  void end_row() { offsets.push_back(entries()); }
  void clear() {
    offsets.resize(1);
    ids.clear();
    values.clear();
  }
};

}  // namespace espalier
