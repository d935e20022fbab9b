// Which part has which entry, in tests of all rooms: every law of matrices that are cut holds for
// any parts, also where the two directions of an edge are in different ones.
#pragma once

#include <cstdint>
#include <vector>

#include "espalier/base/philox.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

/// At random; entry by entry in turn, so that a row lies with all that it has entries for; all in
/// the last part; at random, but the first part has none.
enum class Cut { kNone, kAtRandom, kInTurn, kAllInOne, kEmptyPart };
inline constexpr Cut kAllCuts[] = {Cut::kAtRandom, Cut::kInTurn, Cut::kAllInOne, Cut::kEmptyPart};

template <class Index>
std::vector<std::uint16_t> parts_of_entries(Cut cut, const Csr<Index>& whole, int parts) {
  std::vector<std::uint16_t> part;
  const auto random = [&](std::int64_t e, int below) {
    return static_cast<int>(random64({.seed = 21, .row = static_cast<std::uint64_t>(e)}, 0) %
                            static_cast<std::uint64_t>(below));
  };
  for (std::int64_t e = 0; e < whole.entries(); ++e) {
    int of = 0;
    if (cut == Cut::kAtRandom) of = random(e, parts);
    if (cut == Cut::kInTurn) of = static_cast<int>(e % parts);
    if (cut == Cut::kAllInOne) of = parts - 1;
    if (cut == Cut::kEmptyPart) of = parts == 1 ? 0 : 1 + random(e, parts - 1);
    part.push_back(static_cast<std::uint16_t>(of));
  }
  return part;
}

}  // namespace espalier
