// ranks: 1 2 3 8
// Laws: degrees that all ranks read together are those of the rows, on every rank, whoever reads
// which rows in how many pieces.
#include "espalier/base/row_range.hpp"
#include "espalier/graph/graph_facts.hpp"

#include <gtest/gtest.h>

#include <map>

#include "espalier/graph/graph_writer.hpp"
#include "mpi_test.hpp"
#include "random_graph.hpp"
#include "typed_graph.hpp"

namespace espalier {
namespace {

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

// (degree, vertices) of rows, ascending.
Pairs counted(const Csr<std::int64_t>& a, std::int64_t more) {
  std::map<std::int64_t, std::int64_t> counts;
  for (std::int64_t v = 0; v < a.rows; ++v) ++counts[a.row_size(v) + more];
  return {counts.begin(), counts.end()};
}

Pairs pairs_of(const DegreeHistogram& degrees) {
  Pairs pairs;
  for (const auto& [degree, vertices] : degrees) pairs.emplace_back(degree, vertices);
  return pairs;
}

// Rank 0 writes all rows.
std::string written(const Csr<std::int64_t>& a, const Schema* schema) {
  const auto path = test_folder("degrees") + "/graph.h5";
  GraphWriter writer(test_world(), {path, true});
  if (schema != nullptr) writer.write_schema(*schema);
  Csr<std::int64_t> none;
  none.columns = a.columns;
  writer.write_adjacency(test_world().rank() == 0 ? a : none);
  writer.commit({"test", "made by a test", true});
  return path;
}

void expect_degrees(const Csr<std::int64_t>& a, const Schema* schema = nullptr) {
  const GraphFile file(test_world(), written(a, schema));
  for (const std::int64_t more : {0, 1})
    EXPECT_EQ(pairs_of(read_degrees(test_world(), file, more)), counted(a, more)) << a.rows << " rows";
}

TEST(Degrees, AreThoseOfAllRows) {
  const auto seed = test_seed(5);
  SCOPED_TRACE(fmt::format("ESPALIER_TEST_SEED={}", seed));
  for (const std::int64_t n : {3, 5, 8, 131}) expect_degrees(random_graph<std::int64_t>(n, 3, false, seed));
}

TEST(Degrees, OfATypedGraphAreOverAllRelations) {
  const auto seed = test_seed(6);
  SCOPED_TRACE(fmt::format("ESPALIER_TEST_SEED={}", seed));
  for (const std::int64_t n : {7, 60}) {
    const auto schema = typed_schema(n);
    expect_degrees(typed_graph<std::int64_t>(schema, 4, false, seed), &schema);
  }
}

TEST(Degrees, Quantiles) {
  const DegreeHistogram degrees = {{1, 5}, {2, 3}, {9, 2}};  // 10 vertices
  for (const auto& [q, expected] : {std::pair{0.0, 1}, {0.5, 1}, {0.51, 2}, {0.8, 2}, {0.81, 9}, {1.0, 9}})
    EXPECT_EQ(quantile(degrees, q, 10), expected) << q;
}

TEST(RowParts, HoldEveryRowOnceInBoundedPieces) {
  const auto& world = test_world();
  constexpr std::int64_t kMost = std::int64_t{1} << 20;
  for (const std::int64_t n : {0, 1, 7, 100})
    for (const std::int64_t values : {std::int64_t{1}, kMost / 8, kMost / 2, kMost}) {
      std::vector<std::int64_t> times(static_cast<std::size_t>(n), 0);
      std::int64_t calls = 0;
      in_row_parts(
          world, n,
          [&](std::int64_t begin, std::int64_t end) {
            ++calls;
            EXPECT_LE((end - begin - 1) * values, kMost) << n << " rows of " << values;
            for (auto row = begin; row < end; ++row) ++times[static_cast<std::size_t>(row)];
          },
          values);
      world.all_reduce(std::span<std::int64_t>(times), Reduction::kSum, "test");
      EXPECT_EQ(times, std::vector<std::int64_t>(static_cast<std::size_t>(n), 1));
      EXPECT_EQ(world.all_reduce(calls, Reduction::kMin, "test"),
                world.all_reduce(calls, Reduction::kMax, "test"));
    }
}

}  // namespace
}  // namespace espalier
