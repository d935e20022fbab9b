// Vertices dealt to the clusters by degree: those of each split apart, most entries first, round
// after round, forth and back (of two neighbouring rounds each cluster gets as much as any other).
// A round goes through the clusters in the order of their numbers with bits reversed, so that the
// largest vertices lie far apart in the sequence. Every stretch of it is a small picture of the
// graph, so cuts are even; edges are cut as at random. The degrees of all vertices are on rank 0.
#include <algorithm>
#include <bit>
#include <numeric>

#include "order_by.hpp"
#include "order_pattern.hpp"

namespace espalier {

namespace {

// Which of the splits has the vertex: a vertex of no split is one of another kind.
int split_of(const ClusterWeights& weights) {
  return static_cast<int>(weights[2] + 2 * weights[3] + 4 * weights[4]);
}

// 0, 1/2, 1/4, 3/4, 1/8, ... of all clusters: the first of them are spread out, however many.
std::vector<std::uint16_t> spread_out(int clusters) {
  const int bits = std::bit_width(static_cast<unsigned>(clusters - 1));
  std::vector<std::uint16_t> order;
  for (int k = 0; k < 1 << bits; ++k) {
    int reversed = 0;
    for (int bit = 0; bit < bits; ++bit) reversed |= (k >> bit & 1) << (bits - 1 - bit);
    if (reversed < clusters) order.push_back(static_cast<std::uint16_t>(reversed));
  }
  return order;
}

std::vector<std::uint16_t> deal(const std::vector<ClusterWeights>& weights, int clusters) {
  std::vector<std::int64_t> order(weights.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](auto a, auto b) {
    const auto first = split_of(weights[a]), second = split_of(weights[b]);
    return first != second ? first < second : weights[a][1] > weights[b][1];
  });
  const auto cluster_at = spread_out(clusters);
  std::vector<std::uint16_t> dealt(weights.size());
  for (std::size_t k = 0; k < order.size(); ++k) {
    const auto round = k / cluster_at.size(), place = k % cluster_at.size();
    dealt[order[k]] = cluster_at[round % 2 == 0 ? place : cluster_at.size() - 1 - place];
  }
  return dealt;
}

}  // namespace

Buffer<std::uint16_t> order_by_degree(const OrderTask& task) {
  const auto weights = gather_weights(task, {0, task.nodes});
  std::vector<std::uint16_t> dealt;
  if (task.world.rank() == 0) dealt = deal(weights, task.clusters);
  return scatter_clusters(task, dealt);
}

}  // namespace espalier
