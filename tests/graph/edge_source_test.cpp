// ranks: 1 2 3 4
// Laws: rows of edges that are read twice are, bit for bit, those of a list of the same edges, and
// so are counts, the refused duplicate, times and the edges that features come from, whatever the
// pieces, on any number of ranks, whichever of them reads which part. Edges that change between two
// readings are an error, and nothing is written out of bounds; of several errors the first of the
// file is everyone's.
#include "espalier/graph/edge_source.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "mpi_test.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

// A list in pieces of various sizes; `later` is what a second reading finds. Edge e was at time
// e * 7 % 10.
class Pieces : public EdgeSource {
 public:
  explicit Pieces(const EdgeList<std::int64_t>& edges) : Pieces(edges, edges) {}
  Pieces(const EdgeList<std::int64_t>& edges, const EdgeList<std::int64_t>& later)
      : edges_(edges), later_(later) {
    for (std::size_t e = 0; e < std::max(edges.sources.size(), later.sources.size()); ++e)
      times_.push_back(static_cast<std::int64_t>(e * 7 % 10));
  }
  void read(const std::function<void(const EdgePiece&)>& use) const override { Pieces::read_parts({}, use); }
  // Parts of a few pieces, some of none.
  void read_parts(const RankShare& share, const std::function<void(const EdgePiece&)>& use) const override {
    const auto& of = readings_++ == 0 ? edges_ : later_;
    std::size_t begin = 0, size = 1;
    for (int part = 0; begin < of.sources.size(); ++part) {
      for (int pieces = (part + 1) * (part + 2) % 5; pieces > 0 && begin < of.sources.size(); --pieces) {
        const auto count = std::min(size, of.sources.size() - begin);
        if (part % share.ranks == share.rank) read_piece(of, begin, count, use);
        begin += count;
        size = size % 7 + 1;
      }
      if (part % share.ranks == share.rank) share.next();
    }
  }
  bool weighted() const override { return !edges_.weights.empty(); }
  std::string name() const override { return "pieces"; }
  std::string place(std::int64_t edge) const override { return fmt::format("pieces:{}", edge); }
  const std::vector<std::int64_t>& times() const { return times_; }
  /// It is no edge.
  void spoil(std::int64_t edge) { spoilt_.push_back(edge); }

 private:
  void read_piece(const EdgeList<std::int64_t>& of, std::size_t begin, std::size_t count,
                  const std::function<void(const EdgePiece&)>& use) const {
    for (auto edge = static_cast<std::int64_t>(begin); edge < static_cast<std::int64_t>(begin + count);
         ++edge)
      if (std::ranges::find(spoilt_, edge) != spoilt_.end()) input_error("pieces:{}: is no edge", edge);
    const auto part = [&](const auto& all) { return std::span(all).subspan(begin, count); };
    use({part(of.sources), part(of.targets), weighted() ? part(of.weights) : std::span<const float>(), 0,
         part(times_)});
  }

  EdgeList<std::int64_t> edges_, later_;
  std::vector<std::int64_t> times_, spoilt_;
  mutable int readings_ = 0;
};

// The same, read by rank 0 alone.
class OfOneRank : public Pieces {
 public:
  using Pieces::Pieces;
  void read_parts(const RankShare& share, const std::function<void(const EdgePiece&)>& use) const override {
    EdgeSource::read_parts(share, use);
  }
};

SharedEdges shared(const EdgeSource& mine) {
  return {test_world(), &mine};
}

RowRange my_range(std::int64_t n) {
  return even_range(n, test_world().size(), test_world().rank());
}

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

// Of each entry the earliest time of the edges in its direction, else of those in the other.
std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> expected_times(
    const EdgeList<std::int64_t>& edges, const EdgeOptions& options, const std::vector<std::int64_t>& times) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> given, all;
  for (std::size_t e = 0; e < edges.sources.size(); ++e) {
    const auto [at, is_new] = given.try_emplace({edges.targets[e], edges.sources[e]}, times[e]);
    if (!is_new) at->second = std::min(at->second, times[e]);
  }
  all = given;
  for (const auto& [ends, time] : given)
    if (options.symmetrize) all.try_emplace({ends.second, ends.first}, time);
  return all;
}

// My part of something for each entry of all rows.
template <class T, class Index>
Buffer<T> my_entries(const Buffer<T>& all, const Csr<Index>& matrix) {
  const auto range = my_range(matrix.rows);
  if (all.empty()) return {};
  return {all.begin() + matrix.indptr[range.begin], all.begin() + matrix.indptr[range.end]};
}

template <class Index>
void compare(const EdgeList<std::int64_t>& edges, std::int64_t n, const EdgeOptions& options,
             const Pieces& pieces) {
  auto list = EdgeList<Index>{{edges.sources.begin(), edges.sources.end()},
                              {edges.targets.begin(), edges.targets.end()},
                              edges.weights};
  const auto copy = list;
  const auto mine = shared(pieces);
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
    rows = build_rows<Index>(mine, count_entries(mine, n, options), options, counts);
  } catch (const DuplicateEdge& found) {
    refused = words(found.found());
  }
  EXPECT_EQ(refused, expected_refusal);
  if (!refused.empty()) return;
  const auto range = my_range(n);
  ASSERT_EQ(rows.rows, range.size());
  for (std::int64_t row = 0; row <= rows.rows; ++row)
    EXPECT_EQ(rows.indptr[row], expected.indptr[range.begin + row] - expected.indptr[range.begin]);
  EXPECT_EQ(rows.indices, my_entries(expected.indices, expected));
  EXPECT_EQ(rows.values, my_entries(expected.values, expected));
  expect_equal(counts, expected_counts);
  EXPECT_EQ(count_one_way(test_world(), rows), count_one_way(expected));
  const auto first = feature_edges(copy, {0, n}, options, expected);
  const auto my_first = feature_edges(mine, options, n, rows);
  EXPECT_EQ(my_first, my_entries(first, expected));
  const auto given = std::ssize(edges.sources);
  const auto standing = standing_edges(mine, options, n, rows, my_first, given);
  if (test_world().rank() == 0)
    expect_standing(edges, options, first, standing);
  else
    EXPECT_TRUE(standing.empty());
  const auto times = entry_times(mine, options, n, rows);
  const auto at = expected_times(edges, options, pieces.times());
  for (std::int64_t row = 0; row < rows.rows; ++row)
    for (auto e = rows.row_begin(row); e < rows.row_end(row); ++e)
      EXPECT_EQ(times[e], at.at({range.begin + row, rows.indices[e]}));
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
          compare<std::int32_t>(edges, n, {symmetrize, drop, how}, Pieces(edges));
          compare<std::int64_t>(edges, n + 3, {symmetrize, drop, how}, OfOneRank(edges));
        }
  }
}

// Columns beyond the rows, as relations make them.
TEST(EdgeSource, RowsOfAWideMatrix) {
  const EdgeList<std::int64_t> edges{{7, 0, 7, 3}, {1, 2, 1, 0}, {}};
  const Pieces pieces(edges);
  EdgeCounts counts;
  const auto rows =
      build_rows<std::int32_t>(shared(pieces), count_entries(shared(pieces), 3, {}, 8), {}, counts);
  EXPECT_EQ(rows.columns, 8);
  const Buffer<std::int32_t> column = {3, 7, 0};  // of each row, which has one entry
  const auto range = my_range(3);
  ASSERT_EQ(rows.entries(), range.size());
  for (std::int64_t row = 0; row < rows.rows; ++row)
    EXPECT_EQ(rows.row_indices(row)[0], column[range.begin + row]);
  EXPECT_EQ(counts.repeated, 1);
}

CountedEntries count(const EdgeList<std::int64_t>& edges, std::int64_t nodes,
                     const EdgeOptions& options = {}) {
  const Pieces pieces(edges);
  return count_entries(shared(pieces), nodes, options);
}

TEST(EdgeSource, AsManyVerticesAsTheLargestIdSays) {
  EdgeList<std::int64_t> edges{{0, 9, 2}, {1, 3, 2}, {}};
  for (const bool symmetrize : {false, true}) {
    const auto counted = count(edges, -1, {symmetrize, false, Duplicates::kSum});
    EXPECT_EQ(counted.nodes, 10);
    EXPECT_EQ(std::ssize(counted.indptr), my_range(10).size() + 1);
  }
  EXPECT_EQ(count(edges, -1, {false, true, Duplicates::kSum}).edges.loops_dropped, 1);
  EXPECT_EQ(count(edges, 12).nodes, 12);
  EXPECT_EQ(count({}, -1).nodes, 0);
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
      build_rows<std::int32_t>(shared(pieces), count_entries(shared(pieces), 30, {}), {}, counts);
    });
    EXPECT_NE(said.find("pieces: changed while it was read"), std::string::npos) << said;
  }
}

TEST(EdgeSource, TheFirstErrorOfTheFileIsEveryones) {
  std::mt19937_64 random(test_seed(61));
  for (int round = 0; round < 30; ++round) {
    Pieces pieces(random_edges(random, 30, 100, false));
    const auto a = static_cast<std::int64_t>(random() % 100), b = static_cast<std::int64_t>(random() % 100);
    pieces.spoil(a);
    pieces.spoil(b);
    expect_refused(ExitCode::kInput, {fmt::format("pieces:{}: is no edge", std::min(a, b))},
                   [&] { count_entries(shared(pieces), -1, {}); });
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
                 [&] { count(edges, -1); });
  EXPECT_EQ(count({{few - 1}, {0}, {}}, -1).nodes, few);
  EXPECT_EQ(count({{few + 1}, {0}, {}}, few + 2).nodes, few + 2);

  const std::int64_t n = few + 1000;
  EdgeList<std::int64_t> many{{n - 1, 5, n - 2}, {n - 3, n - 1, 7}, {}};
  for (std::int64_t e = 0; e < n / 64; ++e) {
    many.sources.push_back(e);
    many.targets.push_back(e % 2 == 0 ? n - 3 : e);
  }
  const auto range = my_range(n);
  Buffer<std::int64_t> expected(range.size() + 1, 0);
  for (const auto v : many.targets)
    if (v >= range.begin && v < range.end) ++expected[v - range.begin + 1];
  for (std::int64_t row = 0; row < range.size(); ++row) expected[row + 1] += expected[row];
  const OfOneRank of_one_rank(many);
  EXPECT_TRUE(count_entries(shared(of_one_rank), -1, {}).indptr == expected);
  EXPECT_TRUE(count(many, -1).indptr == expected);
}

}  // namespace
}  // namespace espalier
