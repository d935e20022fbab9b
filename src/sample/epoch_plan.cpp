#include "espalier/sample/epoch_plan.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "espalier/base/error.hpp"
#include "espalier/base/philox.hpp"
#include "espalier/file/content_digest.hpp"
#include "espalier/partition/order.hpp"
#include "espalier/sample/examples.hpp"

namespace espalier {

EpochPlan::EpochPlan(std::shared_ptr<const Examples> examples, const EpochShape& shape)
    : examples_(std::move(examples)),
      batches_per_step_(std::clamp<std::int64_t>(shape.batches_per_step, 1,
                                                 std::max<std::int64_t>(1, examples_->batches()))),
      ranks_(shape.ranks),
      seed_(shape.seed),
      epoch_(shape.epoch) {
  if (batches() > kMostBatches)
    usage_error("{} batches in an epoch, of which random numbers know {}; take larger ones", batches(),
                kMostBatches);
  if (!examples_->groups().empty()) deal();
}

// With groups: ranks keep equal stretches of a step's batches in the order of their groups.
void EpochPlan::deal() {
  const auto groups = examples_->groups();
  owner_ranks_.resize(groups.size());
  for (std::int64_t step = 0; step < steps(); ++step) {
    std::vector<std::int64_t> of_step(step_end(step) - step_begin(step));
    std::iota(of_step.begin(), of_step.end(), step_begin(step));
    std::ranges::stable_sort(of_step, {}, [&](std::int64_t batch) { return groups[batch]; });
    for (std::int64_t k = 0; k < std::ssize(of_step); ++k)
      owner_ranks_[of_step[k]] = static_cast<std::int32_t>(k * ranks_ / std::ssize(of_step));
  }
}

std::vector<std::int64_t> EpochPlan::kept_by(int rank, std::int64_t begin, std::int64_t end) const {
  std::vector<std::int64_t> kept;
  for (auto batch = begin; batch < std::min(end, batches()); ++batch)
    if (rank_of(batch) == rank) kept.push_back(batch);
  return kept;
}

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
