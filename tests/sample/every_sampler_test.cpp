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
      {"graphsage", Model::kAdjacency, false, {.fanout = {4, 3}}, 0x44e5d2f7ce658b84u, 0xc6bedadeb92cc126u},
      {"graphsage",
       Model::kAdjacency,
       false,
       {.fanout = {4, 3, 2}},
       0x6eeb996effb23d91u,
       0xbe062787c22888c4u},
      {"graphsage", Model::kAdjacency, true, {.fanout = {4, -1}}, 0x481508b99a4a50bfu, 0xc59dbaec68d6b46cu},
      {"graphsage", Model::kGcn, false, matrix({3, 3}, false), 0x9b7061a9dffd0a20u, 0x8ec111240d055c62u},
      {"graphsage",
       Model::kAdjacency,
       true,
       {.fanout = {3, 3}, .weighted = true},
       0xefab530444befda6u,
       0x8b324e7ae5a69ef6u},
      {"graphsage", Model::kGcn, true, matrix({2, 2}, true), 0x52d6a64bd5fe11d0u, 0xdf47960042ac5643u},
      {"graphsage",
       Model::kAdjacency,
       true,
       {.fanout = {3, 3}, .weighted = true, .draw = DrawLaw::kRace},
       0xe95b8a1275877d92u,
       0x17dc49ba5f10a46u},
      {"graphsage",
       Model::kGcn,
       true,
       {.fanout = {2, 2}, .weighted = true, .draw = DrawLaw::kRace, .aggregation = Aggregation::kMatrix},
       0x913b20be941bd123u,
       0x54515935f625db20u},
      {"labor", Model::kAdjacency, false, {.fanout = {4, 3, 2}}, 0x4c04949d36ba0252u, 0x1acff0525aba3021u},
      {"labor",
       Model::kAdjacency,
       false,
       {.fanout = {4, 3, 2}, .share_batches = 3},
       0x5d4a352a560a639cu,
       0xafd0d3efb9935f19u},
      {"labor", Model::kGcn, true, matrix({3, -1}, false), 0x31f4563387aebc7u, 0x3274d176ea84a70eu},
      {"ladies", Model::kMean, false, matrix({20, 12}, false, kPaper), 0xe5506e0d1bdcd5b6u,
       0xb80f2f9a9245934u},
      {"ladies", Model::kMeanWithSelf, false, matrix({20, 12}, false, kReference), 0xbc4fcc932819f703u,
       0x851c763cf9c19583u},
      {"ladies", Model::kGcn, true, matrix({9, 20, 15}, false, kDebiased), 0xb8c6dc616638a987u,
       0x99442b842f824c96u},
      {"fastgcn", Model::kGcn, false, matrix({40, 30}, false, kPaper), 0xdd0ffc2f05caad25u,
       0xffdf78d62f604780u},
      {"fastgcn", Model::kGcn, true, matrix({30, 40}, false, kReference), 0x83f84f21ee6b917bu,
       0x1b8d4658a905345du},
      {"fastgcn", Model::kMean, true, matrix({50, 40, -1}, false, kDebiased), 0x15d6aad5082b6140u,
       0xb2daeab4fd9c062fu},
      {"subgraph", Model::kGcn, true, matrix({10, 10}, false), 0xdcdb268f76213bacu, 0xdbd4fb405866c871u},
      {"subgraph", Model::kMean, false, matrix({10, 10, 10}, false), 0x201c347d953107e1u,
       0xe408ea63adc94df6u},
      // Columns are (relation, source).
      {"graphsage", Model::kTyped, false, {.fanout = {4, 3}}, 0x33507999db3d75d5u, 0x371027f827d132edu},
      {"graphsage",
       Model::kTyped,
       false,
       {.fanout = {4, 3}, .relation_fanout = {{4, 1, 0, 2, -1, 3, 2}, {-1, 2, 2, 2, 3, 1, 1}}},
       0xd7e6482355aacd8fu,
       0xfe784c2247457e52u},
      {"graphsage",
       Model::kTyped,
       true,
       {.fanout = {3, 2}, .weighted = true},
       0xb5f215074e0b30beu,
       0xe19cfe533e519ec3u},
      {"graphsage",
       Model::kTyped,
       true,
       {.fanout = {4, 3},
        .relation_fanout = {{4, 1, 0, 2, -1, 3, 2}, {-1, 2, 2, 2, 3, 1, 1}},
        .weighted = true,
        .draw = DrawLaw::kRace},
       0x3f6e3421be0f0a1eu,
       0xa905227d5dc5ea28u},
      {"labor", Model::kTyped, false, {.fanout = {4, -1}}, 0xc0bc5115c27a1801u, 0x371027f827d132edu},
      {"labor",
       Model::kTyped,
       false,
       {.fanout = {2, 2}, .relation_fanout = {{4, 1, 0, 2, -1, 3, 2}, {1, 2, 2, 2, 3, 1, 1}}},
       0x50c8b58bfa53dcfcu,
       0x87b77fabd841dd61u},
      {"subgraph", Model::kTyped, true, {.fanout = {10, 10}}, 0x4b82f68548de1f85u, 0x17dc8c45c90d69f7u},
      {"ladies", Model::kTypedMean, true, {.fanout = {20, 30}}, 0xfefb776e67ec04fdu, 0x1af40a8cfff306bfu},
      {"ladies",
       Model::kTypedMean,
       true,
       {.fanout = {20, 30}, .relation_fanout = {{4, 1, 0, 2, -1, 3, 2}, {9, 5, 100, 7, 8, 1, 0}}},
       0x89d0a5dd6ee9505cu,
       0xa905227d5dc5ea28u},
      {"ladies",
       Model::kTypedMean,
       false,
       {.fanout = {20, 30},
        .relation_fanout = {{4, 1, 5, 2, 6, 3, 2}, {9, 5, 100, 7, 8, 1, 1}},
        .mode = kPaper},
       0x547d46ab9df5256cu,
       0x371027f827d132edu},
      {"fastgcn", Model::kTypedMean, false, {.fanout = {40, 1000}}, 0xa0df8e8cdbfa11d8u, 0x78b99b8d6946cdc1u},
      {"fastgcn",
       Model::kTypedMean,
       true,
       {.fanout = {20, 30}, .relation_fanout = {{4, 1, 0, 2, -1, 3, 2}, {9, 5, 100, 7, 8, 1, 0}}},
       0xbf019689c5f2fe7fu,
       0xcc7bae18abe3f90fu},
      {"fastgcn",
       Model::kTypedMean,
       false,
       {.fanout = {20, 30},
        .relation_fanout = {{4, 1, 5, 2, 6, 3, 2}, {9, 5, 10, 7, 8, 1, 1}},
        .mode = kPaper},
       0xdad4943402b21da1u,
       0x4d753355acd7b2f2u},
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

// A window of more batches than a layer-wise sampler draws together (8 for each thread).
TEST(EverySampler, OneDigestHoweverManyBatchesAreDrawnTogether) {
  for (const auto& c : sampler_cases()) {
    SCOPED_TRACE(name_of(c));
    const auto together = sample_epoch(c, {.bulk = 1000, .nodes = 400});
    EXPECT_EQ(together.batches, 20);
    for (const std::int64_t bulk : {3, 17})
      EXPECT_EQ(sample_epoch(c, {.bulk = bulk, .nodes = 400}).digest, together.digest) << bulk;
  }
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
