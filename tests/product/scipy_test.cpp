// ranks: 1 3 4
// Law: every schedule's sums and column selections are SciPy's
// (tests/oracle/make_products.py), exactly.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "espalier/product/product.hpp"
#include "mpi_test.hpp"
#include "oracle/fixture.hpp"
#include "sparse/listed.hpp"

namespace espalier {
namespace {

ListedSum to_sums(const nlohmann::json& json) {
  ListedSum sums;
  for (std::size_t k = 0; k < json.at("columns").size(); ++k)
    sums.emplace_back(json.at("columns").at(k).get<std::int64_t>(),
                      json.at("sums").at(k).get<std::uint64_t>());
  return sums;
}

template <class Index>
void expect_sums(Product<Index>& product, const EntryWeight& weight, const std::vector<ListedSum>& expected) {
  const Cpu cpu;
  VisitedSums visited(std::ssize(expected));
  product.sum(cpu, weight, visited.visitor<Index>(cpu));
  EXPECT_EQ(visited.sums, expected);
}

// Batch b of the case lies with rank b^2 mod p: some ranks have several, some none.
std::vector<nlohmann::json> batches_of_rank(const nlohmann::json& of_case) {
  std::vector<nlohmann::json> mine;
  const auto& batches = of_case.at("batches");
  for (std::size_t b = 0; b < batches.size(); ++b)
    if (static_cast<int>(b * b % static_cast<std::size_t>(test_world().size())) == test_world().rank())
      mine.push_back(batches[b]);
  return mine;
}

template <class Index>
void expect_scipy(const DistCsr<Index>& a, Schedule schedule, const std::vector<nlohmann::json>& batches) {
  const Cpu cpu;
  std::vector<std::vector<std::int64_t>> frontiers;
  std::vector<std::int64_t> numbers, ends = {0};
  std::vector<Index> picks;
  std::vector<ListedSum> counts, squares;
  std::vector<std::vector<std::int32_t>> indices;  // of every row
  std::vector<float> values;
  for (const auto& batch : batches) {
    numbers.push_back(std::ssize(frontiers));
    frontiers.push_back(batch.at("frontier").template get<std::vector<std::int64_t>>());
    std::ranges::copy(batch.at("picks").template get<std::vector<Index>>(), std::back_inserter(picks));
    ends.push_back(std::ssize(picks));
    counts.push_back(to_sums(batch.at("counts")));
    squares.push_back(to_sums(batch.at("squares")));
    const auto begin = batch.at("indptr").template get<std::vector<std::size_t>>();
    const auto met = batch.at("indices").template get<std::vector<std::int32_t>>();
    for (std::size_t row = 0; row + 1 < begin.size(); ++row)
      indices.emplace_back(met.begin() + static_cast<std::ptrdiff_t>(begin[row]),
                           met.begin() + static_cast<std::ptrdiff_t>(begin[row + 1]));
    for (const float value : batch.at("values").template get<std::vector<float>>()) values.push_back(value);
  }
  const auto q = stack_frontier(cpu, frontiers, numbers);
  const auto product = open_product(cpu, q, a, schedule, "x");
  expect_sums(*product, {}, counts);
  expect_sums(*product, {.squared = true, .shift = 6}, squares);
  const auto selected = product->columns(cpu, picks.data(), {cpu, ends});
  EXPECT_EQ(selected.rows(), std::ssize(indices));
  for (std::int64_t r = 0; r < std::min(selected.rows(), std::ssize(indices)); ++r)
    EXPECT_TRUE(std::ranges::equal(
        std::span(selected.ids)
            .subspan(static_cast<std::size_t>(selected.begin(r)), static_cast<std::size_t>(selected.size(r))),
        indices[static_cast<std::size_t>(r)]));
  EXPECT_TRUE(std::ranges::equal(selected.values, values));
}

template <class Index>
Csr<Index> to_csr(const nlohmann::json& json) {
  const auto block = to_block(json);
  return {.rows = block.rows,
          .columns = block.columns,
          .indptr = block.indptr,
          .indices = {block.indices.begin(), block.indices.end()},
          .values = block.values};
}

template <class Index>
void expect_scipy_on_every_grid() {
  for (const auto& of_case : read_fixture("products")) {
    const auto whole = to_csr<Index>(of_case.at("a"));
    const auto batches = batches_of_rank(of_case);
    for (const int c : divisors(test_world().size())) {
      const Grid grid(test_world(), c);
      const auto a = distribute(grid, whole, Topology::kPartitioned);
      for (const auto schedule :
           {Schedule::kPull, Schedule::kPush, Schedule::kStaged, Schedule::kStagedOblivious}) {
        SCOPED_TRACE(fmt::format("n {} c {} {}", whole.rows, c, name_of(schedule)));
        expect_scipy(a, schedule, batches);
      }
    }
  }
}

TEST(ProductAgainstSciPy, SumsAndColumnsAreEqualInt32) {
  expect_scipy_on_every_grid<std::int32_t>();
}
TEST(ProductAgainstSciPy, SumsAndColumnsAreEqualInt64) {
  expect_scipy_on_every_grid<std::int64_t>();
}

}  // namespace
}  // namespace espalier
