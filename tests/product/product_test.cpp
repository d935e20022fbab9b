// ranks: 1 2 3 4 6
// long ranks: 8
// The laws of the distributed product on the CPU, for every number of threads.
#include "distribute_cut.hpp"
#include "product/product_laws.hpp"

namespace espalier {
namespace {

/// Every grid of all ranks, replicated and partitioned by ranges and by maps.
struct Grids {
  Cpu cpu;

  template <class Index, class Work>
  void for_each(const Csr<Index>& whole, bool has_values, const Work& work) const {
    for (const int c : divisors(test_world().size())) {
      const Grid grid(test_world(), c);
      const auto with = [&](const Ownership& ownership, const std::string& how) {
        auto a = distribute(grid, whole, ownership);
        a.has_values = has_values;
        work(cpu, a, fmt::format("c {} {} {} threads", c, how, cpu.threads));
      };
      with(block_partition(whole.rows, 1), "replicated");
      for (const auto owned : kAllOwned)
        with(ownership_of(owned, whole.rows, grid.rows()), fmt::format("owned {}", static_cast<int>(owned)));
      for (const auto cut : kAllCuts) {
        auto a = count_rows(distribute_cut<Index>(grid, whole, block_partition(whole.rows, grid.rows()),
                                                  parts_of_entries(cut, whole, grid.rows())),
                            WholeRowFacts::kPlaces);
        a.has_values = has_values;
        work(cpu, a, fmt::format("c {} cut {} {} threads", c, static_cast<int>(cut), cpu.threads));
      }
    }
  }
};

TEST(Product, EqualsLoopsOverTheWholeMatrixInt32) {
  for (const std::int64_t n : {3, 5, 64, 157})
    for (const bool weighted : {false, true})
      expect_random_graph<std::int32_t>(Grids{{n % 4 == 1 ? 2 : 1}}, n, 6, weighted);
}

TEST(Product, EqualsLoopsOverTheWholeMatrixInt64) {
  for (const std::int64_t n : {3, 5, 64, 157})
    for (const bool weighted : {false, true})
      expect_random_graph<std::int64_t>(Grids{{n % 4 == 1 ? 1 : 2}}, n, 6, weighted);
}

// More than 512 rows on a rank: threads work on several chunks.
TEST(Product, DoesNotDependOnTheNumberOfThreads) {
  for (const int threads : {1, 2, 3}) expect_random_graph<std::int32_t>(Grids{{threads}}, 701, 3, true);
}

TEST(Product, OfAMatrixWithoutEntriesIsEmpty) {
  for (const bool has_values : {false, true}) expect_matrix_without_entries(Grids{}, has_values);
}

}  // namespace
}  // namespace espalier
