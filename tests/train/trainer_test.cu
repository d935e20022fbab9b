// Training on GPUs against training on the CPU: the same samples, losses and weights close to the
// CPU's, and, with train.reproducible, the same bits on every grid.
// ranks: 1 3
// long ranks: 2 4
#include "espalier/train/trainer.hpp"

#include "cuda_test.hpp"
#include "espalier/product/dist_csr.hpp"
#include "espalier/train/gradient_reduction.hpp"
#include "mpi_test.hpp"
#include "train/small_gpu_job.hpp"
#include "train/small_training.hpp"

namespace espalier {
namespace {

class TrainerOnGpu : public CudaTest {};

struct GpuRun {
  std::vector<EpochReport> epochs;
  std::vector<Buffer<float>> weights;
  std::uint64_t digest = 0;
};

GpuRun train_on_gpu(const Cuda& gpu, const Grid& grid, const SmallProblem& problem, const Config& config,
                    Topology topology, Placement placement = Placement::kDevice) {
  const SmallGpuJob job(gpu, grid, problem, config, topology, placement);
  TrainerOn<Cuda> trainer(
      gpu, {job.grid, config, *job.sampler, job.input, *job.task, job.evaluator, 5, kStep, nullptr});
  GpuRun run;
  trainer.train({nullptr, [&](const EpochReport& epoch) { run.epochs.push_back(epoch); }});
  for (const auto& parameter : trainer.network().parameters())
    run.weights.push_back(download(gpu, parameter.value.data));
  run.digest = trainer.weights_digest();
  return run;
}

TEST_F(TrainerOnGpu, SamplesTheSameAndLearnsTheSameAsTheCpu) {
  auto problem = small_problem(83, 7, 3, 11);
  for (const std::string kind : {"sage", "gcn"})
    for (const auto& [normalize, task] : {std::pair<std::string, std::string>("none", "classes"),
                                          {"batch", "classes"},
                                          {"layer", "classes"},
                                          {"none", "labels"},
                                          {"layer", "labels"}}) {
      // On one rank both kinds learn by every way; on several each way is that of one kind.
      if (test_world().size() > 1 && (kind == "sage") != (normalize == "none")) continue;
      SCOPED_TRACE(kind + " " + normalize + " " + task);
      auto config = config_of(kind, normalize);
      config.train.task = task;
      if (normalize == "layer" && task == "classes") {
        config.train.class_weights = "balanced";
        config.train.label_smoothing = 0.1;
      }
      // All ranks as copies of one block row where that says more: then evaluation gathers.
      const Grid grid(test_world(), normalize == "layer" ? test_world().size() : 1);
      problem.owned = normalize == "none" ? Owned::kAtRandom : Owned::kInRanges;
      const auto expected = train(grid, problem, config);
      const auto run = train_on_gpu(gpu(), grid, problem, config, Topology::kPartitioned);
      ASSERT_EQ(run.epochs.size(), expected.epochs.size());
      for (std::size_t e = 0; e < run.epochs.size(); ++e) {
        EXPECT_EQ(run.epochs[e].counts.digest, expected.epochs[e].counts.digest);
        EXPECT_EQ(run.epochs[e].counts.sampled_edges, expected.epochs[e].counts.sampled_edges);
        for (const auto& [stage, volume] : expected.epochs[e].bytes)
          EXPECT_EQ(run.epochs[e].bytes.at(stage).total, volume.total) << stage;
        // Products differ in rounding, 2^-24 each, over some hundred steps of a small network.
        EXPECT_NEAR(*run.epochs[e].loss, *expected.epochs[e].loss, 1e-4 * *expected.epochs[e].loss);
        ASSERT_EQ(run.epochs[e].valid->scores.size(), expected.epochs[e].valid->scores.size());
        // A vertex or two may change places.
        for (const auto& score : expected.epochs[e].valid->scores)
          EXPECT_NEAR(run.epochs[e].valid->find(score.name).value(), score.value, 0.05) << score.name;
      }
      for (std::size_t k = 0; k < run.weights.size(); ++k)
        for (std::size_t i = 0; i < run.weights[k].size(); ++i)
          EXPECT_NEAR(run.weights[k][i], expected.last[k].data[i], 1e-3) << k << " " << i;
    }
}

TEST_F(TrainerOnGpu, HasTheSameBitsOnEveryGrid) {
  auto problem = small_problem(61, 5, 3, 4);
  for (const auto& [normalize, task] :
       {std::pair("none", "classes"), {"batch", "classes"}, {"none", "labels"}}) {
    auto config = config_of("sage", normalize);
    config.train.epochs = 2;
    config.train.task = task;
    std::uint64_t expected = 0;
    for (const int c : divisors(test_world().size()))
      for (const auto& [topology, placement] : {std::pair(Topology::kPartitioned, Placement::kDevice),
                                                std::pair(Topology::kReplicated, Placement::kHost)}) {
        const Grid grid(test_world(), c);
        problem.owned = kAllOwned[c % 3];
        const auto run = train_on_gpu(gpu(), grid, problem, config, topology, placement);
        if (expected == 0) expected = run.digest;
        EXPECT_EQ(run.digest, expected) << "c = " << c;
        EXPECT_EQ(test_world().all_reduce(run.digest, Reduction::kMax, "test"), run.digest);
      }
    // What one rank by itself finds.
    const Grid alone(test_world().split(test_world().rank(), 0), 1);
    const auto run = train_on_gpu(gpu(), alone, problem, config, Topology::kPartitioned);
    EXPECT_EQ(run.digest, expected);
  }
}

}  // namespace
}  // namespace espalier
