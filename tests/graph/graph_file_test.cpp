// ranks: 1 2 3 8
// long ranks: 4 6
// Laws: what was written, in whatever ranges, is what is read, in whatever ranges; a damaged value
// that one rank meets is the error of all ranks, with its place in the file.
#include "espalier/graph/graph_file.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "dense/random_matrices.hpp"
#include "espalier/graph/graph_writer.hpp"
#include "espalier/graph/row_range.hpp"
#include "graph/row_parts.hpp"
#include "mpi_test.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

// A whole graph, the same on every rank.
template <class Index>
struct WholeGraph {
  Csr<Index> a;
  Matrix<float> features;
  Buffer<std::int32_t> labels;
  Buffer<std::int64_t> train, valid;
  Matrix<float> edge_features;  // of the weighted ones; no column: none
};

// Vertex 0 has every other vertex as neighbour (degree n-1), every fifth vertex is isolated, every
// seventh has a self loop.
template <class Index>
WholeGraph<Index> make_whole_graph(std::int64_t n, std::uint64_t seed, bool weighted) {
  std::mt19937_64 random(seed);
  WholeGraph<Index> g;
  g.a.rows = g.a.columns = n;
  for (std::int64_t v = 0; v < n; ++v) {
    for (std::int64_t u = 0; u < n; ++u) {
      const bool isolated = v % 5 == 3 || u % 5 == 3;
      if (v == 0 ? u > 0 : u == v ? v % 7 == 0 : !isolated && random() % 4 == 0) {
        g.a.indices.push_back(static_cast<Index>(u));
        if (weighted) g.a.values.push_back(static_cast<float>(random() % 1000) / 8);
      }
    }
    g.a.indptr.push_back(static_cast<std::int64_t>(g.a.indices.size()));
    g.labels.push_back(static_cast<std::int32_t>(random() % 4) - 1);
    if (g.labels.back() >= 0) (random() % 2 ? g.train : g.valid).push_back(v);
  }
  g.features.resize(n, 3);
  for (auto& x : g.features.data) x = to_float(to_half(static_cast<float>(random() % 100) / 7));
  g.edge_features.resize(g.a.entries(), weighted ? 2 : 0);
  for (auto& x : g.edge_features.data) x = to_float(to_half(static_cast<float>(random() % 100) / 7));
  return g;
}

template <class T>
Matrix<T> rows_of(const Matrix<float>& h, std::int64_t begin, std::int64_t end) {
  Matrix<T> rows(end - begin, h.columns);
  for (std::size_t i = 0; i < rows.data.size(); ++i)
    rows.data[i] = as_stored<T>(h.data[static_cast<std::size_t>(begin * h.columns) + i]);
  return rows;
}

// Collective. Rank r writes rows [cuts[r], cuts[r+1]).
template <class Index, class Feature>
void write_graph(const WholeGraph<Index>& g, const std::vector<std::int64_t>& cuts, const std::string& path) {
  const auto& world = test_world();
  const auto begin = cuts[static_cast<std::size_t>(world.rank())],
             end = cuts[static_cast<std::size_t>(world.rank()) + 1];
  GraphWriter writer(world, {path, true});
  writer.write_adjacency(rows_of(g.a, begin, end));
  writer.write_rows(Column::kFeatures, 0, rows_of<Feature>(g.features, begin, end));
  writer.write_labels(part(g.labels, begin, end));
  const bool first = world.rank() == 0;  // one rank may hold a whole split
  writer.write_split(Split::kTrain, first ? g.train : Buffer<std::int64_t>());
  writer.write_split(Split::kValid, first ? g.valid : Buffer<std::int64_t>());
  if (g.edge_features.columns > 0)
    writer.write_rows(Column::kEdgeFeatures, 0,
                      rows_of<Feature>(g.edge_features, g.a.row_begin(begin), g.a.row_begin(end)));
  writer.commit({"test", "made by a test", true});
}

std::vector<std::int64_t> even_cuts(std::int64_t n) {
  std::vector<std::int64_t> cuts;
  for (int r = 0; r <= test_world().size(); ++r) cuts.push_back(n * r / test_world().size());
  return cuts;
}

// Ranges of every kind: empty in front, all on one rank, uneven.
std::vector<std::vector<std::int64_t>> awkward_cuts(std::int64_t n) {
  const auto p = static_cast<std::size_t>(test_world().size());
  std::vector<std::vector<std::int64_t>> all = {even_cuts(n)};
  all.emplace_back(p + 1, n)[0] = 0;  // rank 0 has all
  all.emplace_back(p + 1, 0)[p] = n;  // the last rank has all
  all.emplace_back(p + 1, std::min<std::int64_t>(n, 1)).front() = 0;
  all.back().back() = n;  // rank 0 one row, the last rank the others
  if (p == 1) all.resize(1);
  return all;
}

template <class Index, class Other, class Feature>
void round_trip(std::int64_t n, bool weighted) {
  const auto seed = test_seed(17);
  SCOPED_TRACE(fmt::format("ESPALIER_TEST_SEED={} n={}", seed, n));
  const auto g = make_whole_graph<Index>(n, seed, weighted);
  const auto path = test_folder("graph-file") + "/graph.h5";
  const auto& world = test_world();
  for (const auto& write_cuts : awkward_cuts(n)) {
    write_graph<Index, Feature>(g, write_cuts, path);
    const GraphFile file(world, path);
    EXPECT_EQ(file.info().name, "test");
    EXPECT_EQ(file.info().directed, true);
    EXPECT_TRUE(file.has_digest());
    EXPECT_EQ(file.info().nodes, n);
    EXPECT_EQ(file.info().edges, g.a.entries());
    EXPECT_EQ(file.info().features, 3);
    EXPECT_EQ(file.info().weighted, weighted);
    EXPECT_EQ(file.info().wide_indices, sizeof(Index) == 8);
    EXPECT_EQ(file.info().half_features, sizeof(Feature) == 2);
    for (const auto& cuts : awkward_cuts(n)) {
      const auto begin = cuts[static_cast<std::size_t>(world.rank())],
                 end = cuts[static_cast<std::size_t>(world.rank()) + 1];
      expect_rows(file.read_rows<Index>(begin, end), rows_of(g.a, begin, end));
      const auto other = file.read_rows<Other>(begin, end);
      EXPECT_TRUE(
          std::equal(other.indices.begin(), other.indices.end(), g.a.indices.begin() + g.a.row_begin(begin)));
      EXPECT_EQ(file.read_features<float>(begin, end).data, rows_of<float>(g.features, begin, end).data);
      const auto half = file.read_features<Half>(begin, end), wanted = rows_of<Half>(g.features, begin, end);
      EXPECT_EQ(half.data.size(), wanted.data.size());
      for (std::size_t i = 0; i < half.data.size(); ++i) EXPECT_EQ(half.data[i].bits, wanted.data[i].bits);
      EXPECT_EQ(file.read_labels(begin, end), part(g.labels, begin, end));
    }
    ASSERT_EQ(file.info().edge_features.size(), 1u);
    EXPECT_EQ(file.info().edge_features[0].has(), weighted);
    EXPECT_EQ(file.info().edge_features[0].entries, weighted ? g.a.entries() : 0);
    EXPECT_EQ(file.info().edge_features[0].half, weighted && sizeof(Feature) == 2);
    if (weighted)
      for (const auto& cuts : awkward_cuts(g.a.entries())) {
        const auto begin = cuts[static_cast<std::size_t>(world.rank())],
                   end = cuts[static_cast<std::size_t>(world.rank()) + 1];
        EXPECT_EQ(file.read<float>(Column::kEdgeFeatures, 0, begin, end).data,
                  rows_of<float>(g.edge_features, begin, end).data);
      }
    EXPECT_EQ(file.read_split(Split::kTrain), g.train);
    EXPECT_EQ(file.read_split(Split::kValid), g.valid);
    EXPECT_TRUE(file.read_split(Split::kTest).empty());
    check_splits(world, file);
    EXPECT_EQ(file.content().file, file.info().content.file);
    EXPECT_EQ(file.content().datasets, file.info().content.datasets);
    const GraphFile again(world, path, Verify::kRenew);
    EXPECT_FALSE(again.content().file);
    read_everything(world, again);
    EXPECT_EQ(again.content().file, file.info().content.file);
  }
}

TEST(GraphFile, RoundTrip) {
  round_trip<std::int32_t, std::int64_t, float>(41, false);
}
TEST(GraphFile, RoundTripWeighted) {
  round_trip<std::int32_t, std::int64_t, float>(23, true);
}
TEST(GraphFile, RoundTripWideIndices) {
  round_trip<std::int64_t, std::int32_t, float>(41, true);
}
TEST(GraphFile, RoundTripHalf) {
  round_trip<std::int32_t, std::int64_t, Half>(41, false);
}
TEST(GraphFile, RoundTripWithFewerRowsThanRanks) {
  round_trip<std::int32_t, std::int64_t, float>(3, true);
}
TEST(GraphFile, RoundTripOfOneVertex) {
  round_trip<std::int32_t, std::int64_t, float>(1, false);
}

TEST(GraphFile, AGraphWithoutEdgesFeaturesLabels) {
  const auto path = test_folder("graph-file") + "/graph.h5";
  const auto range = even_range(10, test_world().size(), test_world().rank());
  Csr<std::int32_t> rows;
  rows.rows = range.size();
  rows.columns = 10;
  rows.indptr.assign(static_cast<std::size_t>(rows.rows) + 1, 0);
  GraphWriter writer(test_world(), path);
  writer.write_adjacency(rows);
  writer.commit({"empty", "", false});
  const GraphFile file(test_world(), path);
  EXPECT_EQ(file.info().edges, 0);
  EXPECT_EQ(file.info().features, 0);
  EXPECT_EQ(file.info().classes, 0);
  EXPECT_EQ(file.read_rows<std::int32_t>(range.begin, range.end).indptr, rows.indptr);
  EXPECT_THROW(file.read_features<float>(range.begin, range.end), UserError);
  EXPECT_THROW(file.read_labels(range.begin, range.end), UserError);
}

// Collective. Writes the damaged graph, runs `read`; the message must be the same on every rank and
// contain `words`.
template <class Read>
void expect_error(const WholeGraph<std::int64_t>& g, const std::string& words, Read read) {
  const auto path = test_folder("graph-file") + "/graph.h5";
  write_graph<std::int64_t, float>(g, even_cuts(g.a.rows), path);
  expect_refused(ExitCode::kInput, {words, path}, [&] {
    const GraphFile file(test_world(), path);
    const auto range = even_range(g.a.rows, test_world().size(), test_world().rank());
    read(file, range.begin, range.end);
  });
  test_world().barrier();
}

TEST(GraphFile, DamagedRowsAreErrorsOfAllRanks) {
  const auto read_rows = [](const GraphFile& file, std::int64_t begin, std::int64_t end) {
    file.read_rows<std::int32_t>(begin, end);
  };
  const auto good = make_whole_graph<std::int64_t>(20, 5, true);
  auto g = good;
  g.a.indices.back() = 20;
  expect_error(g, "/graph/indices: row 19 names vertex 20, but the graph has vertices 0 to 19", read_rows);
  g = good;
  g.a.indices[1] = -3;
  expect_error(g, "/graph/indices: row 0 names vertex -3", read_rows);
  g = good;
  g.a.indices[3] = g.a.indices[2];
  expect_error(g, "the columns of row 0 are not strictly ascending (3 after 3)", read_rows);
  g = good;
  g.a.values[2] = -1;
  expect_error(g, "/graph/weights: entry 2 is -1", read_rows);
  g = good;
  g.a.values.back() = std::numeric_limits<float>::quiet_NaN();
  expect_error(g, fmt::format("/graph/weights: entry {} is nan", g.a.entries() - 1), read_rows);
}

TEST(GraphFile, DamagedVerticesAreErrorsOfAllRanks) {
  const auto good = make_whole_graph<std::int64_t>(20, 5, true);
  const auto read_features = [](const GraphFile& file, std::int64_t begin, std::int64_t end) {
    file.read_features<float>(begin, end);
  };
  auto g = good;
  g.features(13, 2) = std::numeric_limits<float>::infinity();
  expect_error(g, "/nodes/features: row 13, column 2 is not a finite number", read_features);
  g.features(13, 2) = 1e6f;
  expect_error(g, "/nodes/features: row 13, column 2 is too large for float16",
               [](const GraphFile& file, std::int64_t begin, std::int64_t end) {
                 file.read_features<Half>(begin, end);
               });
  g = good;
  g.labels[7] = -2;
  expect_error(
      g, "/nodes/labels: vertex 7 has label -2",
      [](const GraphFile& file, std::int64_t begin, std::int64_t end) { file.read_labels(begin, end); });
}

TEST(GraphFile, DamagedSplitsAreErrorsOfAllRanks) {
  const auto good = make_whole_graph<std::int64_t>(20, 5, true);
  const auto check = [](const GraphFile& file, std::int64_t, std::int64_t) {
    check_splits(test_world(), file);
  };
  auto g = good;
  g.train.push_back(20);
  expect_error(g, "/split/train: entry", check);
  g = good;
  std::swap(g.valid[0], g.valid[1]);
  expect_error(g, "/split/valid: ids are not strictly ascending", check);
  g = good;
  g.valid.insert(std::upper_bound(g.valid.begin(), g.valid.end(), g.train[2]), g.train[2]);
  expect_error(g, fmt::format("vertex {} is in /split/train and in /split/valid", g.train[2]), check);
  g = good;
  g.labels[static_cast<std::size_t>(g.train[1])] = -1;
  expect_error(g, fmt::format("vertex {} of /split/train has no label", g.train[1]), check);
}

TEST(GraphWriter, LeavesNothingBehindWithoutCommit) {
  const auto folder = test_folder("graph-file");
  const auto g = make_whole_graph<std::int32_t>(9, 1, false);
  const auto cuts = even_cuts(9);
  const auto r = static_cast<std::size_t>(test_world().rank());
  { GraphWriter(test_world(), folder + "/graph.h5").write_adjacency(rows_of(g.a, cuts[r], cuts[r + 1])); }
  test_world().barrier();
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST(GraphWriter, RefusesFoldersThatAreNotThere) {
  EXPECT_THROW(GraphWriter(test_world(), std::string("/no/such/folder/graph.h5")), UserError);
  EXPECT_THROW(GraphWriter(test_world(), test_folder("graph-file")), UserError);
}

// 2.2 GB in one call: more bytes than an int counts.
TEST(GraphFile, LongReadsBeyondTwoGigabytes) {
  const std::int64_t n = 550000, f = 1024;
  const auto path = test_folder("graph-file-long") + "/graph.h5";
  const bool first = test_world().rank() == 0;
  Csr<std::int32_t> rows;
  rows.rows = first ? n : 0;
  rows.columns = n;
  rows.indptr.assign(static_cast<std::size_t>(rows.rows) + 1, 0);
  {
    Matrix<float> features(first ? n : 0, f);
    for (std::size_t i = 0; i < features.data.size(); ++i) features.data[i] = static_cast<float>(i % 8191);
    GraphWriter writer(test_world(), path);
    writer.write_adjacency(rows);
    writer.write_rows(Column::kFeatures, 0, features);
    writer.commit({"large", "", false});
  }
  const GraphFile file(test_world(), path);
  const auto h = file.read_features<float>(0, first ? n : 0);
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < h.data.size(); ++i) wrong += h.data[i] != static_cast<float>(i % 8191);
  EXPECT_EQ(wrong, 0);
  test_folder("graph-file-long");
}

}  // namespace
}  // namespace espalier
