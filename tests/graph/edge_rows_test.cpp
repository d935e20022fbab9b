// ranks: 1 2 3 4
// Laws: the rows built from edges are those of the sparse matrix that adds 1 (or the weight) at
// (target, source) per edge, or keeps the largest, first or last weight there, or their mean or
// number; what met is counted by its reason, the first repeated edge is the refused one, features
// come from the edge that was asked for. So it is of a list, and of edges that are read twice,
// whatever the pieces, on any number of ranks, whichever of them reads which part. Edges that
// change between two readings are an error, and nothing is written out of bounds; of several errors
// the first of the file is everyone's. The oracle is a std::map.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <random>

#include "espalier/graph/edge_list.hpp"
#include "espalier/graph/edge_source.hpp"
#include "mpi_test.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

constexpr std::array kFeatures{DuplicateFeatures::kKept, DuplicateFeatures::kFirst, DuplicateFeatures::kLast,
                               DuplicateFeatures::kSum, DuplicateFeatures::kMean};

struct GivenEdges {
  Buffer<std::int64_t> sources, targets;
  Buffer<float> weights;  // empty: all 1
};

// Edges in pieces of various sizes; `later` is what a second reading finds. Edge e was at time
// e * 7 % 10.
class Pieces : public EdgeSource {
 public:
  explicit Pieces(const GivenEdges& edges) : Pieces(edges, edges) {}
  Pieces(const GivenEdges& edges, const GivenEdges& later) : edges_(edges), later_(later) {
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
  void read_piece(const GivenEdges& of, std::size_t begin, std::size_t count,
                  const std::function<void(const EdgePiece&)>& use) const {
    for (auto edge = static_cast<std::int64_t>(begin); edge < static_cast<std::int64_t>(begin + count);
         ++edge)
      if (std::ranges::find(spoilt_, edge) != spoilt_.end()) input_error("pieces:{}: is no edge", edge);
    const auto part = [&](const auto& all) { return std::span(all).subspan(begin, count); };
    use({part(of.sources), part(of.targets), weighted() ? part(of.weights) : std::span<const float>(), 0,
         part(times_)});
  }

  GivenEdges edges_, later_;
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

GivenEdges random_edges(std::mt19937_64& random, std::int64_t n, std::uint64_t count, bool weighted) {
  GivenEdges edges;
  for (; n > 0 && count > 0; --count) {
    edges.sources.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n)));
    edges.targets.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n)));
    if (weighted) edges.weights.push_back(static_cast<float>(random() % 8) / 7);
  }
  return edges;
}

// ---- the oracle ----

struct MetEdge {
  std::int64_t edge;
  float weight;
  bool reversed;
};

// What every entry is made of: the edges that meet there, in their order.
struct Oracle {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<MetEdge>> places;  // (row, column)
  EdgeOptions options;
  EdgeCounts counts;
  std::int64_t one_way = 0;
  RepeatedEdge refused{.edge = -1};  // the first edge whose place was met before

  Oracle(const GivenEdges& edges, const EdgeOptions& how) : options(how) {
    counts.given = std::ssize(edges.sources);
    for (std::int64_t e = 0; e < counts.given; ++e) {
      const auto u = edges.sources[e], v = edges.targets[e];
      const float weight = edges.weights.empty() ? 1 : edges.weights[e];
      counts.loops_dropped += how.drop_self_loops && u == v;
      if (how.drop_self_loops && u == v) continue;
      places[{v, u}].push_back({e, weight, false});
      if (how.symmetrize) places[{u, v}].push_back({e, weight, true});
    }
    for (const auto& [place, met] : places) {
      one_way += !places.contains({place.second, place.first});
      add_counts(place.first == place.second, met);
      const auto again = std::ranges::find_if(met, [&](auto& of) { return of.edge != met[0].edge; });
      if (again == met.end() || (refused.edge >= 0 && refused.edge <= again->edge)) continue;
      const auto u = edges.sources[again->edge];
      refused = {again->edge, met[0].edge, u, edges.targets[again->edge], u != edges.sources[met[0].edge]};
    }
  }

  void add_counts(bool loop, const std::vector<MetEdge>& met) {
    const auto given = std::ranges::find(met, false, &MetEdge::reversed);
    const auto reversed = std::ranges::find(met, true, &MetEdge::reversed);
    const auto times_given = std::ranges::count(met, false, &MetEdge::reversed);
    counts.merged += std::ssize(met) - 1;
    counts.reversed += std::ssize(met) - times_given;
    counts.repeated += std::max<std::int64_t>(times_given - 1, 0);
    if (given == met.end() || reversed == met.end()) return;
    counts.loops += loop;
    counts.mirrored += !loop;
    counts.alike += !loop && (options.duplicates == Duplicates::kCount || given->weight == reversed->weight);
  }

  float weight(const std::vector<MetEdge>& met) const {
    const auto how = options.duplicates;
    if (how == Duplicates::kMax) return std::ranges::max(met, {}, &MetEdge::weight).weight;
    if (how == Duplicates::kFirst) return met.front().weight;
    if (how == Duplicates::kLast) return met.back().weight;
    const auto count = static_cast<double>(met.size());
    if (how == Duplicates::kCount) return static_cast<float>(count);
    double sum = 0;
    for (const auto& of : met) sum += of.weight;
    return static_cast<float>(how == Duplicates::kMean ? sum / count : sum);
  }

  std::int64_t feature_edge(const std::vector<MetEdge>& met) const {
    const bool kept = options.features == DuplicateFeatures::kKept;
    if (kept && options.duplicates == Duplicates::kMax)
      return std::ranges::max_element(met, {}, &MetEdge::weight)->edge;
    const bool last =
        options.features == DuplicateFeatures::kLast || (kept && options.duplicates == Duplicates::kLast);
    return last ? met.back().edge : met.front().edge;
  }

  // The earliest time of the edges in the entry's direction, else of those in the other.
  static std::int64_t time(const std::vector<MetEdge>& met, const std::vector<std::int64_t>& times) {
    const auto key = [&](const MetEdge& of) { return std::pair(of.reversed, times[of.edge]); };
    return key(std::ranges::min(met, {}, key)).second;
  }
};

// ---- the comparison ----

std::string words(const RepeatedEdge& of) {
  return fmt::format("{} {} {} {} {}", of.edge, of.earlier, of.source, of.target, of.reversed);
}

// The repeated edge that is refused; none: that of number -1.
template <class Build>
std::string refusal_of(const Build& build) {
  try {
    build();
  } catch (const DuplicateEdge& found) {
    return words(found.found());
  }
  return words({.edge = -1});
}

// Rows of this range; `features`: for each entry the edge that its features come from, if
// it has any.
template <class Index>
void expect_rows(const Oracle& oracle, RowRange range, bool weighted, const Csr<Index>& rows,
                 const EdgeCounts& counts, const Buffer<std::int64_t>* features) {
  auto place = oracle.places.lower_bound({range.begin, 0});
  const auto end = oracle.places.lower_bound({range.end, 0});
  ASSERT_EQ(rows.rows, range.size());
  ASSERT_EQ(rows.entries(), std::distance(place, end));
  EXPECT_EQ(rows.has_values(), weighted);
  ASSERT_EQ(std::ssize(rows.values), weighted ? rows.entries() : 0);
  if (features != nullptr) ASSERT_EQ(std::ssize(*features), rows.entries());
  for (std::int64_t row = 0; row < rows.rows; ++row)
    for (auto e = rows.row_begin(row); e < rows.row_end(row); ++e, ++place) {
      EXPECT_EQ(place->first, std::pair(range.begin + row, std::int64_t{rows.indices[e]}));
      if (features != nullptr) EXPECT_EQ((*features)[e], oracle.feature_edge(place->second));
      if (weighted) EXPECT_EQ(rows.values[e], oracle.weight(place->second));
    }
  for (const auto field :
       {&EdgeCounts::given, &EdgeCounts::reversed, &EdgeCounts::loops_dropped, &EdgeCounts::merged,
        &EdgeCounts::repeated, &EdgeCounts::mirrored, &EdgeCounts::alike, &EdgeCounts::loops})
    EXPECT_EQ(counts.*field, oracle.counts.*field);
}

// Where features are added up every edge has the first of those it meets.
void expect_standing(const GivenEdges& edges, const Oracle& oracle, const Buffer<std::int64_t>& standing) {
  ASSERT_EQ(standing.size(), edges.sources.size());
  for (std::size_t e = 0; e < edges.sources.size(); ++e) {
    const auto place = oracle.places.find({edges.targets[e], edges.sources[e]});
    EXPECT_EQ(standing[e], place == oracle.places.end() ? -1 : oracle.feature_edge(place->second));
  }
}

// A list has no weights: entries that meet are one, whatever the options say of them.
template <class Index>
void compare_list(const GivenEdges& edges, std::int64_t n, const EdgeOptions& options) {
  EdgeList<Index> list{{edges.sources.begin(), edges.sources.end()},
                       {edges.targets.begin(), edges.targets.end()}};
  EdgeCounts counts;
  const auto rows = build_rows(list, {0, n}, n, options, counts);
  EXPECT_TRUE(list.sources.empty());
  expect_rows(Oracle({edges.sources, edges.targets, {}}, options), {0, n}, false, rows, counts, nullptr);
}

// Collective. Is one refused?
template <class Index>
bool compare(const GivenEdges& edges, std::int64_t n, const EdgeOptions& options, const Pieces& pieces) {
  const Oracle oracle(edges, options);
  const bool refuse = options.duplicates == Duplicates::kRefuse && oracle.refused.edge >= 0;
  const auto refused = words(refuse ? oracle.refused : RepeatedEdge{.edge = -1});
  const auto mine = shared(pieces);
  std::optional<SharedRows<Index>> made;
  EXPECT_EQ(refusal_of([&] { made.emplace(mine, count_entries(mine, n, options), options); }), refused);
  compare_list<Index>(edges, n, options);
  if (refuse) return true;
  const auto features = made->feature_edges();
  const auto standing = made->standing_edges(features, std::ssize(edges.sources));
  const auto times = made->times();
  EXPECT_EQ(count_one_way(test_world(), made->rows()), oracle.one_way);
  const bool weighted = !edges.weights.empty() || options.duplicates == Duplicates::kCount;
  expect_rows(oracle, my_range(n), weighted, made->rows(), made->counts(), &features);
  if (test_world().rank() == 0)
    expect_standing(edges, oracle, standing);
  else
    EXPECT_TRUE(standing.empty());
  auto place = oracle.places.lower_bound({my_range(n).begin, 0});
  for (const auto time : times) EXPECT_EQ(time, Oracle::time((place++)->second, pieces.times()));
  return false;
}

TEST(EdgeRows, AreThoseOfAMap) {
  const auto seed = test_seed(53);
  SCOPED_TRACE(fmt::format("ESPALIER_TEST_SEED={}", seed));
  std::mt19937_64 random(seed);
  int refused = 0, taken = 0;
  for (int round = 0; round < 60; ++round) {
    const auto n = static_cast<std::int64_t>(random() % 40 + 1);
    const auto edges =
        random_edges(random, n, round == 0 ? 0 : random() % (round % 3 == 0 ? 20 : 200), round % 2 == 0);
    for (const bool symmetrize : {false, true})
      for (const bool drop : {false, true})
        for (const auto how : {Duplicates::kSum, Duplicates::kMean, Duplicates::kMax, Duplicates::kFirst,
                               Duplicates::kLast, Duplicates::kCount, Duplicates::kRefuse}) {
          const EdgeOptions options{symmetrize, drop, how, kFeatures[random() % kFeatures.size()]};
          refused += compare<std::int32_t>(edges, n, options, Pieces(edges));
          refused += compare<std::int64_t>(edges, n + 3, options, OfOneRank(edges));
          taken += how == Duplicates::kRefuse ? 2 : 0;
        }
  }
  EXPECT_GT(refused, 50);
  EXPECT_GT(taken - refused, 50);
}

// The largest ids that 32 bits hold: columns carry a mark while rows are built.
TEST(EdgeRows, TheLargestIds) {
  constexpr std::int64_t n = std::numeric_limits<std::int32_t>::max();
  constexpr std::int32_t last = n - 1;
  EdgeList<std::int32_t> list{{last, 0, last - 1, last, 1 << 30}, Buffer<std::int32_t>(5, last)};
  EdgeCounts counts;
  const auto a = build_rows(list, {n - 1, n}, n, {}, counts);
  EXPECT_EQ(a.indices, Buffer<std::int32_t>({0, 1 << 30, last - 1, last}));
  EXPECT_EQ(counts.repeated, 1);
}

// Columns beyond the rows, as relations make them.
TEST(EdgeSource, RowsOfAWideMatrix) {
  const GivenEdges edges{{7, 0, 7, 3}, {1, 2, 1, 0}, {}};
  const Pieces pieces(edges);
  const auto mine = shared(pieces);
  SharedRows<std::int32_t> made(mine, count_entries(mine, 3, {}, 8), {});
  const auto& rows = made.rows();
  EXPECT_EQ(rows.columns, 8);
  const Buffer<std::int32_t> column = {3, 7, 0};  // of each row, which has one entry
  const auto range = my_range(3);
  ASSERT_EQ(rows.entries(), range.size());
  for (std::int64_t row = 0; row < rows.rows; ++row)
    EXPECT_EQ(rows.row_indices(row)[0], column[range.begin + row]);
  EXPECT_EQ(made.counts().repeated, 1);
}

CountedEntries count(const GivenEdges& edges, std::int64_t nodes, const EdgeOptions& options = {}) {
  const Pieces pieces(edges);
  return count_entries(shared(pieces), nodes, options);
}

TEST(EdgeSource, AsManyVerticesAsTheLargestIdSays) {
  GivenEdges edges{{0, 9, 2}, {1, 3, 2}, {}};
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
      const auto mine = shared(pieces);
      SharedRows<std::int32_t>(mine, count_entries(mine, 30, {}), {});
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
  const GivenEdges edges{{0, last, 1}, {1, 0, 0}, {}};
  expect_refused(ExitCode::kInput,
                 {"pieces:1: vertex 2147483648 makes 2147483649 vertices, of which 3 have an edge",
                  "--renumber", "--vertices 2147483649"},
                 [&] { count(edges, -1); });
  EXPECT_EQ(count({{few - 1}, {0}, {}}, -1).nodes, few);
  EXPECT_EQ(count({{few + 1}, {0}, {}}, few + 2).nodes, few + 2);

  const std::int64_t n = few + 1000;
  GivenEdges many{{n - 1, 5, n - 2}, {n - 3, n - 1, 7}, {}};
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
