// What counting an epoch (counted_work.cpp) and estimating one (estimated_work.cpp) share.
#pragma once

#include <vector>

#include "espalier/sample/counted_work.hpp"
#include "expected_work.hpp"

namespace espalier {

inline ProductShape product_shape(const PlannedEpoch& job, double rows, double entries, int index_bytes,
                                  int value_bytes) {
  return {.parts = job.parts(),
          .replication = job.replication,
          .rows = rows,
          .entries = entries,
          .index_bytes = index_bytes,
          .value_bytes = value_bytes};
}

inline bool has_result_values(const PlannedEpoch& job) {
  return sampler_kind_of(job.sampler).weighs_picks || job.shape.aggregation == Aggregation::kMatrix;
}

inline std::vector<ProductWork> expected_work(const DegreeMoments& degrees, const PlannedEpoch& job,
                                              const SamplerShape& shape) {
  const auto& kind = sampler_kind_of(job.sampler);
  return kind.layer_wise ? layer_wise_work(degrees, shape, job.parts(), kind.sums_rows)
                         : node_wise_work(degrees, shape, has_result_values(job));
}

inline void size_products(EpochWork& work, const PlannedEpoch& job) {
  for (auto& of_schedule : work.products)
    of_schedule.assign(job.shape.fanout.size(), std::vector<Cost>(job.ranks));
}

}  // namespace espalier
