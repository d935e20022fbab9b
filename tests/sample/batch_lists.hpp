// Copies of the lists of a batch, for tests that look at one and leave it.
#pragma once

#include <cstdint>
#include <vector>

#include "espalier/sample/epoch_plan.hpp"

namespace espalier {

inline std::vector<std::int64_t> seeds_of(const EpochPlan& plan, std::int64_t number) {
  const auto batch = plan.batch(number);
  return {batch.seeds().begin(), batch.seeds().end()};
}

inline std::vector<std::int32_t> tags_of(const EpochPlan& plan, std::int64_t number) {
  const auto batch = plan.batch(number);
  return {batch.label_indices().begin(), batch.label_indices().end()};
}

}  // namespace espalier
