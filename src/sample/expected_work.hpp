// What the layers of a sampler will ask of the product, before anything was sampled: the input of
// the alpha-beta model behind `schedule = "auto"`. Estimates; they steer costs, never results.
#pragma once

#include <span>
#include <vector>

#include "espalier/product/schedule.hpp"
#include "espalier/sample/sampler.hpp"

namespace espalier {

/// Degrees d of A's rows, exact sums over all of them. `neighbour` = sum d^2 / sum d is the mean
/// degree of the end of a random edge. For each layer of a fanout s, `picks` = mean of min(s, d)
/// over rows, and `neighbour_picks` over ends of random edges.
struct DegreeMoments {
  double rows = 0, entries = 0, mean = 0, neighbour = 0;
  std::vector<double> picks, neighbour_picks;
  std::vector<double> of_relations = {};  ///< the entries of each, where each has a fanout
                                          ///< of its own
};

/// Collective over the process column.
template <class Index>
DegreeMoments degree_moments(const DistCsr<Index>& a, const SamplerShape& shape);

/// One rank's work per layer, first: next to the batch. Each frontier vertex draws from its row.
std::vector<ProductWork> node_wise_work(const DegreeMoments& degrees, const SamplerShape& shape,
                                        bool values_beside_picks);

/// The same for one draw per batch and layer; `sums`: is the distribution a sum of the
/// frontier's rows? `induces`: are the picks what a batch has already? Then one product serves all
/// layers, and its work stands for each.
std::vector<ProductWork> layer_wise_work(const DegreeMoments& degrees, const SamplerShape& shape, int parts,
                                         bool sums, bool induces);

/// The schedule of each layer: the one that was asked for, or what the model chooses.
std::vector<Schedule> choose_schedules(const ProductShape& product, const SamplerShape& shape,
                                       const std::vector<ProductWork>& work);
template <class Index>
std::vector<Schedule> choose_schedules(const DistCsr<Index>& a, const SamplerShape& shape,
                                       const std::vector<ProductWork>& work);

}  // namespace espalier
