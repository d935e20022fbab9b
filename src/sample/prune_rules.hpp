// How the needed rows of a list F[l] are numbered, the same on CPU and GPU: by what stands before
// each position.
#pragma once

#include <cstdint>

#include "espalier/base/host_device.hpp"
#include "espalier/sample/prune.hpp"

namespace espalier {

/// Which rows of a list are computed, and their numbers.
struct ComputedRows {
  const std::int32_t* before = nullptr;  ///< [rows + 1]; null: all are, each by its position
  std::int64_t rows = 0;

  ESPALIER_HD bool has(std::int64_t i) const {
    return i < rows && (before == nullptr || before[i + 1] > before[i]);
  }
  ESPALIER_HD std::int64_t number(std::int64_t i) const { return before == nullptr ? i : before[i]; }
};

/// The columns D[l] among the positions of F[l].
struct ColumnNumbers {
  ComputedRows above;                    ///< of F[l+1], a prefix of F[l]: they come first
  std::int64_t first_other = 0;          ///< |N[l+1]|
  const std::int32_t* others = nullptr;  ///< [|F[l]| + 1] needed, not above, before each position

  ESPALIER_HD std::int64_t operator()(std::int64_t i) const {
    return above.has(i) ? above.number(i) : first_other + others[i];
  }
};

/// One number of an array of the space.
struct NumberAt {
  const std::int32_t* narrow;  ///< or null,
  const std::int64_t* wide;    ///< and then here
  std::int64_t place;

  ESPALIER_HD std::int64_t operator()() const {
    return narrow == nullptr ? wide[place] : static_cast<std::int64_t>(narrow[place]);
  }
};

/// Where the lists of one layer are written; as in PrunedLayer.
struct LayerLists {
  std::int64_t *place, *computed[3], *cached[3];  ///< vertices, positions, columns
};

/// Where a block is written.
struct BlockArrays {
  std::int64_t* indptr;
  std::int32_t* indices;
  float* values;            ///< or null
  std::uint8_t* relations;  ///< or null
};

/// What a block has beside its rows; small, for kernels.
struct EntriesOf {
  const std::int32_t* indices;
  const float* values;
  const std::uint8_t* relations;
};

/// An entry as it is, with another column.
ESPALIER_HD inline void copy_entry(const EntriesOf& from, std::int64_t e, const ColumnNumbers& column,
                                   std::int64_t at, const BlockArrays& to) {
  to.indices[at] = static_cast<std::int32_t>(column(from.indices[e]));
  if (to.values != nullptr) to.values[at] = from.values[e];
  if (to.relations != nullptr) to.relations[at] = from.relations[e];
}

/// A needed row of H[l] in its lists. computed, cached: how many of either stand before each
/// position; computed null: they are numbered by column.
ESPALIER_HD inline void list_row(std::int64_t i, std::int64_t vertex, bool is_cached,
                                 const std::int32_t* computed, const std::int32_t* cached,
                                 std::int64_t column, const LayerLists& to) {
  const std::int64_t number = is_cached ? cached[i] : computed == nullptr ? column : computed[i];
  to.place[column] = is_cached ? ~number : number;
  auto* const* const lists = is_cached ? to.cached : to.computed;
  lists[0][number] = vertex;
  lists[1][number] = i;
  lists[2][number] = column;
}

}  // namespace espalier
