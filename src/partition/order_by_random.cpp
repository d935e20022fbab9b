// Clusters of vertices at random, as many in each: the place of a vertex is that in a keyed
// permutation of all ids.
#include "espalier/graph/scramble.hpp"
#include "order_by.hpp"

namespace espalier {

Buffer<std::uint16_t> order_by_random(const OrderTask& task) {
  const Scramble place_of(task.nodes, {.seed = task.seed, .purpose = Purpose::kOrder});
  Buffer<std::uint16_t> clusters;
  const auto mine = task.mine();
  for (auto v = mine.begin; v < mine.end; ++v)
    clusters.push_back(static_cast<std::uint16_t>(even_owner(task.nodes, task.clusters, place_of(v))));
  return clusters;
}

}  // namespace espalier
