// ranks: 1
// Laws: the group of a training vertex is that of its cluster, ascends with it, and groups have
// training vertices as evenly as clusters allow, whatever else is in them.
#include "espalier/sample/batch_groups.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace espalier {
namespace {

// Vertex v is in cluster v % 12; those below 60 train. Clusters 0 to 5 have many edges.
Order twelve_clusters() {
  Order order;
  order.info.nodes = 120;
  for (int cluster = 0; cluster < 12; ++cluster)
    order.info.weights.push_back({10, cluster < 6 ? 100 : 1, 5, 0, 0});
  for (int v = 0; v < 120; ++v) order.cluster.push_back(static_cast<std::uint16_t>(v % 12));
  return order;
}

TEST(BatchGroups, AreStretchesOfTheClustersWithEvenTraining) {
  const auto order = twelve_clusters();
  std::vector<std::int64_t> training;
  for (int v = 0; v < 60; ++v) training.push_back(v);
  for (const std::int32_t count : {1, 2, 3, 4, 6, 12}) {
    const auto groups = group_batches(order, training, count);
    EXPECT_EQ(groups.count, count);
    ASSERT_EQ(groups.of.size(), training.size());
    for (std::size_t k = 0; k < training.size(); ++k)
      EXPECT_EQ(groups.of[k], order.cluster[training[k]] * count / 12) << "of vertex " << training[k];
    for (std::int32_t group = 0; group < count; ++group)
      EXPECT_EQ(std::ranges::count(groups.of, group), 60 / count);
  }
}

}  // namespace
}  // namespace espalier
