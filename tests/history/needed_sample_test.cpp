// ranks: 1 2 3 4 6
// Law: drawing only what is needed is pruning the whole sample, in every array, for samplers that
// draw for each vertex, on every grid, by every schedule, of one type and of several.
#include "history/needed_sample_cases.hpp"

namespace espalier {
namespace {

template <class Index>
void expect_on_every_grid() {
  int turn = 0;
  for (const int c : divisors(test_world().size())) {
    const Grid grid(test_world(), c);
    for (const auto& job : needed_jobs()) {
      auto shape = job.shape;
      constexpr Schedule kSchedules[] = {Schedule::kPull, Schedule::kPush, Schedule::kStaged,
                                         Schedule::kStagedOblivious};
      shape.schedule = kSchedules[turn++ % 4];
      SCOPED_TRACE(fmt::format("{} typed {} c {} {}", job.sampler, job.typed, c, name_of(shape.schedule)));
      const auto a =
          needed_matrix<Index>(grid, job, ownership_of(kAllOwned[turn % 2], kNeededVertices, grid.rows()));
      const auto sampler = make_sampler(job.sampler, a, shape);
      for (const int threads : {1, 3}) expect_needed_is_pruned(Cpu{threads}, *sampler, shape.fanout.size());
    }
  }
}

TEST(NeededSample, IsThePrunedSample) {
  expect_on_every_grid<std::int32_t>();
}

TEST(NeededSample, WithWideIndicesToo) {
  expect_on_every_grid<std::int64_t>();
}

}  // namespace
}  // namespace espalier
