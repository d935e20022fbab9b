// ranks: 1
// Laws of a plan in a program of one's own: what it counts in all minibatches of an epoch is what a
// job of that config draws; a job that a run would refuse is refused, one that does not fit is a
// verdict, and then an error of check_memory.
#include "espalier/job/job_plan.hpp"

#include <gtest/gtest.h>

#include "espalier/graph/generate.hpp"
#include "espalier/job/sampling_on_gpu.hpp"
#include "mpi_test.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

std::string graph_to_plan() {
  const auto path = test_folder("job-plan") + "/graph.h5";
  generate_planted(test_world(), {.nodes = 300, .degree = 6, .homophily = 0.8},
                   {.features = 5, .classes = 3, .seed = 2}, OutputFile(path, true));
  return path;
}

Config config_to_plan(const std::string& graph, const std::vector<std::string>& more = {}) {
  std::vector<std::string> keys = {
      "graph.file=" + graph, "run.device=\"cpu\"",    "run.threads=1",         "model.hidden=8",
      "model.layers=2",      "sampler.fanout=[4, 3]", "sampler.batch_size=20", "train.batches_per_step=4"};
  keys.insert(keys.end(), more.begin(), more.end());
  return parse_config("", "a test", keys);
}

TEST(JobPlan, CountsWhatTheJobDraws) {
  const auto graph = graph_to_plan();
  for (const std::string sampler : {"graphsage", "labor"}) {
    const auto config = config_to_plan(graph, {"sampler.kind=" + sampler});
    const auto job = open_job(test_world(), config, JobKind::kSample);
    const auto drawn = sample_epoch(job, 1).counts;
    for (const std::int64_t ranks : {1, 4}) {
      const auto plan = plan_job(test_world(), config, {.ranks = ranks});
      EXPECT_EQ(plan.work.drawn, drawn.batches);
      EXPECT_EQ(plan.work.digest, drawn.digest) << sampler << " on " << ranks;
      EXPECT_EQ(std::llround(plan.work.sampled_edges), drawn.sampled_edges);
      EXPECT_EQ(std::llround(plan.work.input_rows), drawn.input_rows);
      EXPECT_EQ(plan.moves_samples(), plan.epoch.rows() > 1);
    }
  }
}

TEST(JobPlan, IsRefusedAsTheJobIs) {
  const auto graph = graph_to_plan();
  expect_refused(ExitCode::kUsage, {"grid.replication = 3", "does not divide"}, [&] {
    plan_job(test_world(), config_to_plan(graph, {"grid.replication=3"}), {.ranks = 4});
  });
}

TEST(JobPlan, WhatDoesNotFitIsAVerdict) {
  const auto config = config_to_plan(graph_to_plan());
  const auto plan = plan_job(test_world(), config, {.ranks = 2, .memory_per_rank = "1KiB"});
  EXPECT_FALSE(plan.does_not_fit.empty());
  expect_refused(ExitCode::kMemory, {"does not fit"}, [&] { check_memory(test_world(), plan); });
  const auto fits = plan_job(test_world(), config, {.ranks = 2, .memory_per_rank = "8GiB"});
  EXPECT_EQ(fits.does_not_fit, "");
  EXPECT_NO_THROW(check_memory(test_world(), fits));
}

}  // namespace
}  // namespace espalier
