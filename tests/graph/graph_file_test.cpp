// ranks: 1 2 3 8
// long ranks: 4 6
// Laws: what was written, in whatever ranges, is what is read, in whatever ranges; a damaged value
// that one rank meets is the error of all ranks, with its place in the file.
#include "espalier/graph/graph_file.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "graph/whole_graph.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

TEST(GraphFile, RoundTrip) {
  for (const auto& [n, weighted] : {std::pair(1, false), {3, true}, {41, false}, {41, true}}) {
    SCOPED_TRACE(fmt::format("ESPALIER_TEST_SEED={} n={} weighted={}", test_seed(17), n, weighted));
    auto g = plain_graph(n, weighted);
    round_trip<std::int32_t, std::int64_t>(g);
    g.half = true;
    round_trip<std::int64_t, std::int32_t>(g);
  }
}

TEST(GraphFile, AGraphWithoutEdgesFeaturesLabels) {
  const auto path = test_folder("graph-file") + "/graph.h5";
  const auto range = even_range(10, test_world().size(), test_world().rank());
  const auto rows = matrix_of<std::int32_t>({}, range.size(), 10, false);
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

using Damage = std::function<void(Csr<std::int64_t>&, Vertices&)>;
using Reading = std::function<void(const GraphFile&, std::int64_t, std::int64_t)>;

// Collective. The message must be the same on every rank.
void expect_error(const std::string& words, const Damage& damage, const Reading& read) {
  const auto path = test_folder("graph-file") + "/graph.h5";
  auto g = plain_graph(20, true);
  auto rows = rows_apart<std::int64_t>(g);
  damage(rows, g.vertices[0]);
  write_graph(test_world(), g, rows, 0, path);
  expect_refused(ExitCode::kInput, {words, path}, [&] {
    const GraphFile file(test_world(), path);
    const auto mine = range_of(20, 0);
    read(file, mine.begin, mine.end);
  });
  test_world().barrier();
}

TEST(GraphFile, DamagedRowsAreErrorsOfAllRanks) {
  const auto read = [](const auto& file, auto begin, auto end) {
    file.template read_rows<std::int32_t>(begin, end);
  };
  const auto last = std::ssize(plain_graph(20, true).edges) - 1;
  expect_error(
      "/graph/indices: row 19 names vertex 20, but the graph has vertices 0 to 19",
      [](auto& a, auto&) { a.indices.back() = 20; }, read);
  expect_error(
      "/graph/indices: row 0 names vertex -3", [](auto& a, auto&) { a.indices[1] = -3; }, read);
  expect_error(
      "the columns of row 0 are not strictly ascending (4 after 4)",
      [](auto& a, auto&) { a.indices[4] = a.indices[3] = 4; }, read);
  expect_error(
      "/graph/weights: entry 2 is -1", [](auto& a, auto&) { a.values[2] = -1; }, read);
  expect_error(
      fmt::format("/graph/weights: entry {} is nan", last),
      [](auto& a, auto&) { a.values.back() = std::numeric_limits<float>::quiet_NaN(); }, read);
}

TEST(GraphFile, DamagedVerticesAreErrorsOfAllRanks) {
  expect_error(
      "/nodes/features: row 13, column 2 is not a finite number",
      [](auto&, auto& of) { of.features(13, 2) = std::numeric_limits<float>::infinity(); },
      [](const auto& file, auto begin, auto end) { file.template read_features<float>(begin, end); });
  expect_error(
      "/nodes/features: row 13, column 2 is too large for float16",
      [](auto&, auto& of) { of.features(13, 2) = 1e6f; },
      [](const auto& file, auto begin, auto end) { file.template read_features<Half>(begin, end); });
  expect_error(
      "/nodes/labels: vertex 7 has label -2", [](auto&, auto& of) { of.labels[7] = -2; },
      [](const auto& file, auto begin, auto end) { file.read_labels(begin, end); });
}

TEST(GraphFile, DamagedSplitsAreErrorsOfAllRanks) {
  const auto check = [](const auto& file, auto, auto) { check_splits(test_world(), file); };
  const auto train = plain_graph(20, true).vertices[0].splits[0];
  expect_error(
      "/split/train: entry", [](auto&, auto& of) { of.splits[0].push_back(20); }, check);
  expect_error(
      "/split/valid: ids are not strictly ascending",
      [](auto&, auto& of) { std::swap(of.splits[1][0], of.splits[1][1]); }, check);
  expect_error(
      fmt::format("vertex {} is in /split/train and in /split/valid", train[2]),
      [&](auto&, auto& of) {
        auto& valid = of.splits[1];
        valid.insert(std::upper_bound(valid.begin(), valid.end(), train[2]), train[2]);
      },
      check);
  expect_error(
      fmt::format("vertex {} of /split/train has no label", train[1]),
      [&](auto&, auto& of) { of.labels[train[1]] = -1; }, check);
}

TEST(GraphWriter, LeavesNothingBehindWithoutCommit) {
  const auto folder = test_folder("graph-file");
  const auto mine = range_of(9, 0);
  const auto rows = rows_apart<std::int32_t>(plain_graph(9, false));
  { GraphWriter(test_world(), folder + "/graph.h5").write_adjacency(rows_of(rows, mine.begin, mine.end)); }
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
  const auto rows = matrix_of<std::int32_t>({}, first ? n : 0, n, false);
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
