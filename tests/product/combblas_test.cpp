// ranks: 1 4 9
// Law: every schedule's product Q A is that of CombBLAS' PSpGEMM, a 2D SUMMA by other people. Q
// stacks frontiers: one row per batch with a 1 for each vertex (`sum`), or one row per frontier
// vertex (`apply`). CombBLAS wants a square number of ranks and says a lot on stdout.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "espalier/product/product.hpp"
#include "mpi_test.hpp"
#include "random_graph.hpp"

#ifndef ESPALIER_WITH_COMBBLAS
TEST(ProductAgainstCombBlas, EqualsPSpGemm) {
  GTEST_SKIP() << "built without CombBLAS (libcombblas-dev)";
}
#else

// Last: CombBLAS leaves macros behind (Max, Assert) that GoogleTest cannot read.
#include "combblas_matrix.hpp"

namespace espalier {
namespace {

constexpr std::int64_t kVertices = 83;

// ---- The oracle ---------------------------------------------------------------------------------

// Q A by PSpGEMM; Q has `rows` rows.
EntryMap oracle(const EntryMap& q, std::int64_t rows, const EntryMap& a) {
  const auto grid = std::make_shared<combblas::CommGrid>(test_world().native(), 0, 0);
  auto left = to_combblas(grid, rows, kVertices, q);
  auto right = to_combblas(grid, kVertices, kVertices, a);
  auto product = combblas::PSpGEMM<PlusTimes>(left, right);
  return from_combblas(product);
}

// ---- Q and A ------------------------------------------------------------------------------------

// 1 or 2 batches per rank, every third rank none; 1 to kVertices distinct vertices each.
std::vector<std::vector<std::int64_t> > frontiers_of(int rank) {
  std::vector<std::vector<std::int64_t> > frontiers(rank % 3 == 1 ? 0
                                                                  : static_cast<std::size_t>(1 + rank % 2));
  for (std::size_t b = 0; b < frontiers.size(); ++b) {
    const RandomStream stream = {.seed = test_seed(51), .batch = b, .row = static_cast<std::uint64_t>(rank)};
    const auto stride = 1 + random_below(stream, 0, 20);  // 83 is prime: the multiples are distinct
    const auto size = 1 + random_below(stream, 1, kVertices);
    for (std::uint64_t k = 0; k < size; ++k)
      frontiers[b].push_back(static_cast<std::int64_t>((k + 1) * stride % kVertices));
  }
  return frontiers;
}

// A random matrix with entries k/8, none of them 0.
template <class Index>
Csr<Index> random_matrix() {
  auto whole = random_graph<Index>(kVertices, 5, true, test_seed(52));
  for (auto& value : whole.values) value += 0.125f;
  return whole;
}

template <class Index, class Value>
EntryMap entries_of(const Csr<Index>& whole, Value value) {
  EntryMap entries;
  for (std::int64_t v = 0; v < whole.rows; ++v)
    for (auto k = whole.row_begin(v); k < whole.row_end(v); ++k)
      entries[{v, whole.indices[static_cast<std::size_t>(k)]}] =
          value(static_cast<std::int64_t>(8 * whole.values[static_cast<std::size_t>(k)]));
  return entries;
}

template <class Index>
class Identity final : public RowOperation<Index> {
 public:
  bool has_values() const override { return true; }
  void apply(const Cpu&, const RowView<Index>* rows, const RowKey*, std::int64_t count,
             Entries<Index>& out) const override {
    for (std::int64_t r = 0; r < count; ++r) {
      out.ids.insert(out.ids.end(), rows[r].indices, rows[r].indices + rows[r].size);
      out.values.insert(out.values.end(), rows[r].values.data(), rows[r].values.data() + rows[r].size);
      out.end_row();
    }
  }
};

// ---- The comparison -----------------------------------------------------------------------------

// EntryMap of all ranks' rows of P; `first` is the number of my first one.
EntryMap gather(const std::vector<Entry>& mine) {
  EntryMap entries;
  for (const auto& [row, column, value] : test_world().all_gather_v(std::span<const Entry>(mine), "check")) {
    EXPECT_EQ(entries.count({row, column}), 0u) << "an entry stands twice";
    entries[{row, column}] = value;
  }
  return entries;
}

template <class Index>
EntryMap sums(Product<Index>& product, const EntryWeight& weight, std::int64_t first_batch) {
  std::vector<Entry> mine;
  product.sum(Cpu{1}, weight, [&](std::int64_t batch, const SparseSum<Index>& sum) {
    for (std::size_t k = 0; k < sum.columns.size(); ++k)
      mine.push_back({first_batch + batch, sum.columns[k], static_cast<std::int64_t>(sum.sums[k])});
  });
  return gather(mine);
}

template <class Index>
EntryMap rows(Product<Index>& product, std::int64_t first_row) {
  const auto result = product.apply(Cpu{1}, Identity<Index>());
  std::vector<Entry> mine;
  for (std::int64_t r = 0; r < result.rows(); ++r)
    for (auto k = result.begin(r); k < result.begin(r) + result.size(r); ++k)
      mine.push_back({first_row + r, result.ids[static_cast<std::size_t>(k)],
                      static_cast<std::int64_t>(8 * result.values[static_cast<std::size_t>(k)])});
  return gather(mine);
}

template <class Index>
void expect_combblas() {
  const auto whole = random_matrix<Index>();
  std::vector<std::vector<std::int64_t> > mine;
  std::vector<std::int64_t> numbers;
  EntryMap by_batch, by_row;
  std::int64_t batches = 0, all_rows = 0, first_batch = 0, first_row = 0;
  for (int rank = 0; rank < test_world().size(); ++rank) {
    if (rank == test_world().rank()) first_batch = batches, first_row = all_rows;
    for (const auto& frontier : frontiers_of(rank)) {
      if (rank == test_world().rank()) {
        mine.push_back(frontier);
        numbers.push_back(batches);
      }
      for (const auto v : frontier) by_batch[{batches, v}] = by_row[{all_rows++, v}] = 1;
      ++batches;
    }
  }
  const auto q = stack_frontier(Cpu{1}, mine, numbers);
  const auto counts = oracle(by_batch, batches, entries_of(whole, [](std::int64_t) { return 1; }));
  const auto squares = oracle(by_batch, batches, entries_of(whole, [](std::int64_t x) { return x * x; }));
  const auto selection = oracle(by_row, all_rows, entries_of(whole, [](std::int64_t x) { return x; }));
  EXPECT_GT(selection.size(), 0u);
  for (const int c : divisors(test_world().size())) {
    const Grid grid(test_world(), c);
    const auto a = distribute(grid, whole, Topology::kPartitioned);
    for (const auto schedule :
         {Schedule::kPull, Schedule::kPush, Schedule::kStaged, Schedule::kStagedOblivious}) {
      SCOPED_TRACE(fmt::format("seeds {} {} c {} {}", test_seed(51), test_seed(52), c, name_of(schedule)));
      const auto product = open_product(Cpu{1}, q, a, schedule, "x");
      EXPECT_TRUE(sums(*product, {}, first_batch) == counts);
      EXPECT_TRUE(sums(*product, {.squared = true, .shift = 6}, first_batch) == squares);
      EXPECT_TRUE(rows(*product, first_row) == selection);
    }
  }
}

TEST(ProductAgainstCombBlas, EqualsPSpGemmInt32) {
  expect_combblas<std::int32_t>();
}
TEST(ProductAgainstCombBlas, EqualsPSpGemmInt64) {
  expect_combblas<std::int64_t>();
}

}  // namespace
}  // namespace espalier

#endif
