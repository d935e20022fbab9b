// What segments must be, for the tests of both spaces.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "dense/relation_blocks.hpp"
#include "espalier/sparse/relation_segments.hpp"

namespace espalier {

/// Cover every entry once, those of a relation by row, each whole.
inline void expect_segments(const Block& block, const Buffer<std::uint8_t>& of_entries,
                            std::int64_t relations, const RelationSegments& found) {
  ASSERT_EQ(std::ssize(found.first), relations + 1);
  EXPECT_EQ(found.first[0], 0);
  std::vector<int> covered(static_cast<std::size_t>(block.entries()), 0);
  for (std::int64_t r = 0; r < relations; ++r) {
    const auto of = found.of(r);
    std::int64_t entries = 0;
    for (std::int64_t k = 0; k < of.count; ++k) {
      if (k > 0) EXPECT_LT(of.rows[k - 1], of.rows[k]);
      EXPECT_GE(of.begins[k], block.row_begin(of.rows[k]));
      EXPECT_LE(of.ends[k], block.row_end(of.rows[k]));
      for (auto e = of.begins[k]; e < of.ends[k]; ++e, ++entries) {
        ++covered[static_cast<std::size_t>(e)];
        EXPECT_EQ(of_entries[static_cast<std::size_t>(e)], r);
        EXPECT_EQ(of.numbers[e], k);
      }
    }
    EXPECT_EQ(
        found.first_entry[static_cast<std::size_t>(r + 1)] - found.first_entry[static_cast<std::size_t>(r)],
        entries);
  }
  EXPECT_TRUE(std::ranges::all_of(covered, [](int times) { return times == 1; }));
  EXPECT_LE(found.first.back(), most_segments(block.rows, block.entries(), relations));
}

/// Every entry once, ascending by (relation, source, row).
inline void expect_order(const Block& block, const Buffer<std::uint8_t>& of_entries,
                         const Buffer<std::int32_t>& order) {
  ASSERT_EQ(std::ssize(order), block.entries());
  std::vector<std::tuple<int, int, int>> keys;
  for (const auto e : order)
    keys.emplace_back(of_entries[static_cast<std::size_t>(e)], block.indices[static_cast<std::size_t>(e)], e);
  EXPECT_TRUE(std::ranges::is_sorted(keys));
  EXPECT_EQ(std::ranges::adjacent_find(keys), keys.end());
}

}  // namespace espalier
