// ranks: 1 2 3 4 6
// Law: on every grid and whoever owns which vertex, of each part those with the most entries, and
// all of them together in the order of a sort of the whole matrix.
#include "espalier/feature/rows_by_degree.hpp"

#include <gtest/gtest.h>

#include <map>

#include "mpi_test.hpp"
#include "partition/owned.hpp"
#include "random_graph.hpp"

namespace espalier {
namespace {

TEST(RowsByDegree, AreThoseOfASortOfAllRows) {
  constexpr std::int64_t kVertices = 60;
  const auto whole = random_graph<std::int32_t>(kVertices, 3, true, 5);
  std::vector<std::int64_t> sorted(kVertices);
  for (std::int64_t v = 0; v < kVertices; ++v) sorted[static_cast<std::size_t>(v)] = v;
  std::ranges::stable_sort(sorted, [&](auto a, auto b) { return whole.row_size(a) > whole.row_size(b); });
  for (const int c : divisors(test_world().size())) {
    const Grid grid(test_world(), c);
    for (const auto owned : kAllOwned)
      for (const bool replicated : {false, true})
        for (const std::int64_t most : {0, 3, 1000}) {
          const auto ownership = ownership_of(owned, kVertices, replicated ? 1 : grid.rows());
          std::vector<std::int64_t> expected;
          std::map<int, std::int64_t> taken;
          for (const auto v : sorted)
            if (taken[ownership.owner(v)]++ < most) expected.push_back(v);
          EXPECT_EQ(rows_by_degree(distribute(grid, whole, ownership), most), expected)
              << "c " << c << " owned " << static_cast<int>(owned) << " most " << most;
        }
  }
}

}  // namespace
}  // namespace espalier
