// Clusters by our own multilevel method (partition/multilevel.hpp): no rank holds the graph.
#include "espalier/partition/multilevel.hpp"
#include "order_by.hpp"
#include "order_pattern.hpp"

namespace espalier {

Buffer<std::uint16_t> order_by_multilevel(const OrderTask& task) {
  Buffer<ClusterWeights> weights(task.weights.begin(), task.weights.end());
  const auto clusters = cluster_by_multilevel(task.world, symmetric_rows(task), std::move(weights),
                                              {.clusters = task.clusters, .seed = task.seed});
  return {clusters.begin(), clusters.end()};
}

}  // namespace espalier
