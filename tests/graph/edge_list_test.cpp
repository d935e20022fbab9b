// Laws: the rows built from an edge list are those of the sparse matrix that adds 1 (or the weight)
// at (target, source) per edge, or keeps the largest, first or last weight there, or their mean or
// number; what met is counted by its reason; a refused duplicate is the first of the list. The
// oracle is a std::map.
#include "espalier/graph/edge_list.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <random>

#include "mpi_test.hpp"

namespace espalier {
namespace {

template <class Index>
EdgeList<Index> list(std::initializer_list<std::pair<int, int>> edges,
                     std::initializer_list<float> weights = {}) {
  EdgeList<Index> out;
  for (const auto& [u, v] : edges) {
    out.sources.push_back(u);
    out.targets.push_back(v);
  }
  out.weights.assign(weights.begin(), weights.end());
  return out;
}

constexpr std::array kHows{Duplicates::kSum,   Duplicates::kMean, Duplicates::kMax,
                           Duplicates::kFirst, Duplicates::kLast, Duplicates::kCount};
constexpr std::array kFeatures{DuplicateFeatures::kKept, DuplicateFeatures::kFirst, DuplicateFeatures::kLast,
                               DuplicateFeatures::kSum, DuplicateFeatures::kMean};

TEST(EdgeList, AHandCheckedGraph) {
  auto edges = list<std::int32_t>({{2, 0}, {1, 0}, {2, 0}, {1, 1}, {0, 2}}, {1, 2, 4, 8, 16});
  EdgeCounts counts;
  const auto a = build_rows(edges, {0, 4}, 4, {}, counts);
  EXPECT_EQ(a.indptr, Buffer<std::int64_t>({0, 2, 3, 4, 4}));
  EXPECT_EQ(a.indices, Buffer<std::int32_t>({1, 2, 1, 0}));
  EXPECT_EQ(a.values, Buffer<float>({2, 5, 8, 16})) << "duplicates add up";
  EXPECT_EQ(counts.given, 5);
  EXPECT_EQ(counts.merged, 1);
  EXPECT_GT(count_one_way(a), 0);
  EXPECT_TRUE(edges.sources.empty());
}

TEST(EdgeList, SymmetrizedIsSymmetric) {
  auto edges = list<std::int64_t>({{0, 1}, {1, 2}, {2, 1}, {3, 3}});
  EdgeCounts counts;
  const auto a = build_rows(edges, {0, 4}, 4, {true, true}, counts);
  EXPECT_EQ(a.indices, Buffer<std::int64_t>({1, 0, 2, 1}));
  EXPECT_EQ(count_one_way(a), 0);
  EXPECT_EQ(counts.loops_dropped, 1);
  EXPECT_EQ(counts.reversed, 3);
  EXPECT_EQ(counts.merged, 2);
}

TEST(EdgeList, NoEdgesAtAll) {
  EdgeList<std::int32_t> edges;
  EdgeCounts counts;
  const auto a = build_rows(edges, {5, 8}, 10, {}, counts);
  EXPECT_EQ(a.indptr, Buffer<std::int64_t>({0, 0, 0, 0}));
  EXPECT_EQ(a.entries(), 0);
}

// What every entry is made of, by a map from its place to the weights of the edges that make it.
struct Oracle {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<float>> met;    // (row, column)
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<float>> given;  // (source, target)

  Oracle(const EdgeList<std::int32_t>& edges, const EdgeOptions& options) {
    for (std::size_t e = 0; e < edges.sources.size(); ++e) {
      const auto u = edges.sources[e], v = edges.targets[e];
      const float w = edges.weights.empty() ? 1 : edges.weights[e];
      if (options.drop_self_loops && u == v) continue;
      given[{u, v}].push_back(w);
      met[{v, u}].push_back(w);
      if (options.symmetrize) met[{u, v}].push_back(w);
    }
  }
  static float merged(const std::vector<float>& weights, Duplicates how) {
    if (how == Duplicates::kMax) return *std::max_element(weights.begin(), weights.end());
    if (how == Duplicates::kFirst) return weights.front();
    if (how == Duplicates::kLast) return weights.back();
    const auto count = static_cast<double>(weights.size());
    if (how == Duplicates::kCount) return static_cast<float>(count);
    const auto sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    return static_cast<float>(how == Duplicates::kMean ? sum / count : sum);
  }
  EdgeCounts counts(bool symmetrize, bool count) const {
    EdgeCounts c;
    for (const auto& [place, weights] : met) c.merged += static_cast<std::int64_t>(weights.size()) - 1;
    for (const auto& [ends, weights] : given) {
      c.repeated += static_cast<std::int64_t>(weights.size()) - 1;
      const auto reverse = given.find({ends.second, ends.first});
      if (!symmetrize || reverse == given.end()) continue;
      const bool loop = ends.first == ends.second;
      c.loops += loop;
      c.mirrored += !loop;
      c.alike += !loop && (count || weights.front() == reverse->second.front());
    }
    return c;
  }
};

// An edge whose place was met before; -1: none.
std::pair<std::int64_t, std::int64_t> first_repeated(const EdgeList<std::int32_t>& edges,
                                                     const EdgeOptions& options) {
  const auto same = [&](std::size_t a, std::size_t b) {
    const auto u = edges.sources[a], v = edges.targets[a], x = edges.sources[b], y = edges.targets[b];
    return (u == x && v == y) || (options.symmetrize && u == y && v == x);
  };
  for (std::size_t e = 0; e < edges.sources.size(); ++e) {
    if (options.drop_self_loops && edges.sources[e] == edges.targets[e]) continue;
    for (std::size_t f = 0; f < e; ++f)
      if (same(e, f)) return {static_cast<std::int64_t>(e), static_cast<std::int64_t>(f)};
  }
  return {-1, -1};
}

EdgeList<std::int32_t> random_list(std::mt19937_64& random, std::int64_t n, std::uint64_t edges,
                                   bool weighted) {
  EdgeList<std::int32_t> list;
  for (; edges > 0; --edges) {
    list.sources.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(n)));
    list.targets.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(n)));
    if (weighted) list.weights.push_back(static_cast<float>(random() % 4));
  }
  return list;
}

TEST(EdgeList, AnEntryHasTheFeaturesOfTheEdgeWhoseWeightItHas) {
  const auto edges =
      list<std::int32_t>({{2, 5}, {4, 5}, {2, 5}, {5, 4}, {6, 6}, {4, 5}, {6, 6}}, {1, 2, 1, 5, 3, 5, 4});
  for (const bool symmetrize : {false, true})
    for (const auto how : {Duplicates::kSum, Duplicates::kFirst, Duplicates::kMax}) {
      auto copy = edges;
      EdgeCounts counts;
      const EdgeOptions options{symmetrize, false, how};
      const RowRange rows = symmetrize ? RowRange{0, 8} : RowRange{4, 7};
      const auto a = build_rows(copy, rows, 8, options, counts);
      // By row: 2 <- 5; 4 <- 5; 5 <- 2, 4; 6 <- 6.
      const auto of_first =
          symmetrize ? Buffer<std::int64_t>{0, 1, 0, 1, 4} : Buffer<std::int64_t>{3, 0, 1, 4};
      const auto of_max = symmetrize ? Buffer<std::int64_t>{0, 3, 0, 3, 6} : Buffer<std::int64_t>{3, 0, 5, 6};
      EXPECT_EQ(feature_edges(edges, rows, options, a), how == Duplicates::kMax ? of_max : of_first);
    }
}

// The oracle looks at the whole list for each entry.
TEST(EdgeList, FeatureEdgesOfRandomLists) {
  const auto seed = test_seed(41);
  SCOPED_TRACE(fmt::format("ESPALIER_TEST_SEED={}", seed));
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 300; ++trial) {
    const auto n = static_cast<std::int64_t>(1 + random() % 12);
    const auto how = kHows[random() % kHows.size()];
    const auto of_features = kFeatures[random() % kFeatures.size()];
    const EdgeOptions options{random() % 2 == 0, random() % 2 == 0, how, of_features};
    const auto edges = random_list(random, n, random() % 60, random() % 2 == 0);
    auto copy = edges;
    EdgeCounts counts;
    const auto a = build_rows(copy, {0, n}, n, options, counts);
    const auto found = feature_edges(edges, {0, n}, options, a);
    ASSERT_EQ(found.size(), a.indices.size());
    const auto weight = [&](std::int64_t e) { return edges.weights.empty() ? 1 : edges.weights[e]; };
    for (std::int64_t v = 0; v < n; ++v)
      for (auto place = a.row_begin(v); place < a.row_end(v); ++place) {
        const std::int64_t u = a.indices[place];
        std::vector<std::int64_t> between;
        for (std::int64_t e = 0; e < std::ssize(edges.sources); ++e)
          if ((edges.sources[e] == u && edges.targets[e] == v) ||
              (options.symmetrize && edges.sources[e] == v && edges.targets[e] == u))
            between.push_back(e);
        const bool kept = of_features == DuplicateFeatures::kKept;
        if (kept && how == Duplicates::kMax)
          std::ranges::stable_sort(between, [&](auto e, auto f) { return weight(e) > weight(f); });
        if (of_features == DuplicateFeatures::kLast || (kept && how == Duplicates::kLast))
          std::ranges::reverse(between);
        EXPECT_EQ(found[place], between.front());
        const bool one = how == Duplicates::kMax || how == Duplicates::kFirst || how == Duplicates::kLast;
        if (a.has_values() && kept && one)
          EXPECT_EQ(a.values[place], weight(found[place])) << "one edge's weight and features";
      }
  }
}

TEST(EdgeList, DuplicatesMergeAsAskedAndAreCountedByTheirReason) {
  const auto seed = test_seed(29);
  SCOPED_TRACE(fmt::format("ESPALIER_TEST_SEED={}", seed));
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 500; ++trial) {
    const auto n = static_cast<std::int64_t>(1 + random() % (trial < 300 ? 12 : 30));
    const auto how = kHows[random() % kHows.size()];
    const EdgeOptions options{random() % 2 == 0, random() % 2 == 0, how};
    auto edges = random_list(random, n, random() % (trial < 300 ? 60 : 200), random() % 2 == 0);
    const Oracle oracle(edges, options);
    EdgeCounts counts;
    const auto a = build_rows(edges, {0, n}, n, options, counts);
    ASSERT_EQ(a.entries(), static_cast<std::int64_t>(oracle.met.size()));
    EXPECT_EQ(counts.given + counts.reversed - counts.loops_dropped - counts.merged, a.entries());
    auto next = oracle.met.begin();
    bool symmetric = true;
    for (std::int64_t v = 0; v < n; ++v)
      for (auto e = a.row_begin(v); e < a.row_end(v); ++e, ++next) {
        const std::int64_t u = a.indices[static_cast<std::size_t>(e)];
        EXPECT_EQ(next->first, std::make_pair(v, u));
        symmetric = symmetric && oracle.met.contains({u, v});
        if (a.has_values())
          EXPECT_EQ(a.values[static_cast<std::size_t>(e)], Oracle::merged(next->second, how));
      }
    EXPECT_EQ(count_one_way(a) == 0, symmetric);
    const auto wanted = oracle.counts(options.symmetrize, how == Duplicates::kCount);
    EXPECT_EQ(counts.merged, wanted.merged);
    EXPECT_EQ(counts.repeated, wanted.repeated);
    EXPECT_EQ(counts.mirrored, wanted.mirrored);
    EXPECT_EQ(counts.alike, wanted.alike);
    EXPECT_EQ(counts.loops, wanted.loops);
    EXPECT_EQ(counts.merged,
              options.symmetrize ? 2 * counts.repeated + counts.mirrored + counts.loops : counts.repeated);
  }
}

TEST(EdgeList, RefusedDuplicatesAreTheFirstOfTheList) {
  const auto seed = test_seed(31);
  SCOPED_TRACE(fmt::format("ESPALIER_TEST_SEED={}", seed));
  std::mt19937_64 random(seed);
  int refused = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const auto n = static_cast<std::int64_t>(1 + random() % 12);
    const EdgeOptions options{random() % 2 == 0, random() % 2 == 0, Duplicates::kRefuse};
    auto edges = random_list(random, n, random() % 20, random() % 2 == 0);
    const auto list = edges;
    const auto wanted = first_repeated(edges, options);
    EdgeCounts counts;
    std::pair<std::int64_t, std::int64_t> got{-1, -1};
    try {
      build_rows(edges, {0, n}, n, options, counts);
    } catch (const DuplicateEdge& duplicate) {
      const auto& found = duplicate.found();
      got = {found.edge, found.earlier};
      EXPECT_EQ(found.source, list.sources[static_cast<std::size_t>(found.edge)]);
      EXPECT_EQ(found.target, list.targets[static_cast<std::size_t>(found.edge)]);
      EXPECT_EQ(found.reversed, found.source != list.sources[static_cast<std::size_t>(found.earlier)]);
      ++refused;
    }
    EXPECT_EQ(got, wanted);
  }
  EXPECT_GT(refused, 50);
  EXPECT_LT(refused, 250);
}

// The largest ids that 32 bits hold: columns carry a mark while rows are built.
TEST(EdgeList, TheLargestIds) {
  constexpr std::int64_t n = std::numeric_limits<std::int32_t>::max();
  EdgeList<std::int32_t> edges;
  const auto last = static_cast<std::int32_t>(n - 1);
  for (const auto u : {last, 0, last - 1, last, 1 << 30}) {
    edges.sources.push_back(u);
    edges.targets.push_back(last);
  }
  EdgeCounts counts;
  const auto a = build_rows(edges, {n - 1, n}, n, {}, counts);
  EXPECT_EQ(a.indices, Buffer<std::int32_t>({0, 1 << 30, last - 1, last}));
  EXPECT_EQ(counts.repeated, 1);
}

TEST(EdgeList, CountsEntriesWithoutReverse) {
  auto edges = list<std::int32_t>({{0, 1}, {1, 0}, {1, 2}, {3, 3}, {3, 0}, {2, 3}});
  EdgeCounts counts;
  const auto a = build_rows(edges, {0, 4}, 4, {}, counts);
  EXPECT_EQ(count_one_way(a), 3);
  EXPECT_EQ(counts.mirrored, 0) << "a matter of symmetrize";
}

}  // namespace
}  // namespace espalier
