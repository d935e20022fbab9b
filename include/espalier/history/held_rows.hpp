// What a cache of history holds when a step begins: rows by layer and by age, of ages from 2^k to
// 2^(k+1) - 1 together, the same numbers on every grid.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "espalier/comm/communicator.hpp"

namespace espalier {

/// A row that a rank holds, of some layer.
struct HeldRow {
  int layer = 0;
  std::int64_t vertex = 0, age = 0;  ///< age: 1 or more
};

/// Rows of one layer and of similar ages.
struct HeldHistory {
  int layer = 0;
  std::int64_t youngest = 0, oldest = 0;  ///< the ages that are meant: 2^k, 2^(k+1) - 1
  std::int64_t rows = 0;
};

/// Collective. What all ranks hold, by layer and age; none that are empty.
std::vector<HeldHistory> count_held(const Communicator& world, std::span<const HeldRow> held);

}  // namespace espalier
