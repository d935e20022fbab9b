// What `espalier calibrate` measures of each way to share the cores of a node.
#include <algorithm>
#include <limits>

#include "espalier/base/clock.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/comm/node_memory.hpp"
#include "espalier/plan/core_splits.hpp"
#include "standard_work.hpp"

namespace espalier {

namespace {

constexpr int kStepRepetitions = 3;
constexpr std::int64_t kBatchesOfStep = 4, kSeedsOfBatch = 512;
constexpr double kForEver = std::numeric_limits<double>::infinity();

// Made anew for each split, so that its pages lie where the split's threads are.
class StandardStep {
 public:
  StandardStep(const Cpu& cpu, const Communicator& self)
      : cpu_(cpu),
        alone_(self, 1),
        graph_(standard_work::make_graph(alone_)),
        sampler_(make_sampler("graphsage", graph_, {.fanout = {15, 10, 5}})),
        rows_(alone_, block_partition(standard_work::kVertices, 1),
              standard_work::numbers(standard_work::kVertices, standard_work::kWidth)),
        weights_(standard_work::numbers(standard_work::kWidth, standard_work::kWidth)) {}

  void run() {
    for (const auto& minibatch : standard_work::sample_some(cpu_, *sampler_, kBatchesOfStep, kSeedsOfBatch)) {
      const std::vector<std::span<const std::int64_t>> lists = {minibatch.vertices};
      rows_.fetch(cpu_, lists, h_, "setup");
      for (const auto& block : minibatch.blocks) {
        sums_.resize(block.rows, standard_work::kWidth);
        spmm<float>(cpu_, block, h_[0], sums_);
        h_[0].resize(block.rows, standard_work::kWidth);
        gemm<float>(cpu_, sums_, weights_, h_[0]);
        relu_dropout<float>(cpu_, {}, 0.5, h_[0]);
      }
    }
  }

 private:
  Cpu cpu_;
  Grid alone_;
  DistCsr<std::int32_t> graph_;
  std::unique_ptr<Sampler> sampler_;
  RowStore rows_;
  Matrix<float> weights_, sums_;
  std::vector<Matrix<float>> h_;
};

// As a job reads its graph (job.hpp).
std::unique_ptr<StandardStep> make_step(const Cpu& cpu, const SplitRanks& ranks) {
  const InterleavedPages interleaved(cpu.threads, nodes_of(ranks.cores(), numa_nodes()));
  return std::make_unique<StandardStep>(cpu, ranks.group().split(ranks.group().rank(), 0));
}

// Of the slowest rank, the least disturbed time.
double seconds_of_step(const SplitRanks& ranks, std::int64_t threads) {
  const auto& group = ranks.group();
  const auto standard = make_step({static_cast<int>(threads)}, ranks);
  auto& step = *standard;
  step.run();
  double least = kForEver;
  for (int k = 0; k < kStepRepetitions; ++k) {
    group.barrier();
    const double start = now();
    step.run();
    least = std::min(least, group.all_reduce(now() - start, Reduction::kMax, "setup"));
  }
  return least;
}

}  // namespace

SplitRanks::SplitRanks(const Communicator& world, const NodePlace& node, const CoreSplit& split,
                       const CoreList& near)
    : world_(world),
      takes_part_(node.place < split.ranks),
      cores_(takes_part_ ? cores_of(split, near, node.place) : CoreList()),
      group_(world.split(takes_part_ ? 0 : 1, world.rank())),
      on_(cores_, static_cast<int>(split.threads)) {
  moved_ = world.all_reduce(std::int64_t{on_.moved()}, Reduction::kMin, "setup") != 0;
}

void SplitRanks::wait() const {
  all_arrive_within(world_, kForEver);
}

CoreList cores_of_node(const Communicator& world) {
  cpu_set_t mine = {};
  for (const int core : allowed_cores()) CPU_SET(core, &mine);
  CoreList cores;
  const auto sets = ranks_of_node(world).all_gather(mine, "setup");
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (std::ranges::any_of(sets, [&](const cpu_set_t& set) { return CPU_ISSET(core, &set); }))
      cores.push_back(core);
  auto near = near_each_other(cores, numa_nodes(), first_siblings(cores));
  near.resize(world.all_reduce(std::ssize(near), Reduction::kMin, "setup"));
  return near;
}

void measure_core_splits(const Communicator& world, const NodePlace& node, const CoreList& near,
                         std::vector<CoreSplit>& splits) {
  note_activity("measuring ranks x threads");
  for (auto& split : splits) {
    const SplitRanks ranks(world, node, split, near);
    if (ranks.takes_part() && ranks.moved())
      split.steps = static_cast<double>(split.ranks) / seconds_of_step(ranks, split.threads);
    ranks.wait();
    split.steps = world.all_reduce(split.steps, Reduction::kMax, "setup");
  }
}

}  // namespace espalier
