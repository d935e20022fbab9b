#include <algorithm>

#include "expected_work.hpp"

namespace espalier {

Footprint minibatches_footprint(const MinibatchSize& size, double count, double relations) {
  Footprint sum;
  sum.add(8 * std::max(size.rows[0], 2 * size.rows[1]), count);  // a list that grew doubles
  for (std::size_t layer = 1; layer < size.rows.size(); ++layer)
    sum.add(8 * size.rows[layer], count)
        .add(4 * size.entries[layer], 2 * count)
        .add(relations > 1 ? size.entries[layer] : 0, count);
  return sum;
}

Footprint sampling_footprint(const PlannedEpoch& epoch, const EpochWork& work, const ProductShape& matrix,
                             int threads) {
  const auto& kind = sampler_kind_of(epoch.sampler);
  const auto layers = epoch.shape.fanout.size();
  const auto stacked = static_cast<double>(work.stacked);
  const int result_value_bytes = has_result_values(epoch) ? 4 : 0;
  Footprint most;
  for (std::size_t k = 0; k < layers; ++k) {
    const auto layer = layers - k;
    if (matrix.parts == 1 && !kind.layer_wise) {  // batch by batch: sample_in_place, node_wise.cpp
      most = larger(most, entries_footprint(work.largest.rows[layer], work.largest.entries[layer],
                                            matrix.index_bytes, result_value_bytes));
      continue;
    }
    auto of_layer = work.window[k];
    of_layer.rows = stacked * work.mean.rows[layer];
    of_layer.results = stacked * work.mean.entries[layer];
    of_layer.result_value_bytes = result_value_bytes;
    most = larger(most, product_footprint(work.schedules[k], matrix, of_layer, kind.layer_wise, threads));
  }
  if (kind.spreads_weights) {
    // fastgcn.cpp: points, intervals, those taken, the axis without them
    double picks = 0;
    for (std::size_t k = 0; k < layers; ++k) picks += static_cast<double>(drawn_of_layer(epoch.shape, k));
    most.add(96 * picks, stacked);
  }
  return most + Footprint().add(matrix.rows / 8, 2 * threads).add(4 * work.largest.rows[0], threads);
}

double sampler_bytes(const PlannedEpoch& epoch, double columns) {
  // A weight for each column.
  return sampler_kind_of(epoch.sampler).spreads_weights ? 8 * columns / epoch.parts() : 0;
}

}  // namespace espalier
