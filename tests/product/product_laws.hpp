// Laws of the distributed product, for every space: its three results equal a loop over the whole
// matrix, bit for bit, for every schedule, grid, topology, cut and index width, also with fewer
// rows than ranks, ranks without a batch, empty frontiers and a matrix without entries.
//
// `Grids` brings a matrix to where the product is taken: grids.for_each(whole, has_values, work)
// calls work(space, a, where), with `where` for a message, for the whole matrix spread over
// every grid.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "product/product_cases.hpp"

namespace espalier {

template <class Index, class Space>
void expect_sums(const Space& space, Product<Index, Space>& product, const EntryWeight& weight,
                 const std::vector<ListedSum>& expected) {
  VisitedSums visited(std::ssize(expected));
  product.sum(space, weight, visited.template visitor<Index>(space));
  EXPECT_TRUE(visited.is_each_once());
  EXPECT_TRUE(visited.sums == expected) << (weight.squared ? "squared" : "counts");
}

template <class Index, class Space>
void expect_product(const Space& space, const DistCsr<Index, Space>& a, Schedule schedule,
                    const std::vector<Batch>& batches, const Expected& expected) {
  const auto q = stack(space, batches);
  const Picks<Index, Space> picks(space, batches);
  const bool values = a.has_values;
  const auto product = open_product(space, q, a, schedule, "x");
  const auto expect_applied = [&](const RowRule& rule, bool wanted, const std::vector<ListedRow>& rows) {
    const auto applied = product->apply(space, KeepEntries<Index, Space>(rule, wanted));
    expect_rows(to_host(space, applied), rows, wanted);
  };
  expect_applied({.all = true, .n = a.rows()}, values, expected.rows);
  expect_sums(space, *product, {}, expected.counts);
  expect_rows(to_host(space, product->columns(space, picks.ids.data(), picks.offsets)), expected.met, values);
  // Each result can be taken again, in any order; what operations return need not hold
  // what A holds.
  expect_sums(space, *product, {.squared = true, .shift = 6}, expected.squares);
  expect_applied({.all = false, .n = a.rows()}, true, expected.kept);
  expect_applied({.all = false, .n = a.rows()}, false, expected.kept);
}

template <class Index, class Grids>
void expect_every_schedule(const Grids& grids, const Csr<Index>& whole, bool has_values) {
  const auto batches = batches_of(test_world().rank(), whole.rows);
  const auto expected = expected_of(whole, batches);
  grids.for_each(whole, has_values, [&](const auto& space, const auto& a, const std::string& where) {
    for (const auto schedule : kSchedules) {
      if (a.cut && !takes_pieces(schedule, std::is_same_v<std::decay_t<decltype(space)>, Cuda>)) continue;
      SCOPED_TRACE(fmt::format("seed {} n {} values {} {} bytes {} {}", test_seed(3), whole.rows, has_values,
                               sizeof(Index), name_of(schedule), where));
      expect_product(space, a, schedule, batches, expected);
    }
  });
}

template <class Index, class Grids>
void expect_random_graph(const Grids& grids, std::int64_t n, std::int64_t degree, bool weighted) {
  expect_every_schedule(grids, random_graph<Index>(n, degree, weighted, test_seed(3)), weighted);
}

/// A matrix without an entry, which may say that it has values.
template <class Grids>
void expect_matrix_without_entries(const Grids& grids, bool has_values) {
  const Csr<std::int32_t> whole = {
      .rows = 10, .columns = 10, .indptr = Buffer<std::int64_t>(11, 0), .indices = {}, .values = {}};
  expect_every_schedule(grids, whole, has_values);
}

}  // namespace espalier
