// What segments must be, for the tests of both spaces.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "dense/relation_blocks.hpp"
#include "espalier/sparse/relation_segments.hpp"
#include "espalier/sparse/transpose.hpp"
#include "space_arrays.hpp"

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

/// Of a view of the block, with relations beside it, in memory of the space.
template <class Space>
void expect_segments_and_order(const Space& space, const Block& block, const Buffer<std::uint8_t>& of_entries,
                               std::int64_t relations, const BlockView<Space>& view) {
  RelationSegmentsOn<Space> found;
  find_segments(space, view, relations, found);
  // Behind the segments the lists hold nothing.
  for (auto* list : {&found.rows, &found.begins, &found.ends})
    list->resize(static_cast<std::size_t>(found.first.back()));
  RelationSegments on_host;
  on_host.first = found.first;
  on_host.first_entry = found.first_entry;
  on_host.rows = array_from(space, found.rows);
  on_host.begins = array_from(space, found.begins);
  on_host.ends = array_from(space, found.ends);
  on_host.numbers = array_from(space, found.numbers);
  expect_segments(block, of_entries, relations, on_host);
  Csr<std::int32_t, Space> transposed;
  Array<Space, std::int32_t> positions;
  Array<Space, std::int32_t> order;
  transpose(space, view, transposed, &positions);
  order_by_source(space, view, positions, found, order);
  expect_order(block, of_entries, array_from(space, order));
}

/// Blocks of any shape; `check(block, relation of each entry, relations)`.
template <class Check>
void for_each_related_block(std::uint64_t seed, const Check& check) {
  std::mt19937_64 random(seed);
  for (const std::int64_t rows : {0, 1, 50})
    for (const std::int64_t columns : {1, 3, 70})
      for (const int most : {0, 1, 30})
        for (const std::int64_t relations : {1, 2, 22, 256}) {
          const Block block = random_block_matrix(rows, columns, most, random);
          check(block, random_relations(block, relations, random), relations);
        }
}

}  // namespace espalier
