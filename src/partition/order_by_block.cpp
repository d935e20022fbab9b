// Clusters of consecutive ids, as many vertices in each: what the program has without an order.
#include "order_by.hpp"

namespace espalier {

Buffer<std::uint16_t> order_by_block(const OrderTask& task) {
  Buffer<std::uint16_t> clusters;
  const auto mine = task.mine();
  for (auto v = mine.begin; v < mine.end; ++v)
    clusters.push_back(static_cast<std::uint16_t>(even_owner(task.nodes, task.clusters, v)));
  return clusters;
}

}  // namespace espalier
