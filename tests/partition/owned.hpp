// Who owns what, in tests of all rooms: every law holds for ranges and for any map.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "espalier/base/philox.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/partition/ownership.hpp"

namespace espalier {

/// Whose rows they are: in ranges; by a map that deals them at random; by one that gives all to the
/// last part.
enum class Owned { kInRanges, kAtRandom, kByTheLast };
inline constexpr Owned kAllOwned[] = {Owned::kInRanges, Owned::kAtRandom, Owned::kByTheLast};

inline Ownership ownership_of(Owned owned, std::int64_t vertices, int parts) {
  if (owned == Owned::kInRanges) return block_partition(vertices, parts);
  std::vector<std::int32_t> owner;
  for (std::int64_t v = 0; v < vertices; ++v)
    owner.push_back(
        owned == Owned::kByTheLast
            ? parts - 1
            : static_cast<std::int32_t>(random64({.seed = 12, .row = static_cast<std::uint64_t>(v)}, 0) %
                                        static_cast<std::uint64_t>(parts)));
  return {std::move(owner), parts};
}

/// The rows of a part.
inline Matrix<float> rows_of_part(const Matrix<float>& rows, const Ownership& ownership, int part) {
  Matrix<float> own(ownership.size(part), rows.columns);
  for (std::int64_t k = 0; k < own.rows; ++k)
    std::copy_n(rows.row(ownership.vertex(part, k)), own.columns, own.row(k));
  return own;
}

}  // namespace espalier
