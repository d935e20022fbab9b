// The clusters of an order by our own multilevel method, distributed: the graph is made coarser,
// A_c = P^T A P with exact integer weights, until it is small; METIS cuts the coarsest graph; on
// the way back vertices move to better clusters. For graphs that one process or METIS's 32 bits
// cannot hold. The result is the same for every number of ranks.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "espalier/comm/communicator.hpp"
#include "espalier/partition/order.hpp"
#include "espalier/sparse/csr.hpp"
#include "level_graph.hpp"

namespace espalier {

// The hierarchy of clusters: a sequence is halved, its halves are halved, down to single clusters.
// A cluster's code is its way down, a bit for each depth, first half 0; where nothing is left
// to halve the way goes on with 0. Two clusters part at the depth of the first bit in which
// their codes differ. Node 2^d + c is the part of depth d that codes beginning with c are in;
// node 1 is all.

class ClusterTree {
 public:
  explicit ClusterTree(int clusters) : depth_(std::bit_width(static_cast<unsigned>(clusters - 1))) {
    count_.assign(std::size_t{2} << depth_, 0);
    count_[1] = clusters;
    for (std::size_t node = 1; node < (std::size_t{1} << depth_); ++node) {
      count_[2 * node] = count_[node] - count_[node] / 2;
      count_[2 * node + 1] = count_[node] / 2;
    }
    number_.assign(std::size_t{1} << depth_, -1);
    for (int code = 0; code < (1 << depth_); ++code)
      if (count_[node(code, depth_)] > 0) {
        number_[code] = static_cast<int>(code_.size());
        code_.push_back(static_cast<std::uint16_t>(code));
      }
  }

  int clusters() const { return static_cast<int>(code_.size()); }
  int depth() const { return depth_; }
  int nodes() const { return 2 << depth_; }
  /// The clusters below a node.
  int clusters_below(int node) const { return count_[node]; }
  std::uint16_t code(int cluster) const { return code_[cluster]; }
  /// The cluster with this code; codes and clusters ascend together.
  int cluster(int code) const { return number_[code]; }
  int node(int code, int depth) const { return (1 << depth) + (code >> (depth_ - depth)); }
  /// What a cut at the scale of a node counts: up to 32 parts, what most grids have, twice.
  int scale_weight(std::int64_t node) const { return node < (2 << kDoubled) ? 2 : 1; }
  /// What an edge between two clusters costs: the weights of the scales at which they are in
  /// different parts.
  int price_between(int a, int b) const {
    const int first = parting(a, b);
    return depth_ + 1 - first + std::max(std::min(kDoubled, depth_) + 1 - first, 0);
  }
  /// The first depth at which two codes are in different nodes; depth() + 1 for equal ones.
  int parting(int a, int b) const { return depth_ + 1 - std::bit_width(static_cast<unsigned>(a ^ b)); }

 private:
  static constexpr int kDoubled = 5;  // depths
  int depth_;
  std::vector<int> count_;           // [nodes]
  std::vector<int> number_;          // [2^depth]
  std::vector<std::uint16_t> code_;  // [clusters]
};

struct MultilevelOptions {
  int clusters = 1024;  ///< in [1, kMostClusters]
  std::uint64_t seed = 0;
  std::int64_t coarsest = 20000;  ///< vertices at which coarsening ends, or thereabouts
  int rounds = 16;                ///< of refinement on each level, at most
};

/// Collective. The cluster of each of my rows, numbered from 0 without a gap; clusters close in
/// number are densely connected at every scale. `rows`: even_range(n, comm.size(), comm.rank()) of
/// the n x n pattern, symmetric, columns ascending, without loops; values are not looked at.
/// `weights` [rows]: what each vertex counts for in every kind of balance. At most options.clusters
/// clusters, balanced in every kind, parts of a half, a quarter and an eighth of them tightly.
/// UserError(kUsage) on every rank when the program was built without METIS.
std::vector<std::uint16_t> cluster_by_multilevel(const Communicator& comm, Csr<std::int64_t> rows,
                                                 Buffer<ClusterWeights> weights,
                                                 const MultilevelOptions& options);

// Which vertices of a level become one vertex of the next: size-constrained label propagation
// (Meyerhenke, Sanders, Schulz: Partitioning complex networks via size-constrained clustering,
// 2014), in synchronous rounds. A matching would stall on the stars of power-law graphs.
//
// Each vertex begins with its own id as its label. In a round half of the labels give and half
// receive, by a hash; a vertex whose label gives asks for the receiving label it is most heavily
// connected with, if more than with its own. The owner of a label admits those who ask, heaviest
// first, while they fit. Vertices that stay alone join others that would have gone to the same
// label (two-hop: leaves of a star whose centre is full), those without edges any other such. All
// of it depends on the last round's state, on integers and on hashes, so on no number of ranks.

struct ClusteringOptions {
  ClusterWeights limit{};  ///< of a label with more than one vertex, exact
  std::uint64_t seed = 0;
  int rounds = 8;
};

/// Collective. The label of each own vertex: the id of a vertex.
Buffer<std::int64_t> cluster_vertices(const Communicator& comm, const LevelGraph& graph,
                                      const ClusteringOptions& options);

// The next coarser level: A_c = P^T A P, where P(v, c) = 1 when vertex v becomes part of vertex c.
// The entries of a rank's rows, renamed and added up, travel to the owners of their coarse rows,
// which add up what comes from all ranks: int64 sums, so there is one result. The diagonal, the
// edges inside of coarse vertices, is taken out and its sum kept.

struct Contraction {
  LevelGraph coarse;
  Buffer<std::int64_t> parent;  ///< [own] the coarse id of each own vertex of the fine level
};

/// Collective. `labels` [own]: vertices with equal labels, ids of the level, become one. Coarse ids
/// ascend with the labels, whatever the number of ranks.
Contraction contract(const Communicator& comm, const LevelGraph& fine, const Buffer<std::int64_t>& labels);

// The clusters of the coarsest level, found on rank 0: bisections by METIS down the tree of
// clusters. Of two halves that comes first which is connected more with what lies before.

/// Collective. The code (ClusterTree) of each own vertex. UserError on every rank: kUsage without
/// METIS, kMemory where METIS runs short of it or there are 2^31 entries.
Buffer<std::uint16_t> partition_coarsest(const Communicator& comm, const LevelGraph& graph,
                                         const ClusterTree& tree, std::uint64_t seed);

// Better clusters for one level: vertices move to clusters that they are more connected with, at
// all scales at once. The price of an edge is the number of scales (2, 4, 8, ... parts: depths of
// the tree of clusters) at which its ends are in different parts, those of few parts counted twice.
// So the price of a clustering is the weighted sum of the cuts of all scales, and clusters that are
// close in number attract each other.
//
// Synchronous rounds. A vertex proposes, from the state of the last round, the move that lowers its
// price most and for which there is room in every part that it would enter. Of the moves into a
// part those of the largest gains are accepted, down to a gain (and a hash) up to which all of them
// fit: so a limit holds exactly, whoever else moves. Parts above their limits send vertices away,
// also at a loss. Only half of the vertices may move in a round, as neighbours that change places
// win nothing; a round that leaves more above the limits, or as much at a higher price, is taken
// back, and the next ones move fewer. Integers and hashes decide, so the result is the same for
// every number of ranks.

/// How good a clustering is.
struct ClusteringState {
  std::int64_t price = 0;   ///< sum over edges, each once, of weight times price_between
  std::int64_t excess = 0;  ///< weight above limits, over all parts and kinds
};

struct RefinementOptions {
  std::vector<ClusterWeights> limits;  ///< [tree.nodes()]
  std::uint64_t seed = 0;
  int rounds = 16;
};

/// Collective. The most that each part of each scale may weigh: its share of all, and more the
/// smaller it is; [tree.nodes()].
std::vector<ClusterWeights> part_limits(const Communicator& comm, const LevelGraph& graph,
                                        const ClusterTree& tree);

/// Collective. Improves codes [own], each a cluster's code; returns what came out. The excess does
/// not grow, nor does the price unless the excess falls; in no rounds nothing changes.
ClusteringState refine_clusters(const Communicator& comm, const LevelGraph& graph, const ClusterTree& tree,
                                const RefinementOptions& options, Buffer<std::uint16_t>& codes);

}  // namespace espalier
