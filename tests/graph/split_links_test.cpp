// ranks: 1 2 3 4
// Laws of what tells links: found where a search of all edges finds them, in every relation and
// direction; edges of --also go with the links that they say. (Splits by time:
// tests/app/prepare_test.py.)
#include "espalier/graph/rewrite_graph.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>

#include "graph/whole_graph.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

using Edge = std::array<std::int64_t, 3>;  // row, relation, source
using Link = std::array<std::int64_t, 3>;  // relation, head, tail

struct Shop {
  Schema schema;
  std::set<Edge> edges;
};

void write(
    const Shop& g, const std::string& path,
    const std::function<void(GraphWriter&)>& more = [](GraphWriter&) {}) {
  const auto& world = test_world();
  const auto mine = even_range(g.schema.nodes(), world.size(), world.rank());
  SortedEntries entries;
  for (const auto& edge : g.edges)
    entries[{edge[0], g.schema.column(static_cast<int>(edge[1]), edge[2])}] = 0;
  const auto rows = matrix_of<std::int32_t>(entries, g.schema.nodes(), g.schema.columns(), false);
  GraphWriter writer(world, {path, true});
  writer.write_schema(g.schema);
  writer.write_adjacency(rows_of(rows, mine.begin, mine.end));
  more(writer);
  writer.commit({"shop", "a test", true});
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
      found.links[s].push_back({info.links.graph_relations[place], links.heads[k], links.tails[k]});
    }
  }
  return found;
}

// ---- what tells links ----

// A shop: who buys what, the same the other way round, what was seen, mostly the same, who knows
// whom, some both ways; and what is near to what, with its inverse.
Shop make_shop(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Shop g{Schema({{"who", 0, 12}, {"what", 12, 30}}, {{"buys", 0, 1, -1},
                                                     {"bought_by", 1, 0, -1},
                                                     {"seen", 0, 1, 5},
                                                     {"knows", 0, 0, -1},
                                                     {"near", 1, 1, 6},
                                                     {"seen_by", 1, 0, 2},
                                                     {"near_to", 1, 1, 4}}),
         {}};
  const auto perhaps = [&](int of_ten) { return static_cast<int>(random() % 10) < of_ten; };
  for (std::int64_t who = 0; who < 12; ++who) {
    for (std::int64_t what = 12; what < 30; ++what) {
      const bool buys = perhaps(3);
      if (buys) g.edges.insert({{what, 0, who}, {who, 1, what}});
      if (perhaps(buys ? 7 : 1)) g.edges.insert({{what, 2, who}, {who, 5, what}});
    }
    for (std::int64_t other = 0; other < 12; ++other)
      if (perhaps(3)) g.edges.insert({who, 3, other});
  }
  for (std::int64_t what = 12; what < 30; ++what)
    for (std::int64_t other = 12; other < 30; ++other)
      if (perhaps(3)) g.edges.insert({{what, 4, other}, {other, 6, what}});
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
      for (const auto& edge : g.edges) {
        const auto& [v, r, u] = edge;
        // Some stay in the graph although they are links.
        const bool may_be_link = r == 0 || (r >= 2 && r <= 4);
        if (may_be_link && random() % 2 == 0) whole.links[random() % 3].push_back({r, u, v});
        if (!may_be_link || random() % 4 > 0) whole.edges.insert(edge);
      }
      const Shop left = {g.schema, whole.edges};
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
  auto left = g.edges;
  std::int64_t beside = 0;
  const auto found = read(folder + "/links.h5");
  for (const std::size_t s : {1, 2})
    for (const auto& [r, head, tail] : found.links[s]) {
      EXPECT_EQ(left.erase({tail, 0, head}) + left.erase({head, 1, tail}), 2);
      beside += static_cast<std::int64_t>(left.erase({tail, 2, head}) + left.erase({head, 5, tail}));
    }
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
