// Laws: rows of edges that are read twice are, bit for bit, those of a list of the same edges, and
// so are counts, the refused duplicate and the edges that features come from, whatever the pieces;
// edges that change between two readings are an error, and nothing is written out of bounds.
#include "espalier/graph/edge_source.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "mpi_test.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

// A list in pieces of various sizes; `later` is what a second reading finds.
class Pieces : public EdgeSource {
 public:
  explicit Pieces(const EdgeList<std::int64_t>& edges) : edges_(edges), later_(edges) {}
  Pieces(const EdgeList<std::int64_t>& edges, const EdgeList<std::int64_t>& later)
      : edges_(edges), later_(later) {}
  void read(const std::function<void(const EdgePiece&)>& use) const override {
    const auto& of = readings_++ == 0 ? edges_ : later_;
    for (std::size_t begin = 0, size = 1; begin < of.sources.size(); begin += size, size = size % 7 + 1) {
      const auto count = std::min(size, of.sources.size() - begin);
      const auto part = [&](const auto& all) { return std::span(all).subspan(begin, count); };
      use({part(of.sources), part(of.targets), weighted() ? part(of.weights) : std::span<const float>()});
    }
  }
  bool weighted() const override { return !edges_.weights.empty(); }
  std::string name() const override { return "pieces"; }
  std::string place(std::int64_t edge) const override { return fmt::format("pieces:{}", edge); }

 private:
  EdgeList<std::int64_t> edges_, later_;
  mutable int readings_ = 0;
};

EdgeList<std::int64_t> random_edges(std::mt19937_64& random, std::int64_t n, std::uint64_t count,
                                    bool weighted) {
  EdgeList<std::int64_t> edges;
  for (; n > 0 && count > 0; --count) {
    edges.sources.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n)));
    edges.targets.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n)));
    if (weighted) edges.weights.push_back(static_cast<float>(random() % 1000) / 7);
  }
  return edges;
}

void expect_equal(const EdgeCounts& a, const EdgeCounts& b) {
  for (const auto field :
       {&EdgeCounts::given, &EdgeCounts::reversed, &EdgeCounts::loops_dropped, &EdgeCounts::merged,
        &EdgeCounts::repeated, &EdgeCounts::mirrored, &EdgeCounts::alike, &EdgeCounts::loops})
    EXPECT_EQ(a.*field, b.*field);
}

// Where features are added up every edge has the first of those it meets.
void expect_standing(const EdgeList<std::int64_t>& edges, const EdgeOptions& options,
                     const Buffer<std::int64_t>& first, const Buffer<std::int64_t>& standing) {
  ASSERT_EQ(standing.size(), edges.sources.size());
  for (std::size_t e = 0; e < edges.sources.size(); ++e) {
    const auto u = edges.sources[e], v = edges.targets[e];
    if (options.drop_self_loops && u == v) {
      EXPECT_EQ(standing[e], -1);
      continue;
    }
    EXPECT_NE(std::ranges::find(first, standing[e]), first.end());
    const auto f = static_cast<std::size_t>(standing[e]);
    const auto x = edges.sources[f], y = edges.targets[f];
    EXPECT_TRUE((x == u && y == v) || (options.symmetrize && x == v && y == u));
  }
}

template <class Index>
void compare(const EdgeList<std::int64_t>& edges, std::int64_t n, const EdgeOptions& options) {
  auto list = EdgeList<Index>{{edges.sources.begin(), edges.sources.end()},
                              {edges.targets.begin(), edges.targets.end()},
                              edges.weights};
  const auto copy = list;
  const Pieces pieces(edges);
  EdgeCounts counts, expected_counts;
  std::string refused, expected_refusal;
  const auto words = [](const RepeatedEdge& of) {
    return fmt::format("{} {} {} {} {}", of.edge, of.earlier, of.source, of.target, of.reversed);
  };
  Csr<Index> expected, rows;
  try {
    expected = build_rows(list, {0, n}, n, options, expected_counts);
  } catch (const DuplicateEdge& found) {
    expected_refusal = words(found.found());
  }
  try {
    rows = build_rows<Index>(pieces, count_entries(pieces, n, options), options, counts);
  } catch (const DuplicateEdge& found) {
    refused = words(found.found());
  }
  EXPECT_EQ(refused, expected_refusal);
  if (!refused.empty()) return;
  EXPECT_EQ(rows.indptr, expected.indptr);
  EXPECT_EQ(rows.indices, expected.indices);
  EXPECT_EQ(rows.values, expected.values);
  expect_equal(counts, expected_counts);
  const auto first = feature_edges(copy, {0, n}, options, expected);
  EXPECT_EQ(feature_edges(pieces, options, rows), first);
  expect_standing(edges, options, first, standing_edges(pieces, options, rows, first));
}

TEST(EdgeSource, RowsOfAList) {
  const auto seed = test_seed(53);
  SCOPED_TRACE(fmt::format("ESPALIER_TEST_SEED={}", seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 60; ++round) {
    const auto n = static_cast<std::int64_t>(random() % 40 + 1);
    const auto edges = random_edges(random, n, random() % 200, round % 2 == 0);
    for (const bool symmetrize : {false, true})
      for (const bool drop : {false, true})
        for (const auto how : {Duplicates::kSum, Duplicates::kMean, Duplicates::kMax, Duplicates::kFirst,
                               Duplicates::kLast, Duplicates::kCount, Duplicates::kRefuse}) {
          compare<std::int32_t>(edges, n, {symmetrize, drop, how});
          compare<std::int64_t>(edges, n + 3, {symmetrize, drop, how});
        }
  }
}

// Columns beyond the rows, as relations make them.
TEST(EdgeSource, RowsOfAWideMatrix) {
  const EdgeList<std::int64_t> edges{{7, 0, 7, 3}, {1, 2, 1, 0}, {}};
  const Pieces pieces(edges);
  EdgeCounts counts;
  const auto rows = build_rows<std::int32_t>(pieces, count_entries(pieces, 3, {}, 8), {}, counts);
  EXPECT_EQ(rows.columns, 8);
  EXPECT_EQ(rows.indptr, Buffer<std::int64_t>({0, 1, 2, 3}));
  EXPECT_EQ(rows.indices, Buffer<std::int32_t>({3, 7, 0}));
  EXPECT_EQ(counts.repeated, 1);
}

TEST(EdgeSource, AsManyVerticesAsTheLargestIdSays) {
  EdgeList<std::int64_t> edges{{0, 9, 2}, {1, 3, 2}, {}};
  for (const bool symmetrize : {false, true}) {
    const auto counted = count_entries(Pieces(edges), -1, {symmetrize, false, Duplicates::kSum});
    EXPECT_EQ(counted.nodes, 10);
    EXPECT_EQ(std::ssize(counted.indptr), 11);
  }
  EXPECT_EQ(count_entries(Pieces(edges), -1, {false, true, Duplicates::kSum}).edges.loops_dropped, 1);
  EXPECT_EQ(count_entries(Pieces(edges), 12, {}).nodes, 12);
  EXPECT_EQ(count_entries(Pieces({}), -1, {}).nodes, 0);
}

TEST(EdgeSource, EdgesThatChange) {
  const auto seed = test_seed(59);
  SCOPED_TRACE(fmt::format("ESPALIER_TEST_SEED={}", seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 50; ++round) {
    const auto before = random_edges(random, 30, 100, false);
    auto after = before;
    if (round % 3 == 0) {
      after.targets[random() % 100] = 40;
    } else if (round % 3 == 1) {
      after = random_edges(random, 30, 90 + random() % 30, false);
    } else {
      const auto at = random() % 99;
      if (after.targets[at] == after.targets[at + 1]) continue;
      std::swap(after.targets[at], after.targets[at + 1]);
    }
    const auto said = message_of(ExitCode::kInput, [&] {
      const Pieces pieces(before, after);
      EdgeCounts counts;
      build_rows<std::int32_t>(pieces, count_entries(pieces, 30, {}), {}, counts);
    });
    EXPECT_NE(said.find("pieces: changed while it was read"), std::string::npos) << said;
  }
}

// A vertex far beyond the edges takes no memory before somebody says that it is meant; where there
// are enough edges, in whatever order, nothing differs.
TEST(CountEntries, AreOfAsManyVerticesAsEdgesHaveAUseFor) {
  const std::int64_t last = std::int64_t{1} << 31, few = std::int64_t{1} << 24;
  const EdgeList<std::int64_t> edges{{0, last, 1}, {1, 0, 0}, {}};
  expect_refused(ExitCode::kInput,
                 {"pieces:1: vertex 2147483648 makes 2147483649 vertices, of which 3 have an edge",
                  "--renumber", "--vertices 2147483649"},
                 [&] { count_entries(Pieces(edges), -1, {}); });
  EXPECT_EQ(count_entries(Pieces({{few - 1}, {0}, {}}), -1, {}).nodes, few);
  EXPECT_EQ(count_entries(Pieces({{few + 1}, {0}, {}}), few + 2, {}).nodes, few + 2);

  const std::int64_t n = few + 1000;
  EdgeList<std::int64_t> many{{n - 1, 5, n - 2}, {n - 3, n - 1, 7}, {}};
  for (std::int64_t e = 0; e < n / 64; ++e) {
    many.sources.push_back(e);
    many.targets.push_back(e % 2 == 0 ? n - 3 : e);
  }
  Buffer<std::int64_t> expected(n + 1, 0);
  for (const auto v : many.targets) ++expected[v + 1];
  for (std::int64_t v = 0; v < n; ++v) expected[v + 1] += expected[v];
  EXPECT_TRUE(count_entries(Pieces(many), -1, {}).indptr == expected);
}

}  // namespace
}  // namespace espalier
