// Refinement of the multilevel method: vertices propose better clusters, and of those moves the
// ones are made that keep every part of every scale within its limits.
#include "multilevel.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "espalier/base/host_device.hpp"
#include "level_graph.hpp"

namespace espalier {

namespace {

// ---- which moves are made ----
//
// Which of the moves that vertices propose in a round of refinement are made: those of the largest
// gains, down to a gain and a hash up to which all of them fit into the parts that they enter. A
// part counts all that would enter it, whatever becomes of it elsewhere, and nothing that leaves;
// so limits hold exactly, and each part decides for itself.

// Collective. The sum over ranks.
void add_up(const Communicator& comm, std::vector<ClusterWeights>& weights) {
  if (weights.empty()) return;  // on all ranks
  comm.all_reduce(std::span<std::int64_t>(weights[0].data(), weights.size() * weights[0].size()),
                  Reduction::kSum, "partition");
}

// What is in, or enters, each part of each scale: [tree.nodes()].
using PartWeights = std::vector<ClusterWeights>;

// A vertex that would go to another cluster.
struct Move {
  std::int64_t vertex;  // its place
  ClusterWeights weight;
  std::uint16_t from, to;  // codes
  std::int64_t gain;       // by how much the price falls; below 0 only when forced
  std::uint64_t hash;      // in what order moves of like gains are admitted
  std::int32_t forced;     // the part above its limit that sends the vertex away, or 0
};

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

// Collective. Of `moves`, every rank its own, those that are made, in their order. `weights`: of
// the parts as they are. Of those that are forced out of a part only as many as it takes.
std::vector<Move> admit_moves(const Communicator& comm, const ClusterTree& tree, const PartWeights& limits,
                              const PartWeights& weights, const std::vector<Move>& moves) {
  return Admission(comm, tree, limits, weights, moves).run();
}

// ---- which are proposed ----

constexpr int kMostCaution = 3;

class Refinement {
 public:
  Refinement(const Communicator& comm, const LevelGraph& graph, const ClusterTree& tree,
             const RefinementOptions& options, const Buffer<std::uint16_t>& codes)
      : comm_(comm),
        graph_(graph),
        tree_(tree),
        options_(options),
        codes_(codes.begin(), codes.end()),
        connected_(tree.nodes()),
        attraction_(static_cast<std::size_t>(tree.nodes())) {
    codes_.resize(graph.places());
    graph_.fill_ghosts(comm_, codes_, "partition");
    weigh();
  }

  ClusteringState state() const {
    std::int64_t price = 0;
    for (std::int64_t v = 0; v < graph_.own(); ++v)
      for (auto e = graph_.indptr[v]; e < graph_.indptr[v + 1]; ++e)
        price += graph_.weights[e] * tree_.price_between(codes_[v], codes_[graph_.neighbours[e]]);
    return {comm_.all_reduce(price, Reduction::kSum, "partition") / 2, excess()};
  }

  ClusteringState run(Buffer<std::uint16_t>& codes) {
    auto best = state();
    int idle = 0;
    for (int round = 0; round < options_.rounds && idle < 2; ++round) {
      const auto before = codes_;
      const auto weights_before = weights_;
      const auto moved = step(round);
      const auto now = state();
      const bool better = now.excess != best.excess ? now.excess < best.excess : now.price < best.price;
      if (better || moved == 0 || caution_ == kMostCaution) idle = better && worth(best, now) ? 0 : idle + 1;
      if (better) {
        best = now;
      } else {
        codes_ = before, weights_ = weights_before;
        caution_ = std::min(caution_ + (moved > 0), kMostCaution);
      }
    }
    codes.assign(codes_.begin(), codes_.begin() + graph_.own());
    return best;
  }

 private:
  std::uint64_t hash(std::int64_t round, std::int64_t id) const {
    return absorb(absorb(mix(options_.seed), round), id);
  }

  // Has a round won enough to go on?
  static bool worth(const ClusteringState& before, const ClusteringState& now) {
    return now.excess < before.excess || before.price - now.price > before.price / 1000;
  }

  void weigh() {
    weights_.assign(static_cast<std::size_t>(tree_.nodes()), {});
    for (std::int64_t v = 0; v < graph_.own(); ++v)
      for (int depth = 0; depth <= tree_.depth(); ++depth)
        weights_[tree_.node(codes_[v], depth)] += graph_.vertex_weights[v];
    add_up(comm_, weights_);
  }

  std::int64_t excess() const {
    std::int64_t excess = 0;
    for (std::size_t node = 1; node < weights_.size(); ++node)
      for (std::size_t kind = 0; kind < kBalanceNames.size(); ++kind)
        excess += std::max<std::int64_t>(weights_[node][kind] - options_.limits[node][kind], 0);
    return excess;
  }

  // The first part on the way down to a vertex's cluster that weighs too much of what it
  // has; 0: none.
  int crowded_part(std::int64_t vertex) const {
    for (int depth = 1; depth <= tree_.depth(); ++depth) {
      const int node = tree_.node(codes_[vertex], depth);
      for (std::size_t kind = 0; kind < kBalanceNames.size(); ++kind)
        if (weights_[node][kind] > options_.limits[node][kind] && graph_.vertex_weights[vertex][kind] > 0)
          return node;
    }
    return 0;
  }

  bool has_room(std::int64_t vertex, int to) const {
    for (int depth = tree_.parting(codes_[vertex], to); depth <= tree_.depth(); ++depth) {
      const int node = tree_.node(to, depth);
      if (!fits(weights_[node], graph_.vertex_weights[vertex], options_.limits[node])) return false;
    }
    return true;
  }

  // The weight of a vertex's edges into each cluster and into each part above one; and for each of
  // them the sum over itself and the parts above: how much of the edges it keeps inside, over all
  // scales, by their weights. Parts are met depth by depth, so each is complete before it is added
  // to the one above.
  void connect(std::int64_t vertex) {
    connected_.clear();
    for (auto e = graph_.indptr[vertex]; e < graph_.indptr[vertex + 1]; ++e)
      connected_.add(tree_.node(codes_[graph_.neighbours[e]], tree_.depth()), graph_.weights[e]);
    const auto& met = connected_.touched();
    met_clusters_ = met.size();
    for (std::size_t k = 0; k < met.size(); ++k)
      if (met[k] > 1) connected_.add(met[k] / 2, connected_[met[k]]);
    for (auto k = met.size(); k-- > 0;)
      attraction_[met[k]] =
          met[k] > 1 ? attraction_[met[k] / 2] + tree_.scale_weight(met[k]) * connected_[met[k]] : 0;
  }

  std::int64_t attraction(int code) const {
    auto node = tree_.node(code, tree_.depth());
    while (node > 1 && connected_[node] == 0) node /= 2;
    return node > 1 ? attraction_[node] : 0;
  }

  bool leaves(int code, int part) const {
    if (part == 0) return true;
    const int depth = std::bit_width(static_cast<unsigned>(part)) - 1;
    return tree_.node(code, depth) != part;
  }

  struct Choice {
    int to = -1;
    std::int64_t gain = 0;
    std::uint64_t tie = 0;
  };

  void consider(std::int64_t vertex, int to, std::int64_t gain, std::uint64_t tie, Choice& best) const {
    if (best.to >= 0 && (gain < best.gain || (gain == best.gain && tie <= best.tie))) return;
    if (has_room(vertex, to)) best = {to, gain, tie};
  }

  // The best cluster to go to; when a crowded part must be left, also at a loss, and also one of
  // some that a hash names.
  Choice choose(std::int64_t vertex, int crowded, std::uint64_t word) {
    connect(vertex);
    const auto here = attraction(codes_[vertex]);
    Choice best;
    for (std::size_t k = 0; k < met_clusters_; ++k) {
      const auto leaf = connected_.touched()[k];
      const int to = static_cast<int>(leaf) - (1 << tree_.depth());
      if (to == codes_[vertex] || !leaves(to, crowded)) continue;
      const auto gain = attraction_[leaf] - here;
      if (gain > 0 || crowded != 0) consider(vertex, to, gain, absorb(word, to), best);
    }
    for (int guess = 0; crowded != 0 && guess < 4; ++guess) {
      const auto draw = absorb(word, -1 - guess) >> 33;
      const int to = tree_.code(static_cast<int>(draw % static_cast<std::uint64_t>(tree_.clusters())));
      if (leaves(to, crowded)) consider(vertex, to, attraction(to) - here, absorb(word, to), best);
    }
    return best;
  }

  std::vector<Move> proposals(int round) {
    std::vector<Move> moves;
    for (std::int64_t v = 0; v < graph_.own(); ++v) {
      const auto word = hash(round, graph_.id(v));
      if (word % (1U << caution_) != 0) continue;
      const int crowded = crowded_part(v);
      const auto choice = choose(v, crowded, word);
      if (choice.to < 0) continue;
      moves.push_back({v, graph_.vertex_weights[v], codes_[v], static_cast<std::uint16_t>(choice.to),
                       choice.gain, word, choice.gain > 0 ? 0 : crowded});
    }
    return moves;
  }

  // One round; returns how many vertices moved.
  std::int64_t step(int round) {
    const auto moves = proposals(round);
    PartWeights change(weights_.size(), ClusterWeights{});
    const auto admitted = admit_moves(comm_, tree_, options_.limits, weights_, moves);
    for (const auto& move : admitted) {
      for (int depth = tree_.parting(move.from, move.to); depth <= tree_.depth(); ++depth) {
        change[tree_.node(move.from, depth)] -= move.weight;
        change[tree_.node(move.to, depth)] += move.weight;
      }
      codes_[move.vertex] = move.to;
    }
    add_up(comm_, change);
    for (std::size_t node = 0; node < change.size(); ++node) weights_[node] += change[node];
    graph_.fill_ghosts(comm_, codes_, "partition");
    return comm_.all_reduce(static_cast<std::int64_t>(admitted.size()), Reduction::kSum, "partition");
  }

  const Communicator& comm_;
  const LevelGraph& graph_;
  const ClusterTree& tree_;
  const RefinementOptions& options_;
  Buffer<std::uint16_t> codes_;      // [places]
  PartWeights weights_;              // what is in every part of every scale
  int caution_ = 1;                  // one of 2^caution_ vertices may move in a round
  Tally connected_;                  // by node of the tree
  std::size_t met_clusters_ = 0;     // how many come first in connected_
  Buffer<std::int64_t> attraction_;  // [nodes] where connected_ says something
};

}  // namespace

std::vector<ClusterWeights> part_limits(const Communicator& comm, const LevelGraph& graph,
                                        const ClusterTree& tree) {
  const auto total = total_weights(comm, graph);
  ClusterWeights heaviest{};
  for (const auto& weight : graph.vertex_weights)
    for (std::size_t kind = 0; kind < weight.size(); ++kind)
      heaviest[kind] = std::max(heaviest[kind], weight[kind]);
  comm.all_reduce(std::span<std::int64_t>(heaviest), Reduction::kMax, "partition");
  constexpr ClusterWeights kSlack = {3, 12, 3, 2, 2};  // hundredths, of parts of few ranks
  std::vector<ClusterWeights> limits(static_cast<std::size_t>(tree.nodes()), ClusterWeights{});
  for (int node = 1; node < tree.nodes(); ++node) {
    const int depth = std::bit_width(static_cast<unsigned>(node)) - 1;
    for (std::size_t kind = 0; kind < total.size(); ++kind) {
      const auto share = (total[kind] * tree.clusters_below(node) + tree.clusters() - 1) / tree.clusters();
      auto slack = share * (kSlack[kind] << std::max(0, (depth - 3) / 2)) / 100 + 1;
      if (depth > 3) slack = std::max(slack, heaviest[kind]);
      limits[static_cast<std::size_t>(node)][kind] = share + slack;
    }
  }
  return limits;
}

ClusteringState refine_clusters(const Communicator& comm, const LevelGraph& graph, const ClusterTree& tree,
                                const RefinementOptions& options, Buffer<std::uint16_t>& codes) {
  return Refinement(comm, graph, tree, options, codes).run(codes);
}

}  // namespace espalier
