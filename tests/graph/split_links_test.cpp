// ranks: 1 2 3 4
// Laws of a split by time, over all relations, against a list of edges in memory: the time of a
// link is the latest of the entries that stand for it; a border goes to the nearer end of a moment;
// no entry of a link that stays is as late as what is to be found; other numbers of the vertices
// move nothing.
// Laws of what tells links: found where a search of all edges finds them, in every relation and
// direction; edges of --also go with the links that they say.
#include "espalier/graph/rewrite_graph.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "graph/whole_graph.hpp"
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

void write(
    const TimedGraph& g, const std::string& path,
    const std::function<void(GraphWriter&)>& more = [](GraphWriter&) {}) {
  const auto& world = test_world();
  const auto mine = even_range(g.schema.nodes(), world.size(), world.rank());
  SortedEntries entries;
  for (const auto& [edge, when] : g.when)
    entries[{edge[0], g.schema.column(static_cast<int>(edge[1]), edge[2])}] = static_cast<float>(when);
  std::vector<std::vector<std::int64_t>> times(g.schema.relations().size());
  for (const auto& [place, when] : entries)
    if (place.first >= mine.begin && place.first < mine.end)
      times[g.schema.relation_of(place.second)].push_back(static_cast<std::int64_t>(when));
  const auto rows = matrix_of<std::int32_t>(entries, g.schema.nodes(), g.schema.columns(), false);
  GraphWriter writer(world, {path, true});
  if (g.typed) writer.write_schema(g.schema);
  writer.write_adjacency(rows_of(rows, mine.begin, mine.end));
  for (int r = 0; r < std::ssize(times); ++r)
    if (!g.timeless.contains(r)) writer.write_list<std::int64_t>(Column::kEdgeTime, r, times[r]);
  more(writer);
  writer.commit({"timed", "a test", true});
}

struct SplitGraph {
  std::array<std::vector<Link>, 3> links;  // by Split, ascending, each once
  std::set<Edge> edges;
};

SplitGraph read(const std::string& path) {
  const GraphFile file(test_world(), path, view_of(true));
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
  const GraphFile file(test_world(), folder + "/graph.h5", view_of(true));
  const auto split = [&] {
    rewrite_graph(test_world(), file, {.links = LinkSplitOptions{.shares = shares, .by_time = true}},
                  {folder + "/links.h5", true});
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

// ---- what tells links ----

// A shop: who buys what, the same the other way round, what was seen, mostly the same, who knows
// whom, some both ways; and what is near to what, with its inverse.
TimedGraph make_shop(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  TimedGraph g{Schema({{"who", 0, 12}, {"what", 12, 30}}, {{"buys", 0, 1, -1},
                                                           {"bought_by", 1, 0, -1},
                                                           {"seen", 0, 1, 5},
                                                           {"knows", 0, 0, -1},
                                                           {"near", 1, 1, 6},
                                                           {"seen_by", 1, 0, 2},
                                                           {"near_to", 1, 1, 4}}),
               true,
               {},
               {0, 1, 2, 3, 4, 5, 6}};
  const auto perhaps = [&](int of_ten) { return static_cast<int>(random() % 10) < of_ten; };
  for (std::int64_t who = 0; who < 12; ++who) {
    for (std::int64_t what = 12; what < 30; ++what) {
      const bool buys = perhaps(3);
      if (buys) g.when[{what, 0, who}] = g.when[{who, 1, what}] = 0;
      if (perhaps(buys ? 7 : 1)) g.when[{what, 2, who}] = g.when[{who, 5, what}] = 0;
    }
    for (std::int64_t other = 0; other < 12; ++other)
      if (perhaps(3)) g.when[{who, 3, other}] = 0;
  }
  for (std::int64_t what = 12; what < 30; ++what)
    for (std::int64_t other = 12; other < 30; ++other)
      if (perhaps(3)) g.when[{what, 4, other}] = g.when[{other, 6, what}] = 0;
  return g;
}

using Echo = std::array<std::int64_t, 4>;  // links, relation, reversed, split

struct Leaks {
  std::array<std::int64_t, 3> edges = {};
  std::map<Echo, std::int64_t> echoes;
  bool operator==(const Leaks&) const = default;
};

// By a search of all edges for each link. `related`: are links of relations of the graph?
Leaks search_leaks(const Schema& schema, const SplitGraph& g, bool directed, bool related) {
  Leaks leaks;
  for (const std::size_t s : {1, 2})
    for (const auto& [relation, head, tail] : g.links[s]) {
      bool told = false;
      for (const auto& [v, r, u] : g.edges) {
        const bool along = u == head && v == tail, back = u == tail && v == head;
        if (!along && !back) continue;
        const bool of_inverse = related && schema.relations()[r].inverse == relation;
        const bool ours = !related || r == relation || of_inverse;
        // An edge of the inverse says what it says the other way round.
        if (ours && (!directed || (along && (!related || r == relation)) || (back && of_inverse)))
          told = true;
        else
          ++leaks.echoes[{related ? relation : -1, r, !along, static_cast<std::int64_t>(s)}];
      }
      leaks.edges[s] += told;
    }
  return leaks;
}

Leaks found_leaks(const GraphFile& file) {
  const auto leaks = find_link_leaks(test_world(), file);
  Leaks found{leaks.edges, {}};
  for (const auto& echo : leaks.echoes)
    for (const std::size_t s : {1, 2})
      if (echo.found[s] > 0)
        found.echoes[{echo.links, echo.relation, echo.reversed, static_cast<std::int64_t>(s)}] =
            echo.found[s];
  return found;
}

TEST(SplitLinks, WhatTellsThem) {
  const auto seed = test_seed(5);
  SCOPED_TRACE(fmt::format("ESPALIER_TEST_SEED={}", seed));
  const auto folder = test_folder("what-tells-links");
  const auto& world = test_world();
  for (const bool directed : {true, false})
    for (const bool related : {true, false}) {
      const auto g = make_shop(seed);
      SplitGraph whole;
      std::mt19937_64 random(seed);
      for (const auto& [edge, none] : g.when) {
        const auto& [v, r, u] = edge;
        // Some stay in the graph although they are links.
        const bool may_be_link = r == 0 || (r >= 2 && r <= 4);
        if (may_be_link && random() % 2 == 0) whole.links[random() % 3].push_back({r, u, v});
        if (!may_be_link || random() % 4 > 0) whole.edges.insert(edge);
      }
      auto left = g;
      std::erase_if(left.when, [&](const auto& entry) { return !whole.edges.contains(entry.first); });
      const auto path = folder + "/graph.h5";
      write(left, path, [&](GraphWriter& writer) {
        LinkInfo info{.directed = directed, .names = {"buys", "seen", "knows", "near"}};
        if (related) info.graph_relations = {0, 2, 3, 4};
        writer.write_link_relations(info);
        for (const auto split : {Split::kTrain, Split::kValid, Split::kTest}) {
          Links links;
          if (world.rank() + 1 == world.size())
            for (const auto& [r, head, tail] : whole.links[static_cast<std::size_t>(split)]) {
              links.heads.push_back(head);
              links.tails.push_back(tail);
              links.relations.push_back(r == 0 ? 0 : static_cast<std::int32_t>(r) - 1);
            }
          writer.write_links(split, links);
        }
      });
      const GraphFile file(world, path, view_of(true));
      EXPECT_EQ(found_leaks(file), search_leaks(g.schema, whole, directed, related)) << directed << related;
    }
}

TEST(SplitLinks, WhatSaysThemGoesWithThem) {
  const auto seed = test_seed(7);
  SCOPED_TRACE(fmt::format("ESPALIER_TEST_SEED={}", seed));
  const auto folder = test_folder("also");
  const auto g = make_shop(seed);
  write(g, folder + "/graph.h5");
  const GraphFile file(test_world(), folder + "/graph.h5", view_of(true));
  LinkSplitOptions options{.shares = {0.5, 0.2, 0.3}, .relations = {"buys"}};
  const auto split = [&] {
    return rewrite_graph(test_world(), file, {.links = options}, {folder + "/links.h5", true}).links;
  };
  const auto leaks = [&] {
    const GraphFile written(test_world(), folder + "/links.h5", view_of(true));
    return leaks_in_words(written, find_link_leaks(test_world(), written));
  };
  split();
  const auto said = leaks();
  ASSERT_EQ(said.size(), 3);  // seen and seen_by, too, in one direction each
  expect_words(said[0], {"who.buys.what: ", "(1.000)", "what.bought_by.who, the other way round",
                         "--inverse who.buys.what=what.bought_by.who", "--also what.bought_by.who"});
  expect_words(said[1] + said[2], {"who.seen.what: what is asked", "what.seen_by.who, the other way"});
  // Of the inverse the edges of the links, of the others those between their ends.
  options.inverses = {"buys=bought_by"};
  options.also = {"seen_by"};
  const auto counts = split();
  EXPECT_TRUE(leaks().empty());
  auto expected = g.when;
  std::int64_t beside = 0;
  const auto found = read(folder + "/links.h5");
  for (const std::size_t s : {1, 2})
    for (const auto& [r, head, tail] : found.links[s]) {
      EXPECT_EQ(expected.erase({tail, 0, head}) + expected.erase({head, 1, tail}), 2);
      beside += static_cast<std::int64_t>(expected.erase({tail, 2, head}) + expected.erase({head, 5, tail}));
    }
  std::set<Edge> left;
  for (const auto& [edge, none] : expected) left.insert(edge);
  EXPECT_EQ(found.edges, left);
  EXPECT_EQ(counts.beside, beside);
  const GraphFile written(test_world(), folder + "/links.h5", view_of(true));
  EXPECT_EQ(written.info().schema.relations()[1].inverse, 0);
  // Links of one type, and another relation of it: either direction.
  options = {.shares = {0.5, 0.2, 0.3}, .relations = {"near"}, .also = {"knows"}};
  expect_refused(ExitCode::kUsage, {"--also who.knows.who: no link joins", "leave it out"}, split);
  for (const auto& [inverses, also, words] :
       {std::tuple<std::vector<std::string>, std::vector<std::string>, std::vector<std::string>>{
            {"buys=seen_by"},
            {},
            {"--inverse buys=seen_by", "the inverse of what.seen_by.who is who.seen.what"}},
        {{"buys=knows"}, {}, {"--inverse buys=knows", "other types"}},
        {{"knows=knows"}, {}, {"--inverse knows=knows", "has other edges"}},
        {{"buys"}, {}, {"--inverse buys: give two relations"}},
        {{"buys=sells"}, {}, {"--inverse sells", "has no such relation"}},
        {{}, {"sells"}, {"--also sells", "has no such relation"}},
        {{}, {"near"}, {"--also what.near.what", "are links themselves"}}}) {
    options.inverses = inverses;
    options.also = also;
    expect_refused(ExitCode::kUsage, words, split);
  }
  // What goes with links is none, where nobody says whose edges are.
  options = {.shares = {0.5, 0.2, 0.3}, .also = {"seen", "bought_by"}};
  split();
  EXPECT_EQ(GraphFile(test_world(), folder + "/links.h5", view_of(true)).info().links.graph_relations,
            (std::vector<int>{0, 3, 4}));
}

}  // namespace
}  // namespace espalier
