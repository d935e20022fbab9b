// ranks: 1 2 3 4
// Laws of a split by time, over all relations, against a list of edges in memory: the time of a
// link is the latest of the entries that stand for it; a border goes to the nearer end of a moment;
// no entry of a link that stays is as late as what is to be found; other numbers of the vertices
// move nothing.
// Laws of what tells links: found where a search of all edges finds them, in every relation and
// direction; edges of --also go with the links that they say.
#include "espalier/graph/split_links.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "espalier/graph/graph_writer.hpp"
#include "espalier/graph/row_range.hpp"
#include "mpi_test.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

// ---- a whole graph, the same on every rank ----

using Edge = std::array<std::int64_t, 3>;  // row, relation, source
using Link = std::array<std::int64_t, 3>;  // relation, head, tail; ascending where each has
                                           // its reverse

struct TimedGraph {
  Schema schema;
  bool typed = true;
  std::map<Edge, std::int64_t> when;
  std::set<int> timeless;  // relations
};

GraphView apart() {
  GraphView view;
  view.apart = true;
  return view;
}

void write(const TimedGraph& g, const std::string& path) {
  const auto& world = test_world();
  const auto mine = even_range(g.schema.nodes(), world.size(), world.rank());
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> entries;
  for (const auto& [edge, when] : g.when)
    if (edge[0] >= mine.begin && edge[0] < mine.end)
      entries[{edge[0], g.schema.column(static_cast<int>(edge[1]), edge[2])}] = when;
  Csr<std::int32_t> rows;
  rows.rows = mine.size();
  rows.columns = g.schema.columns();
  rows.indptr.assign(rows.rows + 1, 0);
  std::vector<std::vector<std::int64_t>> times(g.schema.relations().size());
  for (const auto& [place, when] : entries) {
    ++rows.indptr[place.first - mine.begin + 1];
    rows.indices.push_back(static_cast<std::int32_t>(place.second));
    times[g.schema.relation_of(place.second)].push_back(when);
  }
  std::partial_sum(rows.indptr.begin(), rows.indptr.end(), rows.indptr.begin());
  GraphWriter writer(world, {path, true});
  if (g.typed) writer.write_schema(g.schema);
  writer.write_adjacency(rows);
  for (int r = 0; r < std::ssize(times); ++r)
    if (!g.timeless.contains(r)) writer.write_edge_times(times[r], r);
  writer.commit({"timed", "a test", true});
}

struct SplitGraph {
  std::array<std::vector<Link>, 3> links;  // by Split, ascending, each once
  std::set<Edge> edges;
};

SplitGraph read(const std::string& path) {
  const GraphFile file(test_world(), path, apart());
  const auto& info = file.info();
  SplitGraph found;
  const auto rows = file.read_rows<std::int64_t>(0, info.nodes);
  for (std::int64_t v = 0; v < rows.rows; ++v)
    for (const auto column : rows.row_indices(v))
      found.edges.insert({v, info.schema.relation_of(column), info.schema.vertex_of(column)});
  for (const auto split : {Split::kTrain, Split::kValid, Split::kTest}) {
    const auto s = static_cast<std::size_t>(split);
    const auto links = file.read_links(split, 0, info.links.splits[s].links);
    for (std::size_t k = 0; k < links.heads.size(); ++k) {
      const int place = links.relations.empty() ? 0 : links.relations[k];
      found.links[s].push_back(
          {info.typed ? info.links.graph_relations[place] : 0, links.heads[k], links.tails[k]});
    }
  }
  return found;
}

// Relations of a type to itself, each edge with its reverse, and with an inverse; of two types,
// with an inverse whose times are others; of which some edges have a reverse.
TimedGraph make_typed(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  TimedGraph g{Schema({{"a", 0, 9}, {"b", 9, 16}}, {{"likes", 0, 1, 1},
                                                    {"liked_by", 1, 0, 0},
                                                    {"knows", 0, 0, 3},
                                                    {"known_by", 0, 0, 2},
                                                    {"cites", 0, 0, -1}}),
               true,
               {},
               {}};
  const auto moments = 3 + random() % 40;
  const auto add = [&](std::int64_t v, std::int64_t r, std::int64_t u) {
    g.when[{v, r, u}] = static_cast<std::int64_t>(random() % moments) - 5;
  };
  for (std::int64_t a = 0; a < 9; ++a) {
    for (std::int64_t b = 9; b < 16; ++b)
      if (random() % 3 == 0) add(b, 0, a), add(a, 1, b);
    for (std::int64_t other = 0; other <= a; ++other) {
      if (random() % 3 == 0)
        for (const std::int64_t r : {2, 3}) add(a, r, other), add(other, r, a);
      if (random() % 3 == 0) add(a, 4, other);
      if (random() % 3 == 0) add(other, 4, a);
    }
  }
  if (random() % 2 == 0) g.timeless.insert(1);
  return g;
}

TimedGraph make_plain(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  TimedGraph g{Schema(20), false, {}, {}};
  const auto moments = 3 + random() % 60;
  for (std::int64_t v = 0; v < 20; ++v)
    for (std::int64_t u = 0; u <= v; ++u)
      if (random() % 4 == 0)
        for (const Edge& edge : {Edge{v, 0, u}, Edge{u, 0, v}})
          g.when[edge] = static_cast<std::int64_t>(random() % moments);
  return g;
}

TimedGraph renumbered(const TimedGraph& g, const std::vector<std::int64_t>& numbers) {
  TimedGraph other{g.schema, g.typed, {}, g.timeless};
  for (const auto& [edge, when] : g.when) other.when[{numbers[edge[0]], edge[1], numbers[edge[2]]}] = when;
  return other;
}

// Within their types.
std::vector<std::int64_t> other_numbers(const Schema& schema, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::int64_t> numbers(schema.nodes());
  std::iota(numbers.begin(), numbers.end(), 0);
  for (const auto& type : schema.types())
    std::shuffle(numbers.begin() + type.begin, numbers.begin() + type.end, random);
  return numbers;
}

// ---- what is to come out ----

bool goes_both_ways(const TimedGraph& g, std::int64_t r) {
  const auto& of = g.schema.relations()[r];
  return of.source == of.target && std::ranges::all_of(g.when, [&](const auto& entry) {
           const auto& [v, q, u] = entry.first;
           return q != r || g.when.contains({u, q, v});
         });
}

// The links of each relation that is asked for, with the latest time of the entries that stand for
// it.
std::map<std::int64_t, std::map<Link, std::int64_t>> links_with_times(const TimedGraph& g) {
  std::map<std::int64_t, std::map<Link, std::int64_t>> found;
  for (const auto& [edge, when] : g.when) {
    auto [v, r, u] = edge;
    if (u == v) continue;
    const int inverse = g.schema.relations()[r].inverse;
    if (inverse >= 0 && inverse < r) {
      if (g.timeless.contains(static_cast<int>(r))) continue;
      std::swap(u, v);
      r = inverse;
    }
    if (goes_both_ways(g, r) && u > v) std::swap(u, v);
    const auto [at, is_new] = found[r].insert({{r, u, v}, when});
    if (!is_new) at->second = std::max(at->second, when);
  }
  return found;
}

// How many of the latest are nearest to so many, of whole moments; the more where two are as near.
std::int64_t nearest(const std::vector<std::int64_t>& latest_first, std::int64_t wanted) {
  const auto all = std::ssize(latest_first);
  std::int64_t best = 0;
  for (std::int64_t k = 0; k <= all; ++k) {
    const bool border = k == 0 || k == all || latest_first[k - 1] != latest_first[k];
    if (border && std::abs(k - wanted) <= std::abs(best - wanted)) best = k;
  }
  return best;
}

std::array<std::vector<Link>, 3> expected_links(const TimedGraph& g, const LinkShares& shares) {
  std::array<std::vector<Link>, 3> expected;
  for (const auto& [r, links] : links_with_times(g)) {
    std::vector<std::int64_t> times;
    for (const auto& [link, when] : links) times.push_back(when);
    std::ranges::sort(times, std::greater());
    const auto part = [&](double share) {
      return static_cast<std::int64_t>(static_cast<double>(links.size()) * share + 1e-6);
    };
    const auto test = nearest(times, part(shares[2])),
               valid = nearest(times, part(shares[2]) + part(shares[1]));
    for (const auto& [link, when] : links) {
      const auto later = std::ranges::count_if(times, [&](auto other) { return other > when; });
      auto& of = expected[later < test ? 2 : later < valid ? 1 : 0];
      of.push_back(link);
      if (g.typed && goes_both_ways(g, r)) of.push_back({link[0], link[2], link[1]});
    }
  }
  for (auto& of : expected) std::ranges::sort(of);
  return expected;
}

// Of pairs, which are written one way or the other.
std::array<std::vector<Link>, 3> in_order(std::array<std::vector<Link>, 3> links, bool pairs) {
  for (auto& of : links) {
    for (auto& link : of)
      if (pairs && link[1] > link[2]) std::swap(link[1], link[2]);
    std::ranges::sort(of);
  }
  return links;
}

void check_split(const TimedGraph& g, const LinkShares& shares, const std::string& folder) {
  const auto expected = expected_links(g, shares);
  write(g, folder + "/graph.h5");
  const GraphFile file(test_world(), folder + "/graph.h5", apart());
  const auto split = [&] {
    split_links(test_world(), file, {.shares = shares, .by_time = true}, {folder + "/links.h5", true});
  };
  if (std::ranges::any_of(expected, &std::vector<Link>::empty))
    return expect_refused(ExitCode::kUsage, {"those of one moment stay together"}, split);
  split();
  const auto found = read(folder + "/links.h5");
  EXPECT_EQ(in_order(found.links, !g.typed), expected);
  // Of each relation, with its inverse.
  std::map<std::int64_t, std::int64_t> first_hidden;
  for (const auto& [r, links] : links_with_times(g))
    for (const auto& [link, when] : links)
      if (!std::ranges::binary_search(expected[0], link))
        first_hidden[r] = std::min(first_hidden.contains(r) ? first_hidden[r] : when, when);
  for (const auto& edge : found.edges) {
    const int inverse = g.schema.relations()[edge[1]].inverse;
    const auto r = inverse >= 0 ? std::min<std::int64_t>(inverse, edge[1]) : edge[1];
    if (edge[0] != edge[2] && first_hidden.contains(r) && !g.timeless.contains(static_cast<int>(edge[1]))) {
      EXPECT_LT(g.when.at(edge), first_hidden[r]);
    }
  }
}

void check_splits(std::uint64_t graphs) {
  const auto seed = test_seed(59);
  const auto folder = test_folder("split-by-time");
  for (std::uint64_t k = 0; k < graphs; ++k) {
    SCOPED_TRACE(fmt::format("ESPALIER_TEST_SEED={} graph {}", seed, k));
    const auto g = k % 2 == 0 ? make_typed(seed + k) : make_plain(seed + k);
    const LinkShares shares = k % 3 == 0 ? LinkShares{0.5, 0.25, 0.25} : LinkShares{0.7, 0.2, 0.1};
    if (k % 2 == 0) check_split(g, shares, folder);
    check_split(renumbered(g, other_numbers(g.schema, seed + k)), shares, folder);
  }
}

TEST(SplitLinks, ByTime) {
  check_splits(4);
}
TEST(LongSplitLinks, ByTime) {
  check_splits(40);
}

}  // namespace
}  // namespace espalier
