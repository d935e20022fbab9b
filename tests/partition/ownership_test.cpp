// ranks: 1
// Laws: each vertex has one owner and one place there; places of a part are 0 .. size - 1 and
// ascend with the vertex; vertex(owner(v), local(v)) = v; ranges and the map that says the same are
// the same ownership; runs of vertices are all of them, once each, as long as they can be.
#include "espalier/partition/ownership.hpp"

#include <gtest/gtest.h>

#include "espalier/base/philox.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

void expect_ownership(const Ownership& ownership, std::int64_t vertices, int parts) {
  ASSERT_EQ(ownership.rows(), vertices);
  ASSERT_EQ(ownership.parts(), parts);
  std::vector<std::int64_t> next(static_cast<std::size_t>(parts), 0);
  for (std::int64_t v = 0; v < vertices; ++v) {
    const int part = ownership.owner(v);
    EXPECT_EQ(ownership.local(v), next[static_cast<std::size_t>(part)]++);
    EXPECT_EQ(ownership.vertex(part, ownership.local(v)), v);
  }
  for (int part = 0; part < parts; ++part)
    EXPECT_EQ(ownership.size(part), next[static_cast<std::size_t>(part)]);
}

void expect_runs(const Ownership& ownership, int part, RowRange places) {
  const auto runs = ownership.vertices(part, places);
  auto k = places.begin;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    EXPECT_GT(runs[r].size(), 0);
    if (r > 0) EXPECT_GT(runs[r].begin, runs[r - 1].end);
    for (auto v = runs[r].begin; v < runs[r].end; ++v) EXPECT_EQ(ownership.vertex(part, k++), v);
  }
  EXPECT_EQ(k, places.end);
}

std::vector<std::int32_t> random_owners(std::uint64_t seed, std::int64_t vertices, int parts) {
  std::vector<std::int32_t> owner;
  for (std::int64_t v = 0; v < vertices; ++v)  // in runs of some vertices; the last part owns none
    owner.push_back(
        static_cast<std::int32_t>(random64({.seed = seed, .row = static_cast<std::uint64_t>(v / 3)}, 0) %
                                  static_cast<std::uint64_t>(std::max(1, parts - 1))));
  return owner;
}

// Of several parts one owns what all did; the rest stays. Ranges that are neighbours stay a range.
TEST(Ownership, GatheredPartsAreOne) {
  const auto seed = test_seed(6);
  SCOPED_TRACE(seed);
  constexpr int kParts = 7;
  for (const std::int64_t vertices : {5, 100}) {
    const Ownership all[] = {block_partition(vertices, kParts),
                             {random_owners(seed, vertices, kParts), kParts}};
    for (const auto& ownership : all)
      for (const auto& parts : {std::vector{3}, {2, 4, 3, 2}, {6, 0}, {0, 1, 2, 3, 4, 5, 6}, {5, 1, 2}})
        for (const int part : parts) {
          const auto gathered = ownership.gathered(parts, part);
          expect_ownership(gathered, vertices, kParts);
          for (std::int64_t v = 0; v < vertices; ++v) {
            const int owner = ownership.owner(v);
            EXPECT_EQ(gathered.owner(v), std::ranges::count(parts, owner) > 0 ? part : owner);
          }
          const bool apart = parts[0] == 6 || parts[0] == 5;
          EXPECT_EQ(gathered.is_map(), ownership.is_map() || apart);
        }
  }
}

TEST(Ownership, ByRangesAndByMaps) {
  const auto seed = test_seed(5);
  SCOPED_TRACE(seed);
  for (const int parts : {1, 2, 7})
    for (const std::int64_t vertices : {0, 1, 5, 100}) {
      const Ownership all[] = {block_partition(vertices, parts),
                               {random_owners(seed, vertices, parts), parts}};
      for (const auto& ownership : all) {
        expect_ownership(ownership, vertices, parts);
        for (int part = 0; part < parts; ++part)
          for (std::int64_t begin = 0; begin <= ownership.size(part); begin += 2)
            for (auto end = begin; end <= ownership.size(part); end += 3)
              expect_runs(ownership, part, {begin, end});
      }
    }
}

// A part's pieces are its vertices in their order, cut evenly.
TEST(Ownership, IsCutPartByPart) {
  for (const std::int64_t vertices : {0, 5, 100}) {
    const Ownership all[] = {block_partition(vertices, 3), {random_owners(test_seed(6), vertices, 3), 3}};
    for (const auto& ownership : all)
      for (const int pieces : {1, 2, 4}) {
        const auto cut = ownership.cut(pieces);
        EXPECT_EQ(cut.is_map(), ownership.is_map());
        expect_ownership(cut, vertices, 3 * pieces);
        for (int part = 0; part < 3; ++part)
          for (std::int64_t k = 0, piece = part * pieces, at = 0; k < ownership.size(part); ++k, ++at) {
            for (; at == cut.size(static_cast<int>(piece)); at = 0) ++piece;
            EXPECT_EQ(cut.vertex(static_cast<int>(piece), at), ownership.vertex(part, k));
            EXPECT_LT(piece, (part + 1) * pieces);
            EXPECT_LE(cut.size(static_cast<int>(piece)), (ownership.size(part) + pieces - 1) / pieces);
          }
      }
  }
}

TEST(Ownership, OfAListAPartHasThePlacesOfItsOwn) {
  for (const Ownership& ownership :
       {Ownership({2, 0, 2, 2, 0, 1, 2}, 4), Ownership(RowPartition({0, 2, 2, 6, 7}))})
    for (int part = 0; part < 4; ++part) {
      const std::vector<std::int64_t> ids = {0, 1, 2, 4, 5, 6};
      std::vector<std::int64_t> expected;
      for (std::int64_t k = 0; k < ownership.size(part); ++k)
        if (ownership.vertex(part, k) != 3) expected.push_back(k);
      EXPECT_EQ(ownership.places_of(part, ids), expected);
    }
}

// Two bytes per vertex; places beyond a word of marks.
TEST(Ownership, OfMoreThan256Parts) {
  constexpr int kParts = 300;
  std::vector<std::int32_t> owner;
  for (std::int32_t v = 0; v < 1000; ++v) owner.push_back(v * 7 % kParts);
  expect_ownership({owner, kParts}, 1000, kParts);
}

}  // namespace
}  // namespace espalier
