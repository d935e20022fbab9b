// ranks: 1 3 6
// long ranks: 2 4
// Laws of links as examples: every link once per epoch; a batch is a function of (seed, epoch,
// batch) on every grid; negatives are keyed by their link, of vertices that the relation allows,
// evenly; the seeds are the ends, once each. With groups a batch is of one, and the batches of a
// group are as even as can be. The batch's own links are in none of its blocks, and
// nothing else has gone: what a row's other entries weigh together is as it was.
#include "espalier/sample/link_examples.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "espalier/sample/epoch_sampler.hpp"
#include "mpi_test.hpp"
#include "partition/owned.hpp"
#include "typed_graph.hpp"

namespace espalier {
namespace {

using Triple = std::array<std::int64_t, 3>;  // head, relation, tail

constexpr std::int64_t kLinkVertices = 157, kLinks = 311;

// Relation 0 joins any two vertices, relation 1 goes from [0, 50) to [50, 157).
const std::vector<LinkEnds> kEnds = {{.heads = {0, kLinkVertices}, .tails = {0, kLinkVertices}},
                                     {.heads = {0, 50}, .tails = {50, kLinkVertices}}};

std::vector<Triple> all_links() {
  std::vector<Triple> links;
  for (std::int64_t k = 0; k < kLinks; ++k) {
    const RandomStream stream = {.seed = 5, .row = static_cast<std::uint64_t>(k)};
    const std::int64_t relation = k % 3 == 0;
    const auto& ends = kEnds[static_cast<std::size_t>(relation)];
    const auto of = [&](const RowRange& range, std::uint64_t draw) {
      return range.begin +
             static_cast<std::int64_t>(random_below(stream, draw, static_cast<std::uint64_t>(range.size())));
    };
    links.push_back({of(ends.heads, 0), relation, of(ends.tails, 1)});
  }
  return links;
}

LinkList list_of(const std::vector<Triple>& links, const Communicator& comm) {
  const auto mine = even_range(std::ssize(links), comm.size(), comm.rank());
  LinkList list;
  list.count = std::ssize(links);
  for (auto k = mine.begin; k < mine.end; ++k) {
    list.heads.push_back(links[k][0]);
    list.relations.push_back(static_cast<std::int32_t>(links[k][1]));
    list.tails.push_back(links[k][2]);
  }
  return list;
}

LinkSource source_of(const Communicator& comm, const Negatives& negatives, bool directed = true) {
  return {comm, list_of(all_links(), comm), kEnds, negatives, kLinkVertices, directed};
}

constexpr EpochShape shape_of(std::uint64_t epoch, int ranks = 1, std::int64_t batch_size = 20) {
  return {.batch_size = batch_size, .batches_per_step = 4, .ranks = ranks, .seed = 7, .epoch = epoch};
}

const LinkExamples& links_of(const EpochPlan& plan) {
  return dynamic_cast<const LinkExamples&>(plan.examples());
}

// Collective. Each rank alone.
Communicator alone() {
  return test_world().split(test_world().rank(), 0);
}

// Calls visit(batch) for each of an epoch, made by one rank.
template <class Visit>
void each_batch(const Negatives& negatives, std::uint64_t epoch, const Visit& visit,
                std::int64_t batch_size = 20, bool directed = true) {
  const auto self = alone();
  const auto source = source_of(self, negatives, directed);
  const EpochPlan plan(source, shape_of(epoch, 1, batch_size));
  plan.examples().prepare(self, plan.kept_by(0, 0, plan.batches()));
  for (std::int64_t b = 0; b < plan.batches(); ++b) visit(links_of(plan).links(b));
}

Triple positive(const LinkBatch& batch, std::int64_t i) {
  return {batch.seeds[batch.heads[i]], batch.relations[i], batch.seeds[batch.tails[i]]};
}
Triple negative(const LinkBatch& batch, std::int64_t i, std::int64_t relation) {
  return {batch.seeds[batch.negative_heads[i]], relation, batch.seeds[batch.negative_tails[i]]};
}

constexpr Negatives kUniform = {.per_link = 3, .of_both_ends = true};

TEST(LinkExamples, EveryLinkOncePerEpochInAnotherOrder) {
  std::vector<Triple> orders[2];
  for (const std::uint64_t epoch : {1, 2})
    each_batch(kUniform, epoch, [&](const LinkBatch& batch) {
      for (std::int64_t i = 0; i < batch.links(); ++i) orders[epoch - 1].push_back(positive(batch, i));
    });
  EXPECT_NE(orders[0], orders[1]);
  auto expected = all_links();
  std::ranges::sort(expected);
  for (auto& order : orders) {
    std::ranges::sort(order);
    EXPECT_EQ(order, expected);
  }
}

TEST(LinkExamples, ABatchIsTheSameOnEveryGrid) {
  for (const auto mode :
       {NegativesMode::kUniform, NegativesMode::kShared, NegativesMode::kInBatch, NegativesMode::kDegree}) {
    const Negatives negatives = {3, mode, true, mode != NegativesMode::kShared};
    const auto self = alone();
    const auto source = source_of(test_world(), negatives), whole = source_of(self, negatives);
    const EpochPlan plan(source, shape_of(3, test_world().size())), expected(whole, shape_of(3));
    ASSERT_EQ(plan.batches(), 16);
    const auto mine = plan.kept_by(test_world().rank(), 0, plan.batches());
    for (std::int64_t window = 0; window < plan.batches(); window += 5)
      plan.examples().prepare(test_world(), plan.kept_by(test_world().rank(), window, window + 5));
    expected.examples().prepare(self, mine);
    for (const auto b : mine) {
      const auto batch = plan.batch(b), other = expected.batch(b);
      EXPECT_EQ(batch.digest, other.digest);
      EXPECT_TRUE(std::ranges::equal(batch.seeds(), other.seeds()));
      EXPECT_TRUE(std::ranges::equal(batch.excluded_edges(), other.excluded_edges()));
      EXPECT_EQ(links_of(plan).links(b).negative_heads, links_of(expected).links(b).negative_heads);
      plan.examples().release(b);
      EXPECT_EQ(batch.seeds().size(), other.seeds().size()) << "kept by the batch";
    }
    EXPECT_EQ(links_of(plan).count_links(0, plan.batches()), kLinks);
    EXPECT_EQ(links_of(plan).count_links(15, 16), kLinks - 300);
  }
}

// Groups of unequal size, one of them empty, by the head.
std::int32_t group_of(const Triple& link) {
  return link[0] < 10 ? 0 : link[0] < 60 ? 1 : 3;
}

LinkSource grouped_source_of(const Communicator& comm, const Negatives& negatives) {
  const auto list = list_of(all_links(), comm);
  BatchGroups groups;
  groups.count = 5;
  for (std::int64_t k = 0; k < std::ssize(list.heads); ++k)
    groups.of.push_back(group_of({list.heads[k], list.relations[k], list.tails[k]}));
  return {comm, sort_by_group(comm, list, groups), kEnds, negatives, kLinkVertices, true};
}

TEST(LinkExamples, LinksStandGroupAfterGroupInTheirOrder) {
  auto expected = all_links();
  std::ranges::stable_sort(expected, {}, group_of);
  const auto source = grouped_source_of(test_world(), kUniform);
  const auto& list = source.list();
  const auto mine = even_range(kLinks, test_world().size(), test_world().rank());
  ASSERT_EQ(std::ssize(list.heads), mine.size());
  for (std::int64_t k = 0; k < mine.size(); ++k)
    EXPECT_EQ((Triple{list.heads[k], list.relations[k], list.tails[k]}), expected[mine.begin + k]);
  ASSERT_EQ(list.group_begins.size(), 6u);
  for (std::int32_t group = 0; group <= 5; ++group)
    EXPECT_EQ(list.group_begins[group],
              std::ranges::count_if(expected, [&](const Triple& link) { return group_of(link) < group; }));
}

TEST(LinkExamples, WithGroupsABatchIsOfOneOnEveryGrid) {
  const Negatives negatives = {.per_link = 2, .of_both_ends = true, .filtered = true};
  const auto self = alone();
  const auto source = grouped_source_of(test_world(), negatives), whole = grouped_source_of(self, negatives);
  std::vector<Triple> orders[2];
  for (const std::uint64_t epoch : {1, 2}) {
    const EpochPlan plan(source, shape_of(epoch, test_world().size())), expected(whole, shape_of(epoch));
    const auto& links = links_of(expected);
    std::map<std::int32_t, std::vector<std::int64_t>> sizes;
    const auto all = expected.kept_by(0, 0, expected.batches());
    ASSERT_EQ(std::ssize(all), expected.batches());
    links.prepare(self, all);
    for (const auto b : all) {
      const auto& batch = links.links(b);
      const auto group = links.groups()[b];
      sizes[group].push_back(batch.links());
      EXPECT_EQ(links.count_links(b, b + 1), batch.links());
      for (std::int64_t i = 0; i < batch.links(); ++i) {
        orders[epoch - 1].push_back(positive(batch, i));
        EXPECT_EQ(group_of(positive(batch, i)), group);
      }
    }
    for (const auto& [group, of] : sizes) {
      const auto [least, most] = std::ranges::minmax(of);
      EXPECT_LE(most - least, 1) << group;
      EXPECT_LE(most, 20);
    }
    const auto mine = plan.kept_by(test_world().rank(), 0, plan.batches());
    plan.examples().prepare(test_world(), mine);
    for (const auto b : mine) EXPECT_EQ(plan.batch(b).digest, expected.batch(b).digest);
  }
  EXPECT_NE(orders[0], orders[1]);
  auto sorted = all_links();
  std::ranges::sort(sorted);
  for (auto& order : orders) {
    std::ranges::sort(order);
    EXPECT_EQ(order, sorted);
  }
}

TEST(LinkExamples, SharesOfOthersAreThoseOfBatches) {
  EXPECT_DOUBLE_EQ(share_of_others(4, 0, 8), 0.75);
  EXPECT_DOUBLE_EQ(share_of_others(4, 64, 8), 0);
  EXPECT_DOUBLE_EQ(share_of_others(1, 64, 1), 0);
  EXPECT_DOUBLE_EQ(share_of_others(4, 64, 1), 0.75);
  EXPECT_DOUBLE_EQ(share_of_others(4, 64, 2), 0.5);
}

TEST(LinkExamples, SeedsAreTheEndsOnceEachAndEverythingIsInTheDigest) {
  std::set<std::uint64_t> digests;
  for (const auto& negatives : {kUniform, Negatives{.per_link = 4}, Negatives{.per_link = 3}})
    each_batch(negatives, 1, [&](const LinkBatch& batch) {
      std::set<std::int64_t> ends;
      for (const auto* places : {&batch.heads, &batch.tails, &batch.negative_heads, &batch.negative_tails})
        for (const auto place : *places) ends.insert(batch.seeds[place]);
      EXPECT_TRUE(std::ranges::equal(batch.seeds, ends));
      digests.insert(batch.digest());
    });
  EXPECT_EQ(digests.size(), 3u * 16);
}

TEST(LinkExamples, NegativesAreOfVerticesThatTheRelationAllows) {
  for (const auto mode : {NegativesMode::kUniform, NegativesMode::kShared, NegativesMode::kInBatch})
    for (const bool both : {false, true}) {
      std::int64_t of_heads = 0, of_tails = 0, kept = 0, alone = 0;
      each_batch({5, mode, both}, 1, [&](const LinkBatch& batch) {
        std::set<std::int64_t> heads, tails;
        for (std::int64_t i = 0; i < batch.links(); ++i) {
          const auto link = positive(batch, i);
          const auto& ends = kEnds[static_cast<std::size_t>(link[1])];
          for (std::int64_t j = 0; j < 5; ++j) {
            const auto made = negative(batch, 5 * i + j, link[1]);
            EXPECT_TRUE(made[0] == link[0] || made[2] == link[2]) << "one end stays";
            EXPECT_TRUE(ends.heads.begin <= made[0] && made[0] < ends.heads.end);
            EXPECT_TRUE(ends.tails.begin <= made[2] && made[2] < ends.tails.end);
            of_heads += made[0] != link[0];
            of_tails += made[2] != link[2];
            kept += made == link;
            if (mode != NegativesMode::kInBatch) continue;
            bool is_of_another = false, is_alone = true;  // of its relation in the batch
            for (std::int64_t k = 0; k < batch.links(); ++k) {
              const auto other = positive(batch, k);
              is_alone &= k == i || other[1] != link[1];
              is_of_another |= k != i && other[1] == link[1] && (other[0] == made[0] || other[2] == made[2]);
            }
            EXPECT_TRUE(is_of_another || is_alone);
            alone += is_alone;
          }
        }
      });
      EXPECT_EQ(of_heads + of_tails + kept, 5 * kLinks);
      EXPECT_LT(alone, 5 * kLinks / 20);
      EXPECT_LT(kept, mode == NegativesMode::kUniform ? 1 : 5 * kLinks / 20) << "no link is its own negative";
      // Four deviations: of 1,555 draws, or of the 160 that 16 batches share.
      const double deviation = 0.5 / std::sqrt(mode == NegativesMode::kShared ? 160 : 5 * kLinks);
      if (both)
        EXPECT_NEAR(static_cast<double>(of_heads) / static_cast<double>(of_heads + of_tails), 0.5,
                    4 * deviation);
      else
        EXPECT_EQ(of_heads, 0);
    }
}

// chi-square of the tails of relation 1, which 107 vertices can be, but for that of the link
// itself: with 106 degrees of freedom above 170 once in 10,000 times.
TEST(LinkExamples, UniformNegativesAreUniform) {
  std::map<std::int64_t, double> counts, own;
  double all = 0;
  for (std::uint64_t epoch = 1; epoch <= 40; ++epoch)
    each_batch({.per_link = 3}, epoch, [&](const LinkBatch& batch) {
      for (std::int64_t i = 0; i < 3 * batch.links(); ++i)
        if (batch.relations[i / 3] == 1)
          ++counts[batch.seeds[batch.negative_tails[i]]], ++own[batch.seeds[batch.tails[i / 3]]], ++all;
    });
  double chi_square = 0;
  for (std::int64_t v = 50; v < kLinkVertices; ++v) {
    const double expected = (all - own[v]) / 106;
    chi_square += (counts[v] - expected) * (counts[v] - expected) / expected;
  }
  EXPECT_EQ(counts.size(), 107u);
  EXPECT_LT(chi_square, 170);
  EXPECT_GT(chi_square, 55);
}

TEST(LinkExamples, SharedNegativesAreThoseOfTheChunk) {
  std::set<std::vector<std::int64_t>> of_all;
  std::size_t chunks = 0;
  const auto look = [&](const LinkBatch& batch) {
    // And relation.
    std::map<std::pair<std::int64_t, std::int32_t>, std::vector<std::int64_t>> of_chunk;
    for (std::int64_t i = 0; i < batch.links(); ++i) {
      std::vector<std::int64_t> tails;
      for (std::int64_t j = 0; j < 6; ++j) tails.push_back(batch.seeds[batch.negative_tails[6 * i + j]]);
      const auto [known, is_new] = of_chunk.emplace(std::pair(i / 64, batch.relations[i]), tails);
      EXPECT_EQ(known->second, tails);
    }
    for (const auto& [chunk, tails] : of_chunk) of_all.insert(tails);
    chunks += of_chunk.size();
  };
  each_batch({.per_link = 6, .mode = NegativesMode::kShared}, 1, look, 200);
  EXPECT_EQ(chunks, 2u * (4 + 2));  // 200 links and 111
  EXPECT_EQ(of_all.size(), chunks);
}

// In the smaller relation, of 104 links among 5,350 pairs, every sixth vertex' negatives meet one.
// Where links have no direction none is met the other way round, either.
TEST(LinkExamples, FilteredNegativesAreNoLinks) {
  const auto links = all_links();
  const std::set<Triple> known(links.begin(), links.end());
  for (const auto& [mode, filtered, directed] : {std::tuple(NegativesMode::kUniform, false, true),
                                                 {NegativesMode::kUniform, true, true},
                                                 {NegativesMode::kDegree, false, true},
                                                 {NegativesMode::kDegree, true, true},
                                                 {NegativesMode::kUniform, true, false}}) {
    std::int64_t met = 0, reverses = 0;
    const auto look = [&](const LinkBatch& batch) {
      for (std::int64_t i = 0; i < 10 * batch.links(); ++i) {
        const auto [head, relation, tail] = negative(batch, i, batch.relations[i / 10]);
        met += known.contains({head, relation, tail});
        reverses += known.contains({tail, relation, head});
      }
    };
    for (std::uint64_t epoch = 1; epoch <= 5; ++epoch)
      each_batch({10, mode, true, filtered}, epoch, look, 20, directed);
    EXPECT_EQ(met == 0, filtered) << met;
    EXPECT_EQ(reverses == 0, !directed) << reverses;
  }
}

// Tails of relation 1 by the square root of their degrees: the counts within five deviations.
TEST(LinkExamples, NegativesByDegree) {
  std::map<std::int64_t, double> degrees, counts;
  for (const auto& [head, relation, tail] : all_links()) ++degrees[head], ++degrees[tail];
  double weights = 0, all = 0;
  for (const auto& [v, degree] : degrees)
    if (v >= 50) weights += std::sqrt(degree);
  for (std::uint64_t epoch = 1; epoch <= 60; ++epoch)
    each_batch({.per_link = 5, .mode = NegativesMode::kDegree, .power = 0.5}, epoch,
               [&](const LinkBatch& batch) {
                 for (std::int64_t i = 0; i < 5 * batch.links(); ++i)
                   if (batch.relations[i / 5] == 1) ++counts[batch.seeds[batch.negative_tails[i]]], ++all;
               });
  for (std::int64_t v = 50; v < kLinkVertices; ++v) {
    const double expected = all * std::sqrt(degrees[v]) / weights;
    EXPECT_NEAR(counts[v], expected, 5 * std::sqrt(expected)) << v;
  }
}

TEST(LinkExamples, AsManySeedsAsExpected) {
  for (const auto mode : {NegativesMode::kUniform, NegativesMode::kShared, NegativesMode::kInBatch}) {
    const Negatives negatives = {.per_link = 3, .mode = mode};
    double found = 0;
    for (std::uint64_t epoch = 1; epoch <= 20; ++epoch)
      each_batch(negatives, epoch, [&](const LinkBatch& batch) {
        if (batch.links() == 20) found += static_cast<double>(std::ssize(batch.seeds)) / (20 * 15);
      });
    EXPECT_NEAR(static_cast<double>(expected_seeds(20, negatives, kLinkVertices)) / found, 1, 0.1);
  }
}

// ---- blocks without their own links ----

// (layer, row, column, relation) -> value
using BlockEntries = std::map<std::array<std::int64_t, 4>, float>;

BlockEntries entries_of(const Minibatch& minibatch) {
  BlockEntries entries;
  for (std::size_t l = 0; l < minibatch.blocks.size(); ++l) {
    const auto& block = minibatch.blocks[l];
    for (std::int64_t row = 0; row < block.rows; ++row)
      for (auto e = block.row_begin(row); e < block.row_end(row); ++e)
        entries[{static_cast<std::int64_t>(l), minibatch.vertices[row], minibatch.vertices[block.indices[e]],
                 block.relation(e)}] = block.values[e];
  }
  return entries;
}

enum class BlocksOf { kMean, kSum, kGcn, kMeanOfSelf };

struct BlocksCase {
  const char* sampler;
  SamplerShape shape;
  bool typed;
  BlocksOf matrix = BlocksOf::kMean;
};

// What is multiplied by; of a layer-wise sampler with its values.
DistCsr<std::int32_t> matrix_of_case(DistCsr<std::int32_t> a, const BlocksCase& c) {
  switch (c.matrix) {
    case BlocksOf::kSum:
      return with_values(std::move(a));
    case BlocksOf::kGcn:
      return normalize_with_self_loops(std::move(a));
    case BlocksOf::kMeanOfSelf:
      return normalize_rows(std::move(a), true, false);
    default:
      return sampler_kind_of(c.sampler).layer_wise ? normalize_rows(std::move(a), false, false) : a;
  }
}

// What is left of the blocks of batches whose links are entries of the matrix.
void expect_links_to_be_left_out(const BlocksCase& c, int replication) {
  SCOPED_TRACE(fmt::format("{}{}, c {}", c.sampler, c.typed ? ", typed" : "", replication));
  const Grid grid(test_world(), replication);
  const auto schema = c.typed ? typed_schema(kLinkVertices) : Schema(kLinkVertices);
  const auto whole = c.typed ? typed_graph<std::int32_t>(schema, 6, false, 3)
                             : random_graph<std::int32_t>(kLinkVertices, 9, false, 3);
  const auto ownership = ownership_of(Owned::kInRanges, kLinkVertices, grid.rows());
  auto a = distribute(grid, whole, ownership);
  if (c.typed) set_schema(a, schema, true);
  a = matrix_of_case(std::move(a), c);
  // Of A + I the entry of a vertex itself is none of its neighbours.
  const bool adds_self = c.matrix == BlocksOf::kGcn || c.matrix == BlocksOf::kMeanOfSelf;
  const auto sampler = make_sampler(c.sampler, a, c.shape);

  // Every third entry, and all loops; relation r of links is relation r of the matrix.
  std::vector<Triple> links;
  for (std::int64_t v = 0; v < whole.rows; ++v)
    for (auto k = whole.row_begin(v); k < whole.row_end(v); ++k) {
      const auto u = schema.vertex_of(whole.indices[k]);
      if (k % 3 == 0 || u == v) links.push_back({u, schema.relation_of(whole.indices[k]), v});
    }
  std::vector<LinkEnds> ends;
  const auto& relations = schema.relations();
  for (std::size_t r = 0; r < relations.size(); ++r)
    ends.push_back({.heads = {0, kLinkVertices},
                    .tails = {0, kLinkVertices},
                    .forward = static_cast<std::int32_t>(r),
                    .backward = relations[r].inverse,
                    .both_ways = relations[r].source == relations[r].target});
  const LinkSource source(test_world(), list_of(links, test_world()), ends, {.per_link = 1}, kLinkVertices,
                          true);
  const EpochPlan plan(source, shape_of(1, grid.ranks()));
  const auto mine = plan.kept_by(test_world().rank(), 0, plan.batches());
  plan.examples().prepare(test_world(), mine);
  std::vector<SeedBatch> batches;
  for (const auto b : mine) batches.push_back(plan.batch(b));
  const auto before = sampler->sample(Cpu{1}, batches, 7, 1);
  auto after = before;
  exclude_edges(Cpu{2}, batches, after);
  std::int64_t removed = 0, loops = 0;
  for (std::size_t m = 0; m < batches.size(); ++m) {
    // Whatever joins the two, in the link's relation or its inverse; in the other direction, too,
    // where both are of one type.
    std::set<Triple> own;  // row, column, relation
    const auto& of_batch = links_of(plan).links(batches[m].number);
    for (std::int64_t i = 0; i < of_batch.links(); ++i) {
      const auto [head, relation, tail] = positive(of_batch, i);
      const auto& of = relations[static_cast<std::size_t>(relation)];
      own.insert({tail, head, relation});
      if (of.inverse >= 0) own.insert({head, tail, of.inverse});
      if (of.source != of.target) continue;
      own.insert({head, tail, relation});
      if (of.inverse >= 0) own.insert({tail, head, of.inverse});
    }
    const auto old = entries_of(before[m]), left = entries_of(after[m]);
    std::map<std::array<std::int64_t, 3>, std::array<double, 2>> sums;  // of a row and relation
    for (const auto& [at, value] : old) {
      const auto [layer, row, column, relation] = at;
      const bool is_self = adds_self && row == column,
                 gone = !is_self && own.contains({row, column, relation});
      EXPECT_EQ(left.contains(at), !gone);
      removed += gone;
      loops += gone && row == column;
      if (is_self) continue;
      sums[{layer, row, relation}][0] += value;
      if (!gone) sums[{layer, row, relation}][1] += value;
    }
    EXPECT_LE(left.size(), old.size());
    for (const auto& [at, value] : left) {
      EXPECT_TRUE(old.contains(at));
      const auto& [sum, rest] = sums[{at[0], at[1], at[3]}];
      const double by = adds_self && at[1] == at[2] ? 1 : sum / rest;
      EXPECT_NEAR(value, by * old.at(at), 1e-6 * std::abs(value));
    }
    EXPECT_EQ(after[m].vertices.data(), before[m].vertices.data());
    for (std::size_t l = 0; l < after[m].blocks.size(); ++l) {
      const auto& block = after[m].blocks[l];
      EXPECT_EQ(block.entries(), block.indptr[block.rows] - block.indptr[0]);
      EXPECT_EQ(block.runs.data(), before[m].blocks[l].runs.data());
    }
  }
  EXPECT_GT(test_world().all_reduce(removed, Reduction::kSum, "test"), 30);
  if (!adds_self) EXPECT_GT(test_world().all_reduce(loops, Reduction::kSum, "test"), 0);
}

TEST(LeaveOut, ABatchDoesNotSeeItsOwnLinks) {
  const std::vector<BlocksCase> cases = {
      {"graphsage", {.fanout = {4, 3}}, false},
      {"graphsage", {.fanout = {3, -1}, .aggregation = Aggregation::kMatrix}, false, BlocksOf::kGcn},
      {"graphsage", {.fanout = {3, -1}, .aggregation = Aggregation::kMatrix}, false, BlocksOf::kSum},
      {"labor", {.fanout = {4, 3, 2}}, false},
      {"ladies", {.fanout = {40, 50}, .aggregation = Aggregation::kMatrix}, false, BlocksOf::kGcn},
      {"ladies", {.fanout = {50}, .aggregation = Aggregation::kMatrix}, false, BlocksOf::kMeanOfSelf},
      {"fastgcn", {.fanout = {60, 60}, .aggregation = Aggregation::kMatrix}, false},
      {"graphsage", {.fanout = {3, 2}}, true}};
  for (const auto& c : cases)
    for (const int replication : divisors(test_world().size())) expect_links_to_be_left_out(c, replication);
}

}  // namespace
}  // namespace espalier
