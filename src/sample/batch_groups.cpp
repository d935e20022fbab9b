#include <numeric>

#include "espalier/file/content_digest.hpp"
#include "espalier/partition/order.hpp"
#include "espalier/sample/examples.hpp"

namespace espalier {

namespace {

// `weights` of the clusters, by the training examples in them.
BatchGroups group_by(const Order& order, std::span<const ClusterWeights> weights,
                     std::span<const std::int64_t> vertices, std::int32_t count) {
  const auto cuts = cut_training(weights, count);
  std::vector<std::int32_t> group_of;
  for (int cluster = 0; cluster < order.info.clusters(); ++cluster) group_of.push_back(cuts.owner(cluster));
  BatchGroups groups;
  groups.count = count;
  for (const auto v : vertices) groups.of.push_back(group_of[order.cluster[v]]);
  return groups;
}

}  // namespace

BatchGroups group_batches(const Order& order, std::span<const std::int64_t> training, std::int32_t count) {
  auto groups = group_by(order, order.info.weights, training, count);
  groups.digest = content_digest(std::span<const std::int32_t>(groups.of), 0);
  return groups;
}

BatchGroups group_spread_batches(const Communicator& comm, const Order& order,
                                 std::span<const std::int64_t> vertices, std::int32_t count) {
  std::vector<std::int64_t> examples(order.info.weights.size(), 0);
  for (const auto v : vertices) ++examples[order.cluster[v]];
  comm.all_reduce(std::span(examples), Reduction::kSum, "setup");
  auto weights = order.info.weights;
  for (std::size_t cluster = 0; cluster < weights.size(); ++cluster)
    weights[cluster][kTrainWeight] = examples[cluster];
  auto groups = group_by(order, weights, vertices, count);
  const auto before = comm.all_gather(std::ssize(vertices), "setup");
  const auto first = std::accumulate(before.begin(), before.begin() + comm.rank(), std::int64_t{0});
  groups.digest = comm.all_reduce(content_digest(std::span<const std::int32_t>(groups.of), first),
                                  Reduction::kSum, "setup");
  return groups;
}

}  // namespace espalier
