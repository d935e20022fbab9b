// Laws: on GPUs, too, run.overlap of any depth changes no bit and no byte, by NCCL and through
// the host, for every grid, topology and window, whether what is sampled is of vertices or of
// layers. Another thread than the one that trains samples every window, and what it throws ends
// the training.
// ranks: 1 4
// long ranks: 2
#include <set>
#include <thread>

#include "comm/device_transports.hpp"
#include "espalier/base/error.hpp"
#include "espalier/train/trainer.hpp"
#include "train/same_epochs.hpp"
#include "train/small_gpu_job.hpp"
#include "train/small_training.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

class OverlapOnGpu : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (!threads_may_communicate()) GTEST_SKIP() << "this MPI library lets one thread communicate";
  }
};

// Notes which threads sample, and finds no memory for window number `full`.
class WatchedSampler : public SamplerOn<Cuda> {
 public:
  WatchedSampler(SamplerOn<Cuda>& sampler, int full) : sampler_(sampler), full_(full) {}
  std::vector<MinibatchOn<Cuda>> sample(const Cuda& gpu, std::span<const SeedBatch> batches,
                                        std::uint64_t seed, std::uint64_t epoch) override {
    threads.insert(std::this_thread::get_id());
    if (++windows == full_) memory_error("the GPU is full");
    return sampler_.sample(gpu, batches, seed, epoch);
  }
  const std::vector<Schedule>& schedules() const override { return sampler_.schedules(); }

  std::set<std::thread::id> threads;
  int windows = 0;

 private:
  SamplerOn<Cuda>& sampler_;
  int full_;
};

struct WatchedRun {
  std::vector<EpochReport> epochs;
  std::uint64_t weights = 0;
  std::set<std::thread::id> threads;  // that sampled
  int windows = 0;
};

struct Layout {
  int copies = 1;
  Topology topology = Topology::kPartitioned;
  std::int64_t bulk = 5, batches_per_step = 3;
};

WatchedRun train_watched(const SmallProblem& problem, const Config& config, const Layout& layout,
                         int full = 0) {
  const Grid grid(test_world(), layout.copies);
  std::optional<Grid> beside;
  if (config.run.overlap) beside.emplace(grid.world().duplicate(), layout.copies);
  std::optional<SampleAhead> ahead;
  if (beside) ahead.emplace(beside->world());
  const SmallGpuJob job(own_gpu(), grid, problem, config, layout.topology, Placement::kDevice,
                        beside ? &*beside : nullptr);
  WatchedSampler sampler(*job.sampler, full);
  TrainerOn<Cuda> trainer(own_gpu(), {job.grid, config, sampler, job.input, *job.task, job.evaluator,
                                      layout.bulk, layout.batches_per_step, ahead ? &*ahead : nullptr});
  WatchedRun run;
  trainer.train({nullptr, [&](const EpochReport& epoch) { run.epochs.push_back(epoch); }});
  run.weights = trainer.weights_digest();
  run.threads = sampler.threads;
  run.windows = sampler.windows;
  return run;
}

void expect_overlap_changes_nothing(const SmallProblem& problem, Config config, const Layout& layout) {
  SCOPED_TRACE(fmt::format("c {} {} bulk {} {}", layout.copies,
                           layout.topology == Topology::kReplicated ? "replicated" : "partitioned",
                           layout.bulk, config.sampler.kind));
  const auto me = std::this_thread::get_id();
  config.run.overlap = false;
  const auto plain = train_watched(problem, config, layout);
  EXPECT_EQ(plain.threads, std::set{me});
  config.run.overlap = true;
  for (const std::int64_t depth : {1, 3}) {
    SCOPED_TRACE(fmt::format("{} steps ahead", depth));
    config.run.prefetch_steps = depth;
    const auto run = train_watched(problem, config, layout);
    EXPECT_EQ(run.threads.size(), 1U);
    EXPECT_FALSE(run.threads.contains(me));
    EXPECT_GE(run.windows, plain.windows);
    EXPECT_EQ(run.weights, plain.weights);
    expect_same_epochs(run.epochs, plain.epochs);
  }
}

// By nodes from a mean, or by layers from a matrix.
Config job_of(const std::string& sampler) {
  auto config = config_of(sampler == "ladies" ? "gcn" : "sage", "batch");
  config.sampler.kind = sampler;
  config.train.eval_every = 2;
  config.train.epochs = 3;
  return config;
}

TEST_F(OverlapOnGpu, ChangesNoBitAndNoByte) {
  const auto problem = small_problem(46, 5, 3, 20);
  for (const int c : {1, 2})
    for (const std::string sampler : {"graphsage", "ladies"}) {
      if (test_world().size() % c != 0) continue;
      expect_overlap_changes_nothing(problem, job_of(sampler), {.copies = c, .bulk = 3});
      expect_overlap_changes_nothing(problem, job_of(sampler),
                                     {.copies = c, .topology = Topology::kReplicated, .bulk = 1000});
    }
}

TEST_F(OverlapOnGpu, ChangesNothingThroughTheHost) {
  setenv("ESPALIER_NO_NCCL", "1", 1);
  expect_overlap_changes_nothing(small_problem(46, 5, 3, 20), job_of("graphsage"), {.bulk = 3});
  unsetenv("ESPALIER_NO_NCCL");
}

TEST_F(OverlapOnGpu, StopsEarlyAndLeavesTheWindowOfTheEpochThatDoesNotCome) {
  auto config = config_of("sage", "none");
  config.train.learning_rate = 0.5;
  config.train.epochs = 50;
  config.train.early_stop = 1;
  expect_overlap_changes_nothing(small_problem(46, 5, 3, 20), config, {.bulk = 1000});
}

TEST_F(OverlapOnGpu, AFullGpuEndsTheTrainingWhoeverFoundIt) {
  auto config = job_of("graphsage");
  for (const bool overlap : {false, true})
    for (const int full : {1, 2, 4}) {
      SCOPED_TRACE(fmt::format("overlap {} window {}", overlap, full));
      config.run.overlap = overlap;
      expect_refused(ExitCode::kMemory, {},
                     [&] { train_watched(small_problem(46, 5, 3, 20), config, {.bulk = 3}, full); });
    }
}

}  // namespace
}  // namespace espalier
