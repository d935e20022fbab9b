#include "admit_moves.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace espalier {

namespace {

constexpr int kBuckets = 128, kOrders = 32;
constexpr std::size_t kMostInQueues = std::size_t{1} << 20;  // of queues

// 0 is admitted first: large gains, then small ones, small losses, large losses.
std::int32_t bucket_of(const Move& move) {
  const int width = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(std::abs(move.gain))));
  const int size = std::min(width, 15), part = static_cast<int>(move.hash >> 62), half = kBuckets / 2;
  return move.gain > 0 ? half - 1 - 4 * size - part : half + 4 * size + part;
}

// Within a bucket.
std::int32_t order_of(const Move& move) {
  return static_cast<std::int32_t>(move.hash >> 52) % kOrders;
}

// What moves into, or out of, some parts bring, bucket by bucket.
struct Queues {
  std::vector<std::int32_t> place;  // [nodes] of a part among those that are queued for; or -1
  int buckets;
  std::vector<ClusterWeights> weights;  // [queued parts * buckets]

  Queues(int nodes, const std::vector<int>& parts, int count)
      : place(static_cast<std::size_t>(nodes), -1),
        buckets(count),
        weights(parts.size() * static_cast<std::size_t>(count), ClusterWeights{}) {
    for (std::size_t k = 0; k < parts.size(); ++k) place[parts[k]] = static_cast<std::int32_t>(k);
  }
  ClusterWeights& at(int part, int bucket) {
    return weights[static_cast<std::size_t>(place[part]) * buckets + bucket];
  }
  void add(int part, int bucket, const ClusterWeights& weight) {
    if (place[part] >= 0) at(part, bucket) += weight;
  }
  // How many buckets fit, one after the other, on top of `load`, which they are added to.
  int count_fitting(int part, ClusterWeights& load, const ClusterWeights& limit) {
    int bucket = 0;
    for (; bucket < buckets && fits(load, at(part, bucket), limit); ++bucket) load += at(part, bucket);
    return bucket;
  }
};

// So many neighbouring buckets are one, lest queues take too much memory.
int merged_buckets(std::size_t parts) {
  int merged = 1;
  while (parts * static_cast<std::size_t>(kBuckets / merged) > kMostInQueues && merged < 16) merged *= 2;
  return merged;
}

// For every part the first bucket, and in it the first of the order, that may not enter it.
struct Closing {
  explicit Closing(std::size_t nodes) : bucket(nodes, kBuckets), order(nodes, 0) {}
  std::vector<std::int32_t> bucket, order;  // [nodes]
};

class Admission {
 public:
  Admission(const Communicator& comm, const ClusterTree& tree, const PartWeights& limits,
            const PartWeights& weights, const std::vector<Move>& moves)
      : comm_(comm), tree_(tree), limits_(limits), weights_(weights), moves_(moves) {}

  std::vector<Move> run() const {
    const auto closed = closing();
    const auto enough = sufficing();
    std::vector<Move> admitted;
    for (const auto& move : moves_)
      if (admits(move, closed, enough)) admitted.push_back(move);
    return admitted;
  }

 private:
  // Calls visit(part) for the parts that a move enters.
  template <class Visit>
  void for_each_entered(const Move& move, Visit visit) const {
    for (int depth = tree_.parting(move.from, move.to); depth <= tree_.depth(); ++depth)
      visit(tree_.node(move.to, depth));
  }

  // The parts that more would move into than fits.
  std::vector<int> contested_parts() const {
    PartWeights come(weights_.size(), ClusterWeights{});
    for (const auto& move : moves_) for_each_entered(move, [&](int part) { come[part] += move.weight; });
    add_up(comm_, come);
    std::vector<int> contested;
    for (int node = 0; node < tree_.nodes(); ++node)
      if (!fits(weights_[node], come[node], limits_[node])) contested.push_back(node);
    return contested;
  }

  Closing closing() const {
    Closing closing(static_cast<std::size_t>(tree_.nodes()));
    const auto contested = contested_parts();
    auto loads = weights_;
    const int merged = merged_buckets(contested.size());
    Queues come(tree_.nodes(), contested, kBuckets / merged);
    for (const auto& move : moves_)
      for_each_entered(move, [&](int part) { come.add(part, bucket_of(move) / merged, move.weight); });
    add_up(comm_, come.weights);
    for (const int part : contested)
      closing.bucket[part] = merged * come.count_fitting(part, loads[part], limits_[part]);
    if (merged == 1) close_within(contested, loads, closing);
    return closing;
  }

  // Of the first bucket that does not fit as a whole, what does; loads: with those before.
  void close_within(const std::vector<int>& contested, PartWeights& loads, Closing& closing) const {
    Queues come(tree_.nodes(), contested, kOrders);
    for (const auto& move : moves_)
      for_each_entered(move, [&](int part) {
        if (bucket_of(move) == closing.bucket[part]) come.add(part, order_of(move), move.weight);
      });
    add_up(comm_, come.weights);
    for (const int part : contested)
      closing.order[part] = come.count_fitting(part, loads[part], limits_[part]);
  }

  // For every crowded part the first bucket that need not leave it.
  std::vector<std::int32_t> sufficing() const {
    std::vector<int> crowded;
    for (int node = 1; node < tree_.nodes(); ++node)
      if (is_crowded(node, weights_[node])) crowded.push_back(node);
    const int merged = merged_buckets(crowded.size());
    Queues go(tree_.nodes(), crowded, kBuckets / merged);
    for (const auto& move : moves_)
      if (move.forced != 0) go.add(move.forced, bucket_of(move) / merged, move.weight);
    add_up(comm_, go.weights);
    std::vector<std::int32_t> sufficing(static_cast<std::size_t>(tree_.nodes()), 0);
    for (const int part : crowded) {
      auto load = weights_[part];
      int bucket = 0;
      for (; bucket < go.buckets && is_crowded(part, load); ++bucket) load -= go.at(part, bucket);
      sufficing[part] = bucket * merged;
    }
    return sufficing;
  }

  bool is_crowded(int node, const ClusterWeights& load) const {
    for (std::size_t kind = 0; kind < load.size(); ++kind)
      if (load[kind] > limits_[node][kind]) return true;
    return false;
  }

  bool admits(const Move& move, const Closing& closing, const std::vector<std::int32_t>& sufficing) const {
    bool admitted = move.forced == 0 || bucket_of(move) < sufficing[move.forced];
    for_each_entered(move, [&](int part) {
      const auto last = closing.bucket[part];
      admitted = admitted && (bucket_of(move) < last ||
                              (bucket_of(move) == last && order_of(move) < closing.order[part]));
    });
    return admitted;
  }

  const Communicator& comm_;
  const ClusterTree& tree_;
  const PartWeights& limits_;
  const PartWeights& weights_;
  const std::vector<Move>& moves_;
};

}  // namespace

void add_up(const Communicator& comm, std::vector<ClusterWeights>& weights) {
  if (weights.empty()) return;  // on all ranks
  comm.all_reduce(std::span<std::int64_t>(weights[0].data(), weights.size() * weights[0].size()),
                  Reduction::kSum, "partition");
}

std::vector<Move> admit_moves(const Communicator& comm, const ClusterTree& tree, const PartWeights& limits,
                              const PartWeights& weights, const std::vector<Move>& moves) {
  return Admission(comm, tree, limits, weights, moves).run();
}

}  // namespace espalier
