// ranks: 1 3 6
// long ranks: 2 4 5 7 8 9 12 16
// Law of every sampler and mode: a minibatch is a function of (seed, epoch, batch) only - one
// digest for every p, c, schedule, topology, vertex cut, bulk, thread count and width of indices,
// the pinned one; also with more ranks than rows. Blocks have values and relations, or not, whether
// there are entries or none.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <set>

#include "distribute_cut.hpp"
#include "espalier/sample/epoch_sampler.hpp"
#include "mpi_test.hpp"
#include "partition/cut.hpp"
#include "partition/owned.hpp"
#include "random_graph.hpp"
#include "typed_graph.hpp"

namespace espalier {
namespace {

enum class Model { kAdjacency, kMean, kMeanWithSelf, kGcn, kTyped, kTypedMean };

struct SamplerCase {
  const char* kind;
  Model model;
  bool weighted_graph;
  SamplerShape shape;
  std::uint64_t digest, tiny_digest;  ///< of the graph of 157 vertices, and of that of 5
};

SamplerShape matrix(std::vector<std::int64_t> fanout, bool weighted,
                    SamplerMode mode = SamplerMode::kDebiased) {
  return {
      .fanout = std::move(fanout), .weighted = weighted, .aggregation = Aggregation::kMatrix, .mode = mode};
}

const std::vector<SamplerCase>& sampler_cases() {
  constexpr auto kPaper = SamplerMode::kPaper, kReference = SamplerMode::kReference,
                 kDebiased = SamplerMode::kDebiased;
  static const std::vector<SamplerCase> all = {
      {"graphsage", Model::kAdjacency, false, {.fanout = {4, 3}}, 0xac43752c183485deu, 0x7eb39034632784b8u},
      {"graphsage",
       Model::kAdjacency,
       false,
       {.fanout = {4, 3, 2}},
       0x46540bfa4a103dc1u,
       0xb6d43784c380779cu},
      {"graphsage", Model::kAdjacency, true, {.fanout = {4, -1}}, 0x7813e258139efc13u, 0x40a9c356db24073fu},
      {"graphsage", Model::kGcn, false, matrix({3, 3}, false), 0x2ba0a286243709aeu, 0x8c8fdf2369a6908au},
      {"graphsage",
       Model::kAdjacency,
       true,
       {.fanout = {3, 3}, .weighted = true},
       0xd9da1a2be36b6ac8u,
       0xefb3d85da2411599u},
      {"graphsage", Model::kGcn, true, matrix({2, 2}, true), 0xebfd097058618817u, 0x739a5727242cadd8u},
      {"graphsage",
       Model::kAdjacency,
       true,
       {.fanout = {3, 3}, .weighted = true, .draw = DrawLaw::kRace},
       0x7f65c5d06918ee0fu,
       0x2b4685b77e547692u},
      {"graphsage",
       Model::kGcn,
       true,
       {.fanout = {2, 2}, .weighted = true, .draw = DrawLaw::kRace, .aggregation = Aggregation::kMatrix},
       0xc3fd91664627ccd3u,
       0x5ce958386032b1au},
      {"labor", Model::kAdjacency, false, {.fanout = {4, 3, 2}}, 0x7c432bcf5207a0u, 0x57422f70084d39f3u},
      {"labor",
       Model::kAdjacency,
       false,
       {.fanout = {4, 3, 2}, .share_batches = 3},
       0xbfe129118147253du,
       0xb67cb76a4970cd92u},
      {"labor", Model::kGcn, true, matrix({3, -1}, false), 0x1fe9c283d8fc6c03u, 0xca68991adba591ceu},
      {"ladies", Model::kMean, false, matrix({20, 12}, false, kPaper), 0x5a83636aa8f19835u,
       0xe0150ee401fbe6a2u},
      {"ladies", Model::kMeanWithSelf, false, matrix({20, 12}, false, kReference), 0x2331ce79d2b68e31u,
       0x59066180d387f901u},
      {"ladies", Model::kGcn, true, matrix({9, 20, 15}, false, kDebiased), 0x2308a7c849c6c102u,
       0xc254f772a927107du},
      {"fastgcn", Model::kGcn, false, matrix({40, 30}, false, kPaper), 0x8f943236d1187e5cu,
       0x5975311ded10e53u},
      {"fastgcn", Model::kGcn, true, matrix({30, 40}, false, kReference), 0x33cdd2ab1c1bb78fu,
       0x2f551ab83acbebcu},
      {"fastgcn", Model::kMean, true, matrix({50, 40, -1}, false, kDebiased), 0x3f830508001e048u,
       0xecc080dcf109404du},
      {"subgraph", Model::kGcn, true, matrix({10, 10}, false), 0xa96afaac2efa4d2bu, 0xb6926fe13b9f0c19u},
      {"subgraph", Model::kMean, false, matrix({10, 10, 10}, false), 0x20b5a8b1628853ebu,
       0x6fff9e6c67f4b0f8u},
      // Columns are (relation, source).
      {"graphsage", Model::kTyped, false, {.fanout = {4, 3}}, 0xcec749ee054899bu, 0x6673d6216233050fu},
      {"graphsage",
       Model::kTyped,
       false,
       {.fanout = {4, 3}, .relation_fanout = {{4, 1, 0, 2, -1, 3, 2}, {-1, 2, 2, 2, 3, 1, 1}}},
       0xde1c4fc6a3c9c54cu,
       0x2ddbfa4b81a75074u},
      {"graphsage",
       Model::kTyped,
       true,
       {.fanout = {3, 2}, .weighted = true},
       0xa26aa12c0aeaab11u,
       0x6fd2a8c75f14122cu},
      {"graphsage",
       Model::kTyped,
       true,
       {.fanout = {4, 3},
        .relation_fanout = {{4, 1, 0, 2, -1, 3, 2}, {-1, 2, 2, 2, 3, 1, 1}},
        .weighted = true,
        .draw = DrawLaw::kRace},
       0x8fa82b2b3ba44d6bu,
       0x373accf17e885d91u},
      {"labor", Model::kTyped, false, {.fanout = {4, -1}}, 0x3af2058df191e609u, 0x6673d6216233050fu},
      {"labor",
       Model::kTyped,
       false,
       {.fanout = {2, 2}, .relation_fanout = {{4, 1, 0, 2, -1, 3, 2}, {1, 2, 2, 2, 3, 1, 1}}},
       0xf2ea73c36cff2dacu,
       0x2232c040e144d4d7u},
      {"subgraph", Model::kTyped, true, {.fanout = {10, 10}}, 0x487f61d5bf793b7cu, 0x463059c203888211u},
      {"ladies", Model::kTypedMean, true, {.fanout = {20, 30}}, 0x3f05056a0ba260aau, 0xfceb699aaa2e79e1u},
      {"ladies",
       Model::kTypedMean,
       true,
       {.fanout = {20, 30}, .relation_fanout = {{4, 1, 0, 2, -1, 3, 2}, {9, 5, 100, 7, 8, 1, 0}}},
       0xd4417187c9a5ad59u,
       0x373accf17e885d91u},
      {"ladies",
       Model::kTypedMean,
       false,
       {.fanout = {20, 30},
        .relation_fanout = {{4, 1, 5, 2, 6, 3, 2}, {9, 5, 100, 7, 8, 1, 1}},
        .mode = kPaper},
       0xfaea4b57091ac27bu,
       0x6673d6216233050fu},
      {"fastgcn", Model::kTypedMean, false, {.fanout = {40, 1000}}, 0x14c6742d2d614628u, 0xef50aef92bc83aceu},
      {"fastgcn",
       Model::kTypedMean,
       true,
       {.fanout = {20, 30}, .relation_fanout = {{4, 1, 0, 2, -1, 3, 2}, {9, 5, 100, 7, 8, 1, 0}}},
       0xbd3c91a9bb463f1fu,
       0xd431716a998597ceu},
      {"fastgcn",
       Model::kTypedMean,
       false,
       {.fanout = {20, 30},
        .relation_fanout = {{4, 1, 5, 2, 6, 3, 2}, {9, 5, 10, 7, 8, 1, 1}},
        .mode = kPaper},
       0xac8b7e4f1517b659u,
       0xe3e600226ae16512u},
  };
  return all;
}

std::string name_of(const SamplerCase& c) {
  const char* const modes[] = {"paper", "reference", "debiased"};
  return fmt::format("{} {} model {}{}{}", c.kind, modes[static_cast<int>(c.shape.mode)],
                     static_cast<int>(c.model), c.weighted_graph ? " weighted graph" : "",
                     c.shape.weighted ? " weighted draws" : "");
}

struct Setting {
  int replication = 1;
  bool partitioned = false;
  Cut cut = Cut::kNone;            ///< of the entries, by the block rows
  Owned owned = Owned::kInRanges;  ///< by the block rows
  Schedule schedule = Schedule::kPull;
  std::int64_t bulk = 1000;
  int threads = 1;
  bool wide = false;  ///< int64 indices
  std::int64_t nodes = 157;
  std::uint64_t epoch = 1;
  bool edges = true;
};

/// The graph; without its entries, if it is to have none.
template <class Index>
Csr<Index> with_edges(Csr<Index> a, bool edges) {
  if (edges) return a;
  a.weighted = a.has_values();
  a.indptr.assign(a.indptr.size(), 0);
  a.indices.clear();
  a.values.clear();
  return a;
}

template <class Index>
DistCsr<Index> matrix_of_case(const Grid& grid, const SamplerCase& c, const Setting& setting) {
  const auto ownership = ownership_of(setting.owned, setting.nodes, setting.partitioned ? grid.rows() : 1);
  const bool cut = setting.cut != Cut::kNone;
  const auto parts_of = [&](const Csr<Index>& whole) {
    return cut ? parts_of_entries(setting.cut, whole, grid.rows()) : std::vector<std::uint16_t>();
  };
  if (c.model == Model::kTyped || c.model == Model::kTypedMean) {
    const auto schema = typed_schema(setting.nodes);
    const auto whole = with_edges(typed_graph<Index>(schema, 12, c.weighted_graph, 11), setting.edges);
    const auto a = typed_matrix(grid, schema, whole, ownership, parts_of(whole));
    return c.model == Model::kTyped ? a : normalize_rows(a, false, true);
  }
  const auto whole = with_edges(
      random_graph<Index>(setting.nodes, setting.nodes < 10 ? 2 : 9, c.weighted_graph, 11), setting.edges);
  const auto parts = parts_of(whole);
  const auto a =
      cut ? distribute_cut<Index>(grid, whole, ownership, parts) : distribute(grid, whole, ownership);
  switch (c.model) {
    case Model::kAdjacency:
      return a;
    case Model::kMean:
      return normalize_rows(a, false, c.weighted_graph);
    case Model::kMeanWithSelf:
      return normalize_rows(a, true, c.weighted_graph);
    default:
      break;
  }
  return normalize_with_self_loops(a);
}

// One epoch: every second vertex in batches of 10 (of 1 on the small graph, so that some ranks
// have none).
template <class Index>
SampleCounts sample_epoch(const SamplerCase& c, const Setting& setting) {
  const Grid grid(test_world(), setting.replication);
  auto shape = c.shape;
  const auto supports = shape.aggregation == Aggregation::kMatrix ? WholeRowFacts::kSupportsOffDiagonal
                                                                  : WholeRowFacts::kSupports;
  const auto a =
      count_rows(matrix_of_case<Index>(grid, c, setting), shape.weighted ? supports : WholeRowFacts::kPlaces);
  shape.schedule = setting.schedule;
  if (setting.nodes < 10)
    for (auto& picks : shape.fanout) picks = std::min(picks, std::int64_t{2});
  const auto sampler = make_sampler(c.kind, a, shape);
  Buffer<std::int64_t> training;
  for (std::int64_t v = 0; v < setting.nodes; v += 2) training.push_back(v);
  const EpochPlan plan(training, setting.nodes < 10 ? 1 : 10, grid.ranks(), grid.ranks(), 7, setting.epoch);
  EpochSampler epoch_sampler(grid, *sampler, plan, setting.bulk);
  epoch_sampler.sample_until({setting.threads}, plan.batches());
  return sum_over_ranks(epoch_sampler.counts(), grid.world());
}

SampleCounts sample_epoch(const SamplerCase& c, const Setting& setting) {
  return setting.wide ? sample_epoch<std::int64_t>(c, setting) : sample_epoch<std::int32_t>(c, setting);
}

void expect_same(const SampleCounts& counts, const SampleCounts& expected, const Setting& setting) {
  const auto words = fmt::format(
      "c {}, {}, cut {}, {}, bulk {}, {} threads, {} bits", setting.replication,
      setting.partitioned ? fmt::format("owned {}", static_cast<int>(setting.owned)) : "replicated",
      static_cast<int>(setting.cut), name_of(setting.schedule), setting.bulk, setting.threads,
      setting.wide ? 64 : 32);
  EXPECT_EQ(counts.digest, expected.digest) << words;
  EXPECT_EQ(counts.batches, expected.batches) << words;
  EXPECT_EQ(counts.sampled_edges, expected.sampled_edges) << words;
  EXPECT_EQ(counts.input_rows, expected.input_rows) << words;
}

constexpr Schedule kSchedules[] = {Schedule::kPull, Schedule::kPush, Schedule::kStaged,
                                   Schedule::kStagedOblivious, Schedule::kAuto};
constexpr std::int64_t kBulks[] = {1, 3, 1000};

// Every c with every schedule: all in each case, or one in `stride` of them, others in the next
// case, so that every kind of sampler meets them all. Ownership, bulk, threads and width turn at
// their own pace, so that each value meets every sampler at every p, and other schedules at
// every other c.
void expect_one_digest(int stride) {
  std::size_t which = 0;
  int turn = 0, replicated_turn = 0;
  for (const auto& c : sampler_cases()) {
    SCOPED_TRACE(name_of(c));
    const auto expected = sample_epoch(c, {});
    EXPECT_EQ(expected.digest, c.digest) << fmt::format("the digest is {:#x}", expected.digest);
    EXPECT_EQ(expected.batches, 8);
    EXPECT_GT(expected.sampled_edges, 0);
    EXPECT_NE(sample_epoch(c, {.epoch = 2}).digest, expected.digest) << "another epoch";
    for (const int replication : divisors(test_world().size())) {
      for (const auto schedule : kSchedules) {
        if (turn++ % stride != 0) continue;
        const Setting setting = {.replication = replication,
                                 .partitioned = true,
                                 .owned = kAllOwned[(which + replication) % 3],
                                 .schedule = schedule,
                                 .bulk = kBulks[which % 3],
                                 .threads = 1 + static_cast<int>(which % 2),
                                 .wide = which % 4 >= 2};
        expect_same(sample_epoch(c, setting), expected, setting);
        ++which;
      }
      if (replicated_turn++ % stride != 0) continue;
      const Setting replicated = {.replication = replication,
                                  .schedule = kSchedules[which % 5],
                                  .bulk = kBulks[(which + 1) % 3],
                                  .threads = 2,
                                  .wide = which % 2 == 0};
      expect_same(sample_epoch(c, replicated), expected, replicated);
    }
  }
}

// Vertex cuts, whoever owns the vertices: every c with every cut, or one in `stride` of them.
void expect_one_digest_of_cuts(int stride) {
  std::size_t which = 0;
  int turn = 0;
  for (const auto& c : sampler_cases()) {
    SCOPED_TRACE(name_of(c));
    for (const std::int64_t nodes : {157, 5}) {
      const auto expected = sample_epoch(c, {.nodes = nodes});
      for (const int replication : divisors(test_world().size()))
        for (const auto cut : kAllCuts) {
          if (turn++ % stride != 0) continue;
          const Setting setting = {
              .replication = replication,
              .partitioned = true,
              .cut = cut,
              .owned = kAllOwned[which % 3],
              .schedule = (which + which / 4) % 2 == 0 ? Schedule::kPull : Schedule::kPush,
              .bulk = kBulks[which % 3],
              .threads = 1 + static_cast<int>(which % 2),
              .wide = which % 4 >= 2,
              .nodes = nodes};
          expect_same(sample_epoch(c, setting), expected, setting);
          ++which;
        }
    }
  }
}

TEST(EverySampler, OneDigestForEveryVertexCut) {
  expect_one_digest_of_cuts(23);
}

// Candidates that holders of pieces send, merged.
TEST(EverySampler, RacesOfPiecesAreThoseOfRows) {
  for (const auto& c : sampler_cases())
    for (const auto cut : kAllCuts) {
      if (c.shape.draw != DrawLaw::kRace) continue;
      SCOPED_TRACE(name_of(c));
      const Setting setting = {.partitioned = true, .cut = cut, .schedule = Schedule::kPush, .bulk = 3};
      expect_same(sample_epoch(c, setting), sample_epoch(c, {}), setting);
    }
}

TEST(EverySampler, LongOneDigestForEveryVertexCutInEverySetting) {
  expect_one_digest_of_cuts(1);
}

TEST(EverySampler, OneDigestForEveryGridScheduleOwnershipBulkThreadsAndIndexWidth) {
  expect_one_digest(3);
}

TEST(EverySampler, LongOneDigestInEverySetting) {
  expect_one_digest(1);
}

// Five rows, three batches of one seed: block rows are empty, and ranks have no batch. Every c with
// every schedule, or one in `stride` of them.
void expect_one_digest_of_few_rows(int stride) {
  std::size_t which = 0;
  int turn = 0;
  for (const auto& c : sampler_cases()) {
    SCOPED_TRACE(name_of(c));
    const auto expected = sample_epoch(c, {.nodes = 5});
    EXPECT_EQ(expected.digest, c.tiny_digest) << fmt::format("the digest is {:#x}", expected.digest);
    EXPECT_EQ(expected.batches, 3);
    for (const int replication : divisors(test_world().size()))
      for (const auto schedule :
           {Schedule::kPull, Schedule::kPush, Schedule::kStaged, Schedule::kStagedOblivious}) {
        if (turn++ % stride != 0) continue;
        const Setting setting = {.replication = replication,
                                 .partitioned = true,
                                 .owned = kAllOwned[which % 2],
                                 .schedule = schedule,
                                 .wide = which++ % 3 == 0,
                                 .nodes = 5};
        expect_same(sample_epoch(c, setting), expected, setting);
      }
  }
}

TEST(EverySampler, OneDigestWithMoreRanksThanRowsAndBatches) {
  expect_one_digest_of_few_rows(3);
}

TEST(EverySampler, LongOneDigestOfFewRowsInEverySetting) {
  expect_one_digest_of_few_rows(1);
}

void expect_values(const std::vector<Minibatch>& minibatches, bool relations) {
  for (const auto& minibatch : minibatches)
    for (const auto& block : minibatch.blocks) {
      EXPECT_TRUE(block.has_values()) << block.entries() << " entries";
      EXPECT_EQ(block.has_relations(), relations) << block.entries() << " entries";
    }
}

// All entries between seeds.
std::vector<SeedPair> pairs_of(const Minibatch& minibatch) {
  std::set<SeedPair> pairs;
  for (const auto& block : minibatch.blocks)
    for (std::int32_t row = 0; row < minibatch.seeds(); ++row)
      for (auto e = block.row_begin(row); e < block.row_end(row); ++e)
        if (block.indices[e] < minibatch.seeds()) pairs.insert({row, block.indices[e], block.relation(e)});
  return {pairs.begin(), pairs.end()};
}

// A graph without edges, the isolated vertex alone, and a batch whose own links are all its edges.
TEST(EverySampler, BlocksWithoutEntriesHaveTheValuesAndRelationsOfOthers) {
  const Grid grid(test_world(), 1);
  std::size_t which = 0;
  for (const auto& c : sampler_cases())
    for (const bool edges : {true, false}) {
      SCOPED_TRACE(name_of(c) + (edges ? "" : ", without edges"));
      const Setting setting = {.partitioned = true, .schedule = kSchedules[which++ % 4], .edges = edges};
      const auto a = matrix_of_case<std::int32_t>(grid, c, setting);
      auto shape = c.shape;
      shape.schedule = setting.schedule;
      const auto sampler = make_sampler(c.kind, a, shape);
      const bool relations = c.model == Model::kTyped || c.model == Model::kTypedMean;
      const std::vector<std::int64_t> isolated = {1}, some = {0, 1, 2, 3, 5, 8};
      for (const auto& seeds : {isolated, some}) {
        SeedBatch batch(test_world().rank(), seeds);
        auto drawn = sampler->sample(Cpu{1}, {&batch, 1}, 7, 1);
        expect_values(drawn, relations);
        const auto pairs = pairs_of(drawn[0]);
        batch.exclude_edges(pairs);
        exclude_edges(Cpu{1}, {&batch, 1}, drawn);
        expect_values(drawn, relations);
      }
    }
}

TEST(EverySampler, NoTwoCasesSampleTheSame) {
  std::vector<std::uint64_t> digests;
  for (const auto& c : sampler_cases()) digests.push_back(c.digest);
  std::ranges::sort(digests);
  EXPECT_TRUE(std::ranges::adjacent_find(digests) == digests.end());
}

}  // namespace
}  // namespace espalier
