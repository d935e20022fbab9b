#include "espalier/sample/epoch_plan.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace espalier {

EpochPlan::EpochPlan(std::shared_ptr<const Examples> examples, const EpochShape& shape)
    : examples_(std::move(examples)),
      batches_per_step_(std::clamp<std::int64_t>(shape.batches_per_step, 1,
                                                 std::max<std::int64_t>(1, examples_->batches()))),
      ranks_(shape.ranks),
      seed_(shape.seed),
      epoch_(shape.epoch) {
  if (!examples_->groups().empty()) deal();
}

// With groups: ranks keep equal stretches of a step's batches in the order of their groups.
void EpochPlan::deal() {
  const auto groups = examples_->groups();
  owner_ranks_.resize(groups.size());
  for (std::int64_t step = 0; step < steps(); ++step) {
    std::vector<std::int64_t> of_step(step_end(step) - step_begin(step));
    std::iota(of_step.begin(), of_step.end(), step_begin(step));
    std::ranges::stable_sort(of_step, {}, [&](std::int64_t batch) { return groups[batch]; });
    for (std::int64_t k = 0; k < std::ssize(of_step); ++k)
      owner_ranks_[of_step[k]] = static_cast<std::int32_t>(k * ranks_ / std::ssize(of_step));
  }
}

std::vector<std::int64_t> EpochPlan::kept_by(int rank, std::int64_t begin, std::int64_t end) const {
  std::vector<std::int64_t> kept;
  for (auto batch = begin; batch < std::min(end, batches()); ++batch)
    if (rank_of(batch) == rank) kept.push_back(batch);
  return kept;
}

}  // namespace espalier
