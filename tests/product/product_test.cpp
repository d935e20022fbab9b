// ranks: 1 2 3 4 6 8
// Laws of the distributed product: its three results equal a loop over the whole matrix, bit for bit, for every
// schedule, grid, topology, index width and thread count, also with fewer rows than ranks, ranks without a
// batch and empty frontiers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "product/product_cases.hpp"

namespace espalier {
namespace {

// ---- Comparisons --------------------------------------------------------------------------------

template <class Id>
void expect_rows(const RowEntries<Id>& got, const std::vector<Entries>& expected, bool values) {
  EXPECT_EQ(got.rows(), std::ssize(expected));
  EXPECT_EQ(got.offsets.back(), std::ssize(got.indices));
  EXPECT_EQ(got.values.size(), values ? got.indices.size() : 0);
  if (got.rows() != std::ssize(expected) || got.values.size() != (values ? got.indices.size() : 0)) return;
  std::int64_t wrong = 0;
  for (std::int64_t r = 0; r < got.rows(); ++r) {
    Entries row = expected[static_cast<std::size_t>(r)], mine;
    for (auto k = got.begin(r); k < got.begin(r) + got.size(r); ++k)
      mine.emplace_back(got.indices[static_cast<std::size_t>(k)],
                        values ? got.values[static_cast<std::size_t>(k)] : 0.0f);
    if (!values)
      for (auto& [index, value] : row) value = 0;
    wrong += mine != row;
  }
  EXPECT_EQ(wrong, 0) << "wrong rows of " << got.rows();
}

template <class Index>
void expect_sums(const Cpu& cpu, Product<Index>& product, const EntryWeight& weight,
                 const std::vector<Sums>& expected) {
  std::vector<Sums> got(expected.size());
  std::vector<int> visits(expected.size(), 0);
  product.sum(cpu, weight, [&](std::int64_t batch, const SparseSum<Index>& sum) {
    const auto b = static_cast<std::size_t>(batch);
    if (b >= got.size()) return;
    ++visits[b];
    for (std::size_t k = 0; k < sum.columns.size(); ++k) got[b].emplace_back(sum.columns[k], sum.sums[k]);
  });
  EXPECT_EQ(visits, std::vector<int>(expected.size(), 1)) << "every batch is visited once";
  EXPECT_TRUE(got == expected) << (weight.squared ? "squared" : "counts");
}

template <class Index>
void expect_product(const DistCsr<Index>& a, Schedule schedule, int threads,
                    const std::vector<Batch>& batches, const Expected& expected) {
  const Cpu cpu = {threads};
  const auto q = stack(batches);
  const Picks<Index> picks(batches);
  const bool values = a.has_values;
  const auto product = open_product(cpu, q, a, schedule, "x");
  expect_rows(product->apply(cpu, Identity<Index>(values)), expected.rows, values);
  expect_sums(cpu, *product, {}, expected.counts);
  expect_rows(product->columns(cpu, picks.spans), expected.met, values);
  // Each result can be taken again, in any order; what operations return need not hold what A holds.
  expect_sums(cpu, *product, {.squared = true, .shift = 6}, expected.squares);
  expect_rows(product->apply(cpu, KeepSome<Index>(a.rows(), true)), expected.kept, true);
  expect_rows(product->apply(cpu, KeepSome<Index>(a.rows(), false)), expected.kept, false);
}

template <class Index>
void expect_every_grid(std::int64_t n, std::int64_t degree, bool weighted, int threads) {
  const auto whole = random_graph<Index>(n, degree, weighted, test_seed(3));
  const auto batches = batches_of(test_world().rank(), n);
  const auto expected = expected_of(whole, batches);
  for (const int c : divisors(test_world().size())) {
    const Grid grid(test_world(), c);
    for (const auto topology : {Topology::kPartitioned, Topology::kReplicated}) {
      const auto a = distribute(grid, whole, topology);
      for (const auto schedule : kSchedules) {
        SCOPED_TRACE(fmt::format("seed {} n {} c {} {} {} {} bytes, {} threads", test_seed(3), n, c,
                                 topology == Topology::kPartitioned ? "partitioned" : "replicated",
                                 name_of(schedule), sizeof(Index), threads));
        expect_product(a, schedule, threads, batches, expected);
      }
    }
  }
}

TEST(Product, EqualsLoopsOverTheWholeMatrixInt32) {
  for (const std::int64_t n : {3, 5, 64, 157})
    for (const bool weighted : {false, true})
      expect_every_grid<std::int32_t>(n, 6, weighted, n % 4 == 1 ? 2 : 1);
}

TEST(Product, EqualsLoopsOverTheWholeMatrixInt64) {
  for (const std::int64_t n : {3, 5, 64, 157})
    for (const bool weighted : {false, true})
      expect_every_grid<std::int64_t>(n, 6, weighted, n % 4 == 1 ? 1 : 2);
}

// More than 512 rows on a rank: threads work on several chunks.
TEST(Product, DoesNotDependOnTheNumberOfThreads) {
  for (const int threads : {1, 2, 3}) expect_every_grid<std::int32_t>(701, 3, true, threads);
}

// A matrix with values, but without an entry.
TEST(Product, OfAMatrixWithoutEntriesIsEmpty) {
  Csr<std::int32_t> whole = {
      .rows = 10, .columns = 10, .indptr = Buffer<std::int64_t>(11, 0), .indices = {}, .values = {}};
  const auto batches = batches_of(test_world().rank(), 10);
  const auto expected = expected_of(whole, batches);
  for (const int c : divisors(test_world().size())) {
    const Grid grid(test_world(), c);
    for (const bool values : {false, true})
      for (const auto schedule : kSchedules) {
        auto a = distribute(grid, whole, Topology::kPartitioned);
        a.has_values = values;
        expect_product(a, schedule, 1, batches, expected);
      }
  }
}

}  // namespace
}  // namespace espalier
