#include "espalier/sample/batch_groups.hpp"

namespace espalier {

BatchGroups group_batches(const Order& order, std::span<const std::int64_t> training, std::int32_t count) {
  const auto cuts = cut_training(order.info.weights, count);
  std::vector<std::int32_t> group_of;
  for (int cluster = 0; cluster < order.info.clusters(); ++cluster) group_of.push_back(cuts.owner(cluster));
  BatchGroups groups;
  groups.count = count;
  for (const auto v : training) groups.of.push_back(group_of[order.cluster[v]]);
  return groups;
}

}  // namespace espalier
