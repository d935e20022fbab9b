// ranks: 1 2 3 4 6
// Laws of rows on disk: what is read, and what is fetched on every grid, by ranges and by maps, are
// the rows in memory, bit for bit, normalised or not, in any order, repeated, by any number of
// threads.
#include "espalier/feature/disk_rows.hpp"

#include <gtest/gtest.h>

#include "dense/random_matrices.hpp"
#include "espalier/base/philox.hpp"
#include "espalier/feature/input_stores.hpp"
#include "espalier/graph/graph_writer.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

constexpr std::int64_t kRows = 1501, kWidth = 7;  // several chunks, the last of them short

template <class T>
Matrix<T> rows_from(std::int64_t begin, std::int64_t count) {
  Matrix<T> rows(count, kWidth);
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t j = 0; j < kWidth; ++j) {
      const RandomStream stream = {.seed = 4, .row = static_cast<std::uint64_t>(begin + i)};
      rows(i, j) = as_stored<T>(
          static_cast<float>(to_unit_double(random64(stream, static_cast<std::uint64_t>(j)))) - 0.3f);
    }
  return rows;
}

/// Collective. A graph without edges.
template <class T>
void write(const std::string& path) {
  const auto& world = test_world();
  const auto mine = even_range(kRows, world.size(), world.rank());
  Csr<std::int32_t> no_edges;
  no_edges.rows = mine.size();
  no_edges.columns = kRows;
  no_edges.indptr.assign(static_cast<std::size_t>(mine.size()) + 1, 0);
  GraphWriter writer(world, {path, true});
  writer.write_adjacency(no_edges);
  writer.write_features(rows_from<T>(mine.begin, mine.size()));
  writer.commit({"features", "a test", false});
}

std::vector<std::int64_t> random_numbers(std::size_t count, std::mt19937_64& random) {
  std::vector<std::int64_t> numbers;
  while (numbers.size() < count) numbers.push_back(static_cast<std::int64_t>(random() % kRows));
  return numbers;
}

template <class T>
void expect_reads(const std::string& path) {
  write<T>(path);
  const GraphFile file(test_world(), path);
  const DiskRows disk(test_world(), file, input_tables(file.info(), 0)[0]);
  EXPECT_EQ(disk.rows(), kRows);
  EXPECT_EQ(disk.width(), kWidth);
  std::mt19937_64 random(test_seed(81));
  const auto all = rows_from<T>(0, kRows);
  for (const std::size_t count : {0, 1, 5, 3000})
    for (const int threads : {1, 3}) {
      const auto numbers = random_numbers(count, random);
      Matrix<T> rows(std::ssize(numbers), kWidth);
      disk.read<T>(Cpu{threads}, numbers, rows);
      for (std::int64_t k = 0; k < rows.rows; ++k)
        EXPECT_EQ(std::memcmp(rows.row(k), all.row(numbers[k]), kWidth * sizeof(T)), 0) << numbers[k];
    }
}

TEST(DiskRows, ReadsAreTheRowsOfTheFile) {
  const auto folder = test_folder("disk-rows");
  expect_reads<float>(folder + "/float.h5");
  expect_reads<Half>(folder + "/half.h5");
}

TEST(DiskRows, FetchesAreThoseFromMemory) {
  const auto folder = test_folder("disk-rows");
  write<float>(folder + "/float.h5");
  write<Half>(folder + "/half.h5");
  std::mt19937_64 random(test_seed(82) + static_cast<unsigned>(test_world().rank()));
  for (const char* name : {"/float.h5", "/half.h5"}) {
    const GraphFile file(test_world(), folder + name);
    const auto tables = input_tables(file.info(), 0);
    for (const int c : divisors(test_world().size())) {
      const Grid grid(test_world(), c);
      std::vector<std::int32_t> owner;
      for (std::int64_t v = 0; v < kRows; ++v)
        owner.push_back(static_cast<std::int32_t>(v % 97 % grid.rows()));
      for (const Ownership& owned :
           {Ownership(block_partition(kRows, grid.rows())), Ownership(owner, grid.rows())})
        for (const char* norm : {"none", "row", "standard"}) {
          SCOPED_TRACE(testing::Message()
                       << name << " c " << c << ", " << norm << ", map " << owned.is_map());
          const auto memory = read_features(grid, file, owned, tables, norm),
                     disk = read_features(grid, file, owned, tables, norm, {}, true);
          EXPECT_EQ(disk.standard, memory.standard);
          auto ids = random_numbers(400, random);
          std::ranges::sort(ids);
          ids.erase(std::ranges::unique(ids).begin(), ids.end());
          const std::vector<std::span<const std::int64_t>> lists = {
              ids, std::span(ids).first(ids.size() / 3), {}};
          std::vector<Matrix<float>> expected, rows;
          memory.stores[0].fetch(Cpu{1}, lists, expected, "test");
          disk.stores[0].fetch(Cpu{2}, lists, rows, "test");
          for (std::size_t m = 0; m < lists.size(); ++m) EXPECT_TRUE(same_numbers(rows[m], expected[m])) << m;
        }
    }
  }
}

}  // namespace
}  // namespace espalier
