// ranks: 1 3 6
// long ranks: 2 4
// Law: whoever owns a vertex, in ranges or by a map, and in whatever pieces the file is read, gets
// its row, weights, features and label as they stand in the file, at its place.
#include "espalier/partition/owned_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "dense/random_matrices.hpp"
#include "espalier/graph/graph_writer.hpp"
#include "mpi_test.hpp"
#include "owned.hpp"
#include "random_graph.hpp"

namespace espalier {
namespace {

constexpr std::int64_t kVertices = 83, kFeatures = 5, kLabels = 3;

std::int32_t label_of(std::int64_t v) {
  return static_cast<std::int32_t>(v * 7 % 4) - 1;
}

std::uint8_t label_of(std::int64_t v, std::int64_t column) {
  return static_cast<std::uint8_t>((v * 5 + column) % 2);
}

template <class T>
Matrix<T> all_features() {
  Matrix<T> all(kVertices, kFeatures);
  for (std::int64_t k = 0; k < kVertices * kFeatures; ++k)
    all.data[k] = as_stored<T>(static_cast<float>(k) / 7);
  return all;
}

// Collective. Rank 0 has all rows to write.
template <class Index, class T>
void write(const std::string& path, const Csr<Index>& a, bool multi_label) {
  const bool writes = test_world().rank() == 0;
  GraphWriter writer(test_world(), {path, true});
  Csr<Index> none;
  none.columns = a.columns;
  writer.write_adjacency(writes ? a : none);
  writer.write_rows(Column::kFeatures, 0, writes ? all_features<T>() : Matrix<T>());
  Buffer<std::int32_t> labels;
  Matrix<std::uint8_t> several(writes ? kVertices : 0, kLabels);
  for (std::int64_t v = 0; writes && v < kVertices; ++v) {
    labels.push_back(label_of(v));
    for (std::int64_t j = 0; j < kLabels; ++j) several(v, j) = label_of(v, j);
  }
  if (multi_label)
    writer.write_rows(Column::kLabels, 0, several);
  else
    writer.write_labels(labels);
  writer.commit({"test", "a test", true});
}

template <class Index>
void expect_rows(const Csr<Index>& mine, const Csr<Index>& whole, const Ownership& ownership, int part) {
  ASSERT_EQ(mine.rows, ownership.size(part));
  ASSERT_EQ(mine.columns, kVertices);
  ASSERT_EQ(mine.has_values(), whole.has_values());
  for (std::int64_t k = 0; k < mine.rows; ++k) {
    const auto v = ownership.vertex(part, k);
    EXPECT_TRUE(std::ranges::equal(mine.row_indices(k), whole.row_indices(v))) << v;
    EXPECT_TRUE(std::ranges::equal(mine.row_values(k), whole.row_values(v))) << v;
  }
}

template <class T>
void expect_features(const Matrix<T>& mine, const Ownership& ownership, int part) {
  const auto whole = all_features<T>();
  ASSERT_EQ(mine.rows, ownership.size(part));
  ASSERT_EQ(mine.columns, kFeatures);
  for (std::int64_t k = 0; k < mine.rows; ++k)
    EXPECT_EQ(std::memcmp(mine.row(k), whole.row(ownership.vertex(part, k)), kFeatures * sizeof(T)), 0);
}

// As floats, whatever the file has.
template <class T>
void expect_pieces(const OwnedReader& reader, const Ownership& ownership, int part, bool many) {
  const auto whole = all_features<T>();
  std::int64_t pieces = 0, place = 0;
  reader.features_in_pieces<float>(HeldTypes(), kFeatures, [&](Matrix<float> rows) {
    EXPECT_EQ(rows.columns, kFeatures);
    EXPECT_EQ(rows.rows * kFeatures, std::ssize(rows.data));
    for (std::int64_t k = 0; k < rows.rows; ++k, ++place)
      for (std::int64_t j = 0; j < kFeatures; ++j)
        EXPECT_EQ(rows(k, j), to_float(whole(ownership.vertex(part, place), j)));
    ++pieces;
  });
  EXPECT_EQ(place, ownership.size(part));
  EXPECT_EQ(pieces > 1, many);
  EXPECT_EQ(test_world().all_reduce(pieces, Reduction::kMax, "test"), pieces);
}

void expect_labels(const OwnedReader& reader, const Ownership& shares, int rank, bool multi_label) {
  if (multi_label) {
    const auto labels = reader.multi_labels();
    ASSERT_EQ(labels.rows, shares.size(rank));
    for (std::int64_t k = 0; k < labels.rows; ++k)
      for (std::int64_t j = 0; j < kLabels; ++j) EXPECT_EQ(labels(k, j), label_of(shares.vertex(rank, k), j));
  } else {
    const auto labels = reader.labels();
    ASSERT_EQ(std::ssize(labels), shares.size(rank));
    for (std::int64_t k = 0; k < std::ssize(labels); ++k)
      EXPECT_EQ(labels[k], label_of(shares.vertex(rank, k)));
  }
}

template <class Index, class T>
void expect_as_written(const std::string& path, bool weighted, bool multi_label) {
  const auto whole = random_graph<Index>(kVertices, 4, weighted, test_seed(3));
  write<Index, T>(path, whole, multi_label);
  const GraphFile file(test_world(), path);
  for (const int c : divisors(test_world().size()))
    for (const auto owned : kAllOwned)
      for (const std::int64_t piece : {64, 1 << 20}) {  // many pieces, one
        const Grid grid(test_world(), c);
        const auto ownership = ownership_of(owned, kVertices, grid.rows());
        SCOPED_TRACE("c " + std::to_string(c) + " owned " + std::to_string(static_cast<int>(owned)));
        const OwnedReader reader(grid, file, ownership, piece);
        expect_rows(reader.rows<Index>(), whole, ownership, grid.row());
        expect_features(reader.features<T>(HeldTypes(), kFeatures), ownership, grid.row());
        expect_pieces<T>(reader, ownership, grid.row(), piece < 1000);
        expect_labels(reader, ownership.cut(c), test_world().rank(), multi_label);
      }
}

TEST(OwnedReader, BringsRowsToTheirOwners) {
  const auto folder = test_folder("owned-reader");
  expect_as_written<std::int32_t, float>(folder + "/a.h5", false, false);
  expect_as_written<std::int64_t, Half>(folder + "/b.h5", true, true);
}

// All rows are of the one part, which every rank has.
TEST(OwnedReader, BringsAllToEveryRank) {
  const auto path = test_folder("owned-reader-whole") + "/a.h5";
  const auto whole = random_graph<std::int32_t>(kVertices, 4, true, test_seed(3));
  write<std::int32_t, float>(path, whole, false);
  const GraphFile file(test_world(), path);
  const Grid grid(test_world(), 1);
  const Ownership one = block_partition(kVertices, 1);
  expect_rows(OwnedReader(grid, file, one).rows<std::int32_t>(), whole, one, 0);
}

}  // namespace
}  // namespace espalier
