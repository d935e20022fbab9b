// ranks: 1 2 3 8
// long ranks: 4 6
// Laws: what was written, in whatever ranges, is what is read, in whatever ranges. (Damaged values,
// which are errors of all ranks with their place: tests/app/graph_commands_test.py.)
#include "espalier/graph/graph_file.hpp"

#include <gtest/gtest.h>

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

TEST(GraphFile, ANumberTooLargeForFloat16IsAnErrorOfAllRanks) {
  const auto path = test_folder("graph-file") + "/graph.h5";
  auto g = plain_graph(20, true);
  g.vertices[0].features(13, 2) = 1e6f;
  write_graph(test_world(), g, rows_apart<std::int64_t>(g), 0, path);
  const GraphFile file(test_world(), path);
  const auto mine = range_of(20, 0);
  expect_refused(ExitCode::kInput, {"/nodes/features: row 13, column 2 is too large for float16", path},
                 [&] { file.read_features<Half>(mine.begin, mine.end); });
  test_world().barrier();
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
