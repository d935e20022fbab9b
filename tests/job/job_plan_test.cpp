// ranks: 1
// Law of a plan in a program of one's own: what it counts in all minibatches of an epoch is what a
// job of that config draws. (What is refused and what does not fit: tests/app/plan_test.py.)
#include "espalier/job/job_plan.hpp"

#include <gtest/gtest.h>

#include "espalier/job/sampling_on_gpu.hpp"
#include "open_job.hpp"

namespace espalier {
namespace {

TEST(JobPlan, CountsWhatTheJobDraws) {
  const auto graph = test_folder("job-plan") + "/graph.h5";
  generate_small(test_world(), OutputFile(graph, true));
  for (const std::string sampler : {"graphsage", "labor"}) {
    const auto config = small_config(1, {"graph.file=" + graph, "sampler.kind=" + sampler});
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

}  // namespace
}  // namespace espalier
