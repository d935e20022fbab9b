// ranks: 1 2 3 4 6
// long ranks: 8
// Laws of a RowStore: fetched rows are H's rows, bit for bit, on every grid (of a file: in
// disk_rows_test.cpp); each distinct row of a minibatch travels once, and what the store says a
// fetch asks of others is what it asks of them and receives. Of features: normalisation does not
// depend on the grid and equals the direct formula.
#include "espalier/feature/input_stores.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "dense/random_matrices.hpp"
#include "espalier/base/philox.hpp"
#include "mpi_test.hpp"
#include "row_store_cases.hpp"

namespace espalier {
namespace {

constexpr std::int64_t kStoreWidth = 5;

float entry(std::int64_t i, std::int64_t j) {
  const RandomStream stream = {.seed = 4, .row = static_cast<std::uint64_t>(i)};
  return j == 3
             ? 2.5f
             : static_cast<float>(to_unit_double(random64(stream, static_cast<std::uint64_t>(j))) * 10 - 3);
}

/// Rows of H from `first` on.
template <class T>
Matrix<T> rows_from(std::int64_t first, std::int64_t rows) {
  Matrix<T> some(rows, kStoreWidth);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < kStoreWidth; ++j) some(i, j) = as_stored<T>(entry(first + i, j));
  return some;
}

/// An element of H, after storage as T.
template <class T>
float stored(std::int64_t i, std::int64_t j) {
  return to_float(as_stored<T>(entry(i, j)));
}

template <class T>
StoredRows<Cpu> rows_on(const Grid& grid, std::int64_t n) {
  const auto partition = block_partition(n, grid.rows());
  return rows_from<T>(partition.begin(grid.row()), partition.size(grid.row()));
}

template <class T>
RowStore store_on(const Grid& grid, std::int64_t n) {
  return RowStore(grid, block_partition(n, grid.rows()), rows_on<T>(grid, n));
}

constexpr std::int64_t kEnd = 4;  // rows

// n vertices in blocks of equal sizes but for the last, which has kEnd.
RowPartition long_partition(std::int64_t n, int parts) {
  std::vector<std::int64_t> offsets;
  for (int part = 0; part < parts; ++part) offsets.push_back((n - kEnd) / std::max(1, parts - 1) * part);
  if (parts > 1) offsets.back() = n - kEnd;
  offsets.push_back(n);
  return RowPartition(offsets);
}

// The first kEnd ids of each block, backwards.
std::vector<std::int64_t> ends_of_blocks(std::int64_t n, int parts) {
  std::vector<std::int64_t> ids;
  for (int part = parts - 1; part >= 0; --part)
    for (std::int64_t i = kEnd - 1; i >= 0; --i) ids.push_back(long_partition(n, parts).begin(part) + i);
  return ids;
}

// A store that holds those rows alone.
RowStore store_of_ends(const Grid& grid, std::int64_t n) {
  const auto partition = long_partition(n, grid.rows());
  return RowStore(grid, partition, rows_from<float>(partition.begin(grid.row()), kEnd));
}

// Two lists per rank of different lengths, in no order; odd ranks have none.
std::vector<std::vector<std::int64_t>> lists_of(std::int64_t n, int rank) {
  if (rank % 2 == 1) return {};
  std::vector<std::int64_t> first, second;
  for (std::int64_t i = n - 1; i >= 0; i -= 2) first.push_back(i);
  for (std::int64_t i = rank % 3; i < n; i += 3) second.push_back(i);
  return {first, second};
}

using Lists = std::vector<std::vector<std::int64_t>>;

std::vector<std::span<const std::int64_t>> spans_of(const Lists& lists) {
  return {lists.begin(), lists.end()};
}

template <class T>
void expect_rows(const Lists& lists, const std::vector<Matrix<float>>& rows) {
  for (std::size_t m = 0; m < lists.size(); ++m) {
    ASSERT_EQ(rows[m].rows, std::ssize(lists[m]));
    for (std::int64_t k = 0; k < rows[m].rows; ++k)
      for (std::int64_t j = 0; j < kStoreWidth; ++j) {
        const auto v = lists[m][static_cast<std::size_t>(k)];
        EXPECT_EQ(rows[m](k, j), stored<T>(v, j));
      }
  }
}

template <class T>
void expect_fetch(const Grid& grid, std::int64_t n) {
  const auto store = store_on<T>(grid, n);
  const auto lists = lists_of(n, grid.world().rank());
  std::vector<Matrix<float>> rows;
  grid.traffic().clear();
  store.fetch({2}, spans_of(lists), rows, "fetch");
  ASSERT_EQ(rows.size(), lists.size());
  expect_rows<T>(lists, rows);
  std::int64_t remote = 0;
  for (const auto& list : lists)
    for (const auto v : list) remote += store.ownership().owner(v) != grid.row();
  // Over all ranks: every remote row once as an id (4 bytes below 2^31 vertices) and once as
  // values, plus one 64-bit count per pair of a column.
  const auto rows_moved = grid.world().all_reduce(remote, Reduction::kSum, "x");
  const auto received =
      grid.world().all_reduce(grid.traffic().of("fetch").bytes_received, Reduction::kSum, "x");
  const std::int64_t pairs = grid.ranks() * (grid.rows() - 1);
  EXPECT_EQ(received, rows_moved * (4 + kStoreWidth * static_cast<std::int64_t>(sizeof(T))) + 8 * pairs);
}

TEST(RowStore, FetchedRowsEqualTheMatrix) {
  for (const std::int64_t n : {2, 7, 50})
    for (const int c : divisors(test_world().size())) {
      const Grid grid(test_world(), c);
      expect_fetch<float>(grid, n);
      expect_fetch<Half>(grid, n);
    }
}

// The largest graph whose ids take 4 bytes, the smallest whose ids take 8, and ids that need them.
// Of each block row the store has the first rows only; the last block row is no longer than those.
TEST(RowStore, IdsTravelAtTheirOwnWidth) {
  constexpr std::int64_t kWide = std::int64_t{1} << 31;
  for (const int c : divisors(test_world().size())) {
    const Grid grid(test_world(), c);
    PendingFetch pending;  // serves both widths
    for (const auto& [n, id_bytes] : {std::pair{kWide - 1, 4}, {kWide, 8}, {kWide + 1, 8}, {3 * kWide, 8}}) {
      const auto expected = ends_of_blocks(n, grid.rows());
      const auto store = store_of_ends(grid, n);
      const std::vector<std::span<const std::int64_t>> lists = {expected};
      std::vector<Matrix<float>> rows;
      grid.traffic().clear();
      store.begin_counts({1}, lists, pending, "fetch");
      store.advance({1}, pending, FetchMove::kRows, "fetch");
      store.finish_fetch({1}, pending, rows);
      for (std::int64_t k = 0; k < rows[0].rows; ++k)
        for (std::int64_t j = 0; j < kStoreWidth; ++j)
          EXPECT_EQ(rows[0](k, j), entry(expected[static_cast<std::size_t>(k)], j)) << n;
      const auto volume = grid.traffic().of("fetch");
      const std::int64_t peers = grid.rows() - 1;
      EXPECT_EQ(volume.bytes_received, 8 * peers + peers * kEnd * (id_bytes + 4 * kStoreWidth))
          << n << " c " << c;
      EXPECT_DOUBLE_EQ(volume.predicted_bytes, static_cast<double>(volume.bytes_received)) << n << " c " << c;
    }
  }
}

// A fetch begins before the one before it has finished, for many steps; the ranks' lists differ
// from step to step, and some are empty.
template <class T>
void expect_fetches_under_way(const Grid& grid, std::int64_t n) {
  const auto store = store_on<T>(grid, n);
  PendingFetch pending[2];
  Lists lists[2];
  std::vector<Matrix<float>> rows;
  for (int step = 0; step < 7; ++step) {
    auto& mine = lists[step % 2];
    mine = lists_of(n, grid.world().rank() + step);
    store.begin_counts({1}, spans_of(mine), pending[step % 2], "fetch");
    store.advance({1}, pending[step % 2], FetchMove::kRows, "fetch");
    if (step == 0) continue;
    pending[1 - step % 2].progress();
    store.finish_fetch({2}, pending[1 - step % 2], rows);
    expect_rows<T>(lists[1 - step % 2], rows);
  }
  store.finish_fetch({1}, pending[0], rows);
  expect_rows<T>(lists[0], rows);
}

TEST(RowStore, FetchesUnderWayKeepTheirRows) {
  for (const std::int64_t n : {2, 50})
    for (const int c : divisors(test_world().size())) {
      const Grid grid(test_world(), c);
      expect_fetches_under_way<float>(grid, n);
      expect_fetches_under_way<Half>(grid, n);
    }
}

TEST(RowStore, AFetchAfterALargerOneAllocatesNothing) {
  for (const int c : divisors(test_world().size())) {
    const Grid grid(test_world(), c);
    const auto store = store_on<float>(grid, 50);
    PendingFetch pending;
    std::vector<Matrix<float>> rows;
    std::int64_t allocations = 0;
    for (const std::int64_t n : {50, 40, 20, 50, 8}) {
      // Even: ids of a smaller n are among those of 50.
      Lists lists = lists_of(n, 0);
      if (n == 20) lists.pop_back();
      for (int repeat = 0; repeat < 2; ++repeat) {
        store.begin_counts({1}, spans_of(lists), pending, "fetch");
        store.advance({1}, pending, FetchMove::kRows, "fetch");
        store.finish_fetch({1}, pending, rows);
        if (allocations == 0) allocations = buffer_allocations();
      }
      expect_rows<float>(lists, rows);
    }
    EXPECT_EQ(buffer_allocations(), allocations);
  }
}

Matrix<float> fetch_all(const RowStore& store) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(store.ownership().rows()));
  std::iota(ids.begin(), ids.end(), std::int64_t{0});
  const std::span<const std::int64_t> list(ids);
  std::vector<Matrix<float>> fetched;
  store.fetch({1}, {&list, 1}, fetched, "x");
  return std::move(fetched[0]);
}

Matrix<float> fetch_all(const Grid& grid, std::int64_t n, StoredRows<Cpu> rows) {
  return fetch_all(RowStore(grid, block_partition(n, grid.rows()), std::move(rows)));
}

void normalize_all(StoredRows<Cpu>& rows) {
  each_numbers(rows, true, [&](auto& numbers) { normalize("row", {}, *rows.form.kind, numbers); });
}

// By its own columns.
Standardization standardize_all(const Grid& grid, std::int64_t n, StoredRows<Cpu>& rows) {
  const auto by = measure_columns([&](const auto& use) { each_numbers(rows, false, use); }, kStoreWidth,
                                  grid.column_comm(), n);
  each_numbers(rows, true, [&](auto& numbers) { normalize("standard", by, *rows.form.kind, numbers); });
  return by;
}

TEST(NormalizedRows, StandardisingGivesMeanZeroAndTheSameBitsOnEveryGrid) {
  constexpr std::int64_t n = 97;
  const Grid single(test_world(), test_world().size());  // one block row: no sum crosses ranks
  auto reference = rows_on<float>(single, n);
  const auto by = standardize_all(single, n, reference);
  const auto& [means, deviations] = by;
  const auto expected = fetch_all(single, n, reference);
  for (std::int64_t j = 0; j < kStoreWidth; ++j) {
    double mean = 0, square = 0, raw_mean = 0, raw_square = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      mean += expected(i, j) / n;
      square += static_cast<double>(expected(i, j)) * expected(i, j) / n;
      raw_mean += static_cast<double>(entry(i, j)) / n;
    }
    for (std::int64_t i = 0; i < n; ++i)
      raw_square += (entry(i, j) - raw_mean) * (entry(i, j) - raw_mean) / n;
    EXPECT_NEAR(mean, 0, 1e-6);
    EXPECT_NEAR(square, j == 3 ? 0 : 1, 1e-6) << "a constant column becomes zero";
    if (j != 3) EXPECT_NEAR(expected(5, j), (entry(5, j) - raw_mean) / std::sqrt(raw_square), 1e-5);
    const auto k = static_cast<std::size_t>(j);
    EXPECT_NEAR(means[k], raw_mean, 1e-9);
    EXPECT_NEAR(deviations[k], j == 3 ? 1 : std::sqrt(raw_square), 1e-9);
    EXPECT_EQ(expected(5, j), static_cast<float>((entry(5, j) - means[k]) / deviations[k])) << "to the bit";
  }
  for (const int c : divisors(test_world().size())) {
    const Grid grid(test_world(), c);
    auto rows = rows_on<float>(grid, n);
    EXPECT_EQ(standardize_all(grid, n, rows), by) << "c " << c;
    EXPECT_EQ(fetch_all(grid, n, rows).data, expected.data) << "c " << c;
  }
}

TEST(NormalizedRows, NormalisingHalvesStoresTheRoundedValues) {
  constexpr std::int64_t n = 31;
  const auto rounded = [](double x) { return to_float(to_half(static_cast<float>(x))); };
  for (const int c : divisors(test_world().size())) {
    const Grid grid(test_world(), c);
    auto by_row = rows_on<Half>(grid, n), standard = rows_on<Half>(grid, n);
    normalize_all(by_row);
    standardize_all(grid, n, standard);
    const auto row_rows = fetch_all(grid, n, by_row), standard_rows = fetch_all(grid, n, standard);
    for (std::int64_t j = 0; j < kStoreWidth; ++j) {
      double mean = 0, square = 0;
      for (std::int64_t i = 0; i < n; ++i) mean += double{stored<Half>(i, j)} / n;
      for (std::int64_t i = 0; i < n; ++i) square += std::pow(double{stored<Half>(i, j)} - mean, 2) / n;
      for (std::int64_t i = 0; i < n; ++i) {
        double sum = 0;
        for (std::int64_t k = 0; k < kStoreWidth; ++k) sum += std::abs(double{stored<Half>(i, k)});
        EXPECT_EQ(row_rows(i, j), rounded(double{stored<Half>(i, j)} / sum)) << i << ", " << j;
        EXPECT_EQ(standard_rows(i, j),
                  j == 3 ? 0.0f : rounded((double{stored<Half>(i, j)} - mean) / std::sqrt(square)))
            << i << ", " << j;
      }
    }
  }
}

// Each block row's values have another magnitude, the first the smallest or the last: the scale of
// a column's sum must be that of its largest value anywhere.
TEST(NormalizedRows, StandardisingColumnsOfManyMagnitudes) {
  constexpr std::int64_t n = 97;
  const auto value = [](std::int64_t i, std::int64_t j) {
    return std::ldexp(entry(i, j), static_cast<int>(j % 2 == 0 ? i / 2 : (n - i) / 2));
  };
  for (const int c : divisors(test_world().size())) {
    const Grid grid(test_world(), c);
    const auto partition = block_partition(n, grid.rows());
    Matrix<float> local(partition.size(grid.row()), kStoreWidth);
    for (std::int64_t i = 0; i < local.rows; ++i)
      for (std::int64_t j = 0; j < kStoreWidth; ++j) local(i, j) = value(partition.begin(grid.row()) + i, j);
    StoredRows<Cpu> stored = std::move(local);
    standardize_all(grid, n, stored);
    const auto rows = fetch_all(grid, n, stored);
    for (std::int64_t j = 0; j < kStoreWidth; ++j) {
      double mean = 0, square = 0;
      for (std::int64_t i = 0; i < n; ++i) mean += static_cast<double>(value(i, j)) / n;
      for (std::int64_t i = 0; i < n; ++i) square += std::pow(value(i, j) - mean, 2) / n;
      for (std::int64_t i = 0; i < n; ++i)
        EXPECT_NEAR(rows(i, j), (value(i, j) - mean) / std::sqrt(square), 1e-6)
            << i << ", " << j << " c " << c;
    }
  }
}

TEST(NormalizedRows, RowNormalisationMakesAbsoluteSumsOne) {
  const Grid grid(test_world(), 1);
  auto stored = rows_on<float>(grid, 31);
  normalize_all(stored);
  const auto rows = fetch_all(grid, 31, stored);
  for (std::int64_t i = 0; i < rows.rows; ++i) {
    double sum = 0;
    for (std::int64_t j = 0; j < kStoreWidth; ++j) sum += std::abs(static_cast<double>(rows(i, j)));
    EXPECT_NEAR(sum, 1, 1e-6);
  }
}

TEST(RowStore, CountsWhatAFetchAsksOfOthers) {
  const auto& world = test_world();
  for (const auto owned : kAllOwned)
    for (int copies = 1; copies <= world.size(); ++copies) {
      if (world.size() % copies != 0) continue;
      const Grid grid(world, copies);
      const auto expected = first_rows(103, 3);
      const auto ownership = ownership_of(owned, 103, grid.rows());
      const RowStore store(grid, ownership, rows_of_part(expected, ownership, grid.row()));
      EXPECT_EQ(store.fetched_bytes(), 4 + 12);
      std::vector<std::int64_t> even, few;
      for (std::int64_t id = 0; id < 103; id += 2) even.push_back(id);
      if (world.rank() != 1) few = {102, 0, 51};
      const std::vector<std::span<const std::int64_t>> lists = {even, few};
      std::int64_t others = 0;
      for (const auto& list : lists)
        for (const auto id : list) others += !store.storage().has(id);
      EXPECT_EQ(store.count_remote(Cpu{2}, lists), others);
      const auto before = grid.traffic().of("fetch").bytes_received;
      PendingFetch fetch;
      store.begin_counts(Cpu{1}, lists, fetch, "fetch");
      store.advance(Cpu{1}, fetch, FetchMove::kRows, "fetch");
      EXPECT_EQ(fetch.remote_rows(), others);
      std::vector<Matrix<float>> rows;
      store.finish_fetch(Cpu{1}, fetch, rows);
      EXPECT_EQ(store.count_remote(Cpu{1}, {}), 0);
      // Beside counts, 8 bytes of each other rank of the column, ids come to whom they
      // are asked of.
      std::vector<std::int64_t> bytes = {
          grid.traffic().of("fetch").bytes_received - before - 8 * (grid.rows() - 1),
          others * store.fetched_bytes()};
      world.all_reduce(std::span<std::int64_t>(bytes), Reduction::kSum, "test");
      EXPECT_EQ(bytes[0], bytes[1]);
      EXPECT_EQ(bytes[1] > 0, grid.rows() > 1);
    }
}

}  // namespace
}  // namespace espalier
