// Clusters by one pass over the rows, in memory that does not grow with the edges: for graphs that
// nothing else can hold. Rank 0 has a buffer of rows, the cluster of every vertex (2 bytes each),
// and the weights of each cluster and each stretch of clusters above it.
//
// The clusters are the leaves of a tree, whose nodes are stretches of the sequence; a vertex goes
// from the root to a leaf, at each node to the child c with the larger
//
//     (1 + neighbours in c) min(1, 2 free(c)),
//     free(c) = 1 - sum over kinds of demand weight(c) / capacity(c),
//
// which is Linear Deterministic Greedy (Stanton and Kliot 2012) between two parts, but that room
// counts from half full on, and room for what the vertex asks for: `demand` is its share of each
// kind, so hubs look at edges, others at vertices and their split. Down a hierarchy it is the
// recursive multi-section on the fly of Faraj and Schulz 2022: so clusters that are close in number
// are dense, too. Rows are placed a buffer at a time, as in HeiStream (the same authors, 2022), and
// a buffer several times over: its vertices are taken out and placed again one by one, knowing
// where their neighbours were (restreaming, Nishimura and Ugander 2013).
//
// Rows are taken as they stand: of a directed graph a vertex sees the sources of its edges only.
#include <algorithm>
#include <bit>
#include <optional>

#include "espalier/base/log.hpp"
#include "espalier/base/text.hpp"
#include "espalier/partition/partition_methods.hpp"
#include "partition_pattern.hpp"

namespace espalier {

namespace {

constexpr int kPasses = 8;

// A tree over the clusters with the weights of all its nodes. Node 1 is the root, node i has the
// children 2i and 2i + 1.
class StreamingTree {
  using Demand = std::array<double, kBalances>;

 public:
  StreamingTree(int clusters, const ClusterWeights& total)
      : clusters_(clusters),
        leaves_(static_cast<int>(std::bit_ceil(static_cast<unsigned>(clusters)))),
        total_(total),
        weights_(static_cast<std::size_t>(2 * leaves_), ClusterWeights{}) {}

  /// `sign` times as much more in a cluster.
  void add(int cluster, const ClusterWeights& weights, int sign) {
    for (auto node = leaves_ + cluster; node > 0; node /= 2)
      for (std::size_t k = 0; k < kBalances; ++k) weights_[node][k] += sign * weights[k];
  }

  /// The cluster for a vertex of these weights whose neighbours are in these, ascending.
  int place(const ClusterWeights& weights, std::span<const std::uint16_t> neighbours) const {
    const auto demand = demand_of(weights);
    int node = 1, begin = 0;
    auto from = neighbours.begin(), to = neighbours.end();
    for (int size = leaves_ / 2; size > 0; size /= 2) {
      const auto middle = std::lower_bound(from, to, begin + size);
      const bool right =
          begin + size < clusters_ && goes_right(demand, node, begin, size, middle - from, to - middle);
      node = 2 * node + (right ? 1 : 0);
      begin += right ? size : 0;
      (right ? from : to) = middle;
    }
    return begin;
  }

 private:
  // From a node whose halves begin at `begin` and begin + size.
  bool goes_right(const Demand& demand, int node, int begin, int size, std::int64_t left,
                  std::int64_t right) const {
    const double left_room = room(demand, 2 * node, size),
                 right_room = room(demand, 2 * node + 1, std::min(size, clusters_ - begin - size));
    if (left_room <= 0 || right_room <= 0) return right_room > left_room;
    return (1 + static_cast<double>(right)) * std::min(1.0, 2 * right_room) >
           (1 + static_cast<double>(left)) * std::min(1.0, 2 * left_room);
  }

  // How much of each kind a vertex asks for, of all there is; their sum is 1.
  Demand demand_of(const ClusterWeights& weights) const {
    Demand demand{};
    double sum = 0;
    for (std::size_t k = 0; k < kBalances; ++k) {
      if (total_[k] > 0) demand[k] = static_cast<double>(weights[k]) / static_cast<double>(total_[k]);
      sum += demand[k];
    }
    for (auto& of_kind : demand) of_kind /= sum;
    return demand;
  }

  // The fraction that is free of a node with so many clusters; small ones may overflow by a little.
  double room(const Demand& demand, int node, int size) const {
    constexpr std::array<double, kBalances> kMore = {0.03, 0.08, 0.03, 0.08, 0.08};
    constexpr double kAtLeast = 2;
    double load = 0;
    for (std::size_t k = 0; k < kBalances; ++k) {
      if (demand[k] == 0) continue;
      const double mean = static_cast<double>(total_[k]) * size / clusters_;
      load += demand[k] * static_cast<double>(weights_[node][k]) / (mean * (1 + kMore[k]) + kAtLeast);
    }
    return 1 - load;
  }

  int clusters_, leaves_;
  ClusterWeights total_;
  std::vector<ClusterWeights> weights_;  // [2 leaves]
};

// On rank 0.
class Stream {
 public:
  Stream(const VertexPartitionTask& task, const ClusterWeights& total)
      : task_(task), tree_(task.clusters, total), cluster_(static_cast<std::size_t>(task.nodes)) {}

  /// Places the vertices of `rows`, from `first` on; those before have their places.
  void place(const Csr<std::int64_t>& rows, std::int64_t first, std::span<const ClusterWeights> weights) {
    for (int pass = 0; pass < (task_.fast ? 1 : kPasses); ++pass) {
      for (std::int64_t i = 0; i < rows.rows && pass > 0; ++i) tree_.add(cluster_[first + i], weights[i], -1);
      for (std::int64_t i = 0; i < rows.rows; ++i) {
        const auto end = pass > 0 ? first + rows.rows : first + i;  // those before have a place
        cluster_[first + i] =
            static_cast<std::uint16_t>(tree_.place(weights[i], near(rows.row_indices(i), first + i, end)));
        tree_.add(cluster_[first + i], weights[i], 1);
      }
    }
  }

  /// The cluster of every vertex, none empty.
  std::vector<std::uint16_t> finish() {
    fill_empty();
    return std::move(cluster_);
  }

 private:
  // The clusters of the neighbours of v that lie before `end`, ascending.
  std::span<const std::uint16_t> near(std::span<const std::int64_t> row, std::int64_t v, std::int64_t end) {
    near_.clear();
    for (const auto u : row)
      if (u != v && u < end) near_.push_back(cluster_[u]);
    std::ranges::sort(near_);
    return near_;
  }

  // A cluster that got nothing takes a vertex of the nearest that can spare one.
  void fill_empty() {
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(task_.clusters), 0);
    for (const auto cluster : cluster_) ++sizes[cluster];
    if (std::ranges::count(sizes, 0) == 0) return;
    std::vector<std::vector<std::int64_t>> members(sizes.size());
    for (std::int64_t v = 0; v < task_.nodes; ++v) members[cluster_[v]].push_back(v);
    for (std::int64_t empty = 0; empty < std::ssize(members); ++empty) {
      if (!members[empty].empty()) continue;
      auto& giver = members[nearest_with_two(members, empty)];
      members[empty].push_back(giver.back());
      cluster_[giver.back()] = static_cast<std::uint16_t>(empty);
      giver.pop_back();
    }
  }

  static std::int64_t nearest_with_two(const std::vector<std::vector<std::int64_t>>& members,
                                       std::int64_t from) {
    for (std::int64_t distance = 1;; ++distance)
      for (const auto cluster : {from - distance, from + distance})
        if (cluster >= 0 && cluster < std::ssize(members) && members[cluster].size() > 1) return cluster;
  }

  const VertexPartitionTask& task_;
  StreamingTree tree_;
  std::vector<std::uint16_t> cluster_;  // [n]
  std::vector<std::uint16_t> near_;
};

// Collective.
ClusterWeights total_of(const VertexPartitionTask& task) {
  ClusterWeights total{};
  for (const auto& weights : task.weights) total += weights;
  task.world.all_reduce(std::span<std::int64_t>(total), Reduction::kSum, "order");
  return total;
}

}  // namespace

Buffer<std::uint16_t> partition_by_streaming(const VertexPartitionTask& task) {
  const bool mine = task.world.rank() == 0;
  const auto buffers = std::min(task.nodes, 1 + task.edges / task.entries_per_buffer);
  const auto total = total_of(task);
  log::info("streaming  {} of some {}; on rank 0 about {} MB", counted(buffers, "buffer"),
            counted(task.nodes / buffers, "row"),
            (task.nodes * 2 + (task.edges * 8 + task.nodes * 56) / buffers + 80 * task.clusters) / 1'000'000);
  std::uint64_t one_way = 0;
  std::vector<std::uint16_t> all;
  std::optional<Stream> stream;
  if (mine) stream.emplace(task, total);
  for (std::int64_t buffer = 0; buffer < buffers; ++buffer) {
    const auto range = even_range(task.nodes, buffers, buffer);
    const auto rows = task.read_rows(range.begin, mine ? range.end : range.begin);
    const auto weights = gather_weights(task, range);
    if (mine) stream->place(rows, range.begin, weights);
    one_way += asymmetry_of(rows, range.begin);
  }
  if (task.world.all_reduce(one_way, Reduction::kSum, "order") != 0)
    log::info("the graph is directed: a vertex was placed by the sources of its edges, not by their targets");
  if (mine) all = stream->finish();
  return scatter_clusters(task, all);
}

}  // namespace espalier
