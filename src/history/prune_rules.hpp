// What becomes of a row of a list, the same on CPU and GPU, and the arrays that pruning writes.
#pragma once

#include <cstdint>

#include "espalier/base/host_device.hpp"
#include "espalier/history/prune.hpp"

namespace espalier {

/// By positions in F[l].
struct PositionsOf {
  const std::int64_t* vertices;
  const std::uint8_t* hits;  ///< or null
};

/// A list D[l] that is written.
struct ListArrays {
  std::int64_t rows;  ///< N[l+1] of it, the first
  std::int64_t *positions, *vertices;
  std::uint8_t* hits;       ///< or null
  std::int32_t* column_of;  ///< [|F[l]|] of the positions that are in the list

  /// The k-th is what stands at `position`.
  ESPALIER_HD void put(std::int64_t k, std::int64_t position, const PositionsOf& from) const {
    positions[k] = position;
    vertices[k] = from.vertices[position];
    if (hits != nullptr) hits[k] = from.hits[position];
    column_of[position] = static_cast<std::int32_t>(k);
  }
};

/// A list D[l] that is dealt.
struct ListView {
  const std::int64_t* vertices;
  const std::int64_t* positions;      ///< null: the columns
  const std::uint8_t* hits;           ///< null: none
  const std::int64_t* cached_before;  ///< with hits
  std::int64_t size;
};

/// Where the rows of one layer are written; as in PrunedLayer.
struct LayerLists {
  std::int64_t *place, *computed[3], *cached[3];  ///< vertices, positions, columns
};

/// Where entries are written.
struct EntriesTo {
  std::int32_t* indices;
  Beside<float> values;
  Beside<std::uint8_t> relations;
};

/// What a block has beside its rows; small, for kernels.
struct EntriesOf {
  const std::int32_t* indices;
  Beside<const float> values;
  Beside<const std::uint8_t> relations;
};

/// An entry as it is, with another column.
ESPALIER_HD inline void copy_entry(const EntriesOf& from, std::int64_t e, const std::int32_t* column_of,
                                   std::int64_t at, const EntriesTo& to) {
  to.indices[at] = column_of[from.indices[e]];
  if (to.values != nullptr) to.values[at] = from.values[e];
  if (to.relations != nullptr) to.relations[at] = from.relations[e];
}

/// Row `column` of a list where it belongs.
ESPALIER_HD inline void deal_row(const ListView& list, std::int64_t column, const LayerLists& to) {
  const bool is_cached = list.hits != nullptr && list.hits[column] != 0;
  const auto cached = list.hits == nullptr ? 0 : list.cached_before[column];
  const auto number = is_cached ? cached : column - cached;
  to.place[column] = is_cached ? ~number : number;
  auto* const* const lists = is_cached ? to.cached : to.computed;
  lists[0][number] = list.vertices[column];
  lists[1][number] = list.positions == nullptr ? column : list.positions[column];
  lists[2][number] = column;
}

}  // namespace espalier
