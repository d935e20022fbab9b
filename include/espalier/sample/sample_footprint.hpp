// What samplers and their minibatches hold on a rank (base/footprint.hpp), for the sizes that an
// epoch's samples have (counted_work.hpp).
#pragma once

#include "espalier/base/footprint.hpp"
#include "espalier/sample/counted_work.hpp"

namespace espalier {

/// Vertices and blocks of `count` minibatches (minibatch.hpp).
Footprint minibatches_footprint(const MinibatchSize& size, double count, double relations);

/// While the largest window is sampled, beside its minibatches. `matrix`: ids and values of the
/// sampled matrix, rows and entries.
Footprint sampling_footprint(const PlannedEpoch& epoch, const EpochWork& work, const ProductShape& matrix,
                             int threads);

/// Bytes that the sampler keeps as long as it is there, over a matrix of so many columns.
double sampler_bytes(const PlannedEpoch& epoch, double columns);

}  // namespace espalier
