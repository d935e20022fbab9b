// ranks: 1 4
// long ranks: 2 3 6
// Law: on GPUs every sampler, on every grid, by every schedule and vertex cut, makes the
// minibatches that it makes on the CPU, entry by entry, value bits and relations included, and
// moves the same messages and bytes under the same labels; and they lose the same entries. Nothing
// is left to the CPU.
#include <fmt/format.h>

#include "comm/device_transports.hpp"
#include "espalier/sample/epoch_sampler.hpp"
#include "partition/cut.hpp"
#include "partition/owned.hpp"
#include "sample/device_layer_cases.hpp"
#include "sample/uneven_batches.hpp"
#include "typed_graph.hpp"

namespace espalier {
namespace {

class EverySamplerOnGpus : public CudaTest {};

constexpr std::int64_t kSampledVertices = 90;

struct Job {
  const char* sampler;
  bool weighted;
  SamplerShape shape;
  bool typed = false;
};

std::vector<Job> jobs() {
  return {
      {"graphsage", false, {.fanout = {5, 3}}},
      {"graphsage", true, {.fanout = {4, -1}, .weighted = true, .aggregation = Aggregation::kMatrix}},
      {"graphsage", true, {.fanout = {4, -1}, .weighted = true}},
      {"graphsage", true, {.fanout = {4, -1}, .weighted = true, .draw = DrawLaw::kRace}},
      {"graphsage",
       true,
       {.fanout = {3, 40}, .weighted = true, .draw = DrawLaw::kRace, .aggregation = Aggregation::kMatrix}},
      {"labor", false, {.fanout = {4, 3}}},
      {"labor", false, {.fanout = {3, 3}, .share_batches = 4}},
      {"ladies", true, {.fanout = {12, 20}}},
      {"ladies", true, {.fanout = {9, 1000}, .mode = SamplerMode::kReference}},
      {"fastgcn", true, {.fanout = {12, 40}}},
      {"fastgcn", true, {.fanout = {1000, 30}, .mode = SamplerMode::kPaper}},
      {"subgraph", true, {.fanout = {10, 10}}},
      {"graphsage", false, {.fanout = {5, 3}}, true},
      {"subgraph", false, {.fanout = {10, 10}}, true},
      {"ladies", true, {.fanout = {12, 20}}, true},
      {"fastgcn", false, {.fanout = {1000, 30}}, true},
      {"graphsage",
       true,
       {.fanout = {4, 3},
        .relation_fanout = {{4, -1, 0, 2, 9, 3, 2}, {-1, 2, 2, 20, 3, 1, 1}},
        .weighted = true},
       true},
      {"graphsage",
       true,
       {.fanout = {4, 3},
        .relation_fanout = {{4, -1, 0, 2, 9, 3, 2}, {-1, 2, 2, 20, 3, 1, 1}},
        .weighted = true,
        .draw = DrawLaw::kRace},
       true},
      {"graphsage",
       true,
       {.fanout = {4, 3},
        .relation_fanout = {{0, -1, 0, 2, 9, 3, 2}, {0, 2, 0, 20, 3, 1, 1}},
        .aggregation = Aggregation::kMatrix},
       true},
      {"ladies",
       true,
       {.fanout = {12, 20}, .relation_fanout = {{4, -1, 0, 2, 9, 3, 2}, {5, 2, 2, 20, 3, 1, 0}}},
       true},
      {"fastgcn",
       true,
       {.fanout = {12, 20}, .relation_fanout = {{4, -1, 0, 2, 9, 3, 2}, {5, 2, 2, 2, 3, 1, 0}}},
       true},
      {"labor",
       false,
       {.fanout = {2, 2}, .relation_fanout = {{4, 1, 0, 2, -1, 3, 2}, {1, 2, 2, 2, 3, 1, 1}}},
       true}};
}

// Every other entry between two seeds of the first batches' last blocks leaves all blocks.
void expect_same_without_some(std::vector<SeedBatch> batches, std::vector<MinibatchOn<Cuda>> gpu,
                              std::vector<Minibatch> cpu) {
  std::vector<std::vector<SeedPair>> pairs(batches.size());
  for (std::size_t b = 0; b + 1 < batches.size(); ++b) {
    const auto& block = cpu[b].blocks.back();
    for (std::int32_t row = 0; row < block.rows; ++row)
      for (auto e = block.row_begin(row); e < block.row_end(row); ++e)
        if (block.indices[e] < block.rows && e % 2 == 0)
          pairs[b].push_back({row, block.indices[e], block.relation(e)});
    std::ranges::sort(pairs[b]);
    batches[b].exclude_edges(pairs[b]);
  }
  exclude_edges(Cpu{1}, batches, cpu);
  exclude_edges(own_gpu(), batches, gpu);
  expect_equal_minibatches(own_gpu(), gpu, cpu);
}

template <class Index>
void expect_samples_as_on_cpu(const Grid& grid, const DeviceGrid& device_grid, const Job& job,
                              const Ownership& ownership, Schedule schedule, Cut cut = Cut::kNone) {
  const auto schema = typed_schema(kSampledVertices);
  const auto whole = job.typed ? typed_graph<Index>(schema, 9, job.weighted, test_seed(9))
                               : random_graph<Index>(kSampledVertices, 7, job.weighted, test_seed(9));
  const auto parts =
      cut == Cut::kNone ? std::vector<std::uint16_t>() : parts_of_entries(cut, whole, grid.rows());
  auto a = job.typed       ? typed_matrix(grid, schema, whole, ownership, parts)
           : parts.empty() ? distribute(grid, whole, ownership)
                           : distribute_cut<Index>(grid, whole, ownership, parts);
  if (sampler_kind_of(job.sampler).layer_wise)
    a = normalize_rows(std::move(a), job.shape.mode == SamplerMode::kReference, job.weighted);
  a = count_rows(std::move(a), WholeRowFacts::kNone);
  auto shape = job.shape;
  shape.schedule = schedule;
  const UnevenBatches mine(kSampledVertices);
  auto& traffic = grid.traffic();
  const auto host_sampler = make_sampler(job.sampler, a, shape);
  traffic.clear();
  const auto expected = host_sampler->sample({1}, mine.batches, 5, 3);
  const auto expected_traffic = traffic.all();
  const auto copy = to_device(own_gpu(), device_grid, a);
  if (cut != Cut::kNone) shape.schedule = Schedule::kAuto;  // which pulls
  const auto sampler = make_sampler(own_gpu(), job.sampler, copy, shape);
  EXPECT_EQ(sampler->schedules(), host_sampler->schedules());
  traffic.clear();
  const auto minibatches = sampler->sample(own_gpu(), mine.batches, 5, 3);
  expect_same_traffic(traffic.all(), expected_traffic);
  expect_equal_minibatches(own_gpu(), minibatches, expected);
  expect_same_without_some(mine.batches, minibatches, expected);
}

constexpr auto kSchedules = {Schedule::kPull, Schedule::kPush, Schedule::kStaged, Schedule::kStagedOblivious};

// `stride` 1: every job by every schedule; 5: one of them or none, others for the next job, grid
// and width of indices.
template <class Index>
void expect_on_every_grid(int stride) {
  int turn = sizeof(Index) / 4, cuts = turn;
  for (const int c : divisors(test_world().size())) {
    const Grid grid(test_world(), c);
    const DeviceGrid device_grid(own_gpu(), grid);
    for (const auto& job : jobs()) {
      for (const auto schedule : kSchedules) {
        if (turn++ % stride != 0) continue;
        SCOPED_TRACE(fmt::format("{} c {} {} {} bytes", job.sampler, c, name_of(schedule), sizeof(Index)));
        expect_samples_as_on_cpu<Index>(
            grid, device_grid, job,
            ownership_of(kAllOwned[static_cast<int>(schedule) % 2], kSampledVertices, grid.rows()), schedule);
      }
      if (grid.rows() > 1 && (cuts++ % 2 == 0 || stride == 1)) {
        const auto cut = kAllCuts[cuts / 2 % 4];
        SCOPED_TRACE(
            fmt::format("{} c {} cut {} {} bytes", job.sampler, c, static_cast<int>(cut), sizeof(Index)));
        expect_samples_as_on_cpu<Index>(
            grid, device_grid, job,
            ownership_of(kAllOwned[static_cast<std::size_t>(cuts) % 3], kSampledVertices, grid.rows()),
            Schedule::kPull, cut);
      }
      if (stride > 1 && c > 1) continue;  // nothing is sent: every grid does the same
      SCOPED_TRACE(fmt::format("{} c {} replicated {} bytes", job.sampler, c, sizeof(Index)));
      expect_samples_as_on_cpu<Index>(grid, device_grid, job, block_partition(kSampledVertices, 1),
                                      Schedule::kPush);
    }
  }
}

TEST_F(EverySamplerOnGpus, MakesTheMinibatchesOfTheCpuAndMovesItsBytes) {
  expect_on_every_grid<std::int32_t>(5);
}

TEST_F(EverySamplerOnGpus, WithWideIndicesToo) {
  expect_on_every_grid<std::int64_t>(5);
}

TEST_F(EverySamplerOnGpus, LongEveryJobByEverySchedule) {
  expect_on_every_grid<std::int32_t>(1);
  expect_on_every_grid<std::int64_t>(3);
}

}  // namespace
}  // namespace espalier
