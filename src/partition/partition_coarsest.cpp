// The coarsest graph in clusters: METIS halves it on rank 0, down a tree.
#include "multilevel.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#ifdef ESPALIER_WITH_METIS
#include <metis.h>
#endif

#include "espalier/base/error.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/base/process.hpp"
#include "espalier/comm/communicator.hpp"
#include "partition_pattern.hpp"

namespace espalier {

namespace {

constexpr std::int64_t kMostEntries = std::int64_t{1} << 22;  // for METIS

// A symmetric graph without loops.
struct SmallGraph {
  Buffer<std::int64_t> indptr = Buffer<std::int64_t>(1, 0);  // [nodes + 1]
  Buffer<std::int32_t> neighbours;                           // [entries]
  Buffer<std::int64_t> weights;                              // [entries] > 0
  Buffer<ClusterWeights> vertex_weights;                     // [nodes]

  std::int64_t nodes() const { return static_cast<std::int64_t>(indptr.size()) - 1; }
};

struct BisectionOptions {
  double first_share = 0.5;                              // of the first part, of every kind
  std::array<double, kBalanceNames.size()> tolerance{};  // a part over its share, at most: 1.01
  int tries = 1;                                         // cuts, of which the best is taken
  std::uint64_t seed = 0;
};

// ---- METIS (Karypis, Kumar 1998), with every kind of weight balanced ----

#ifdef ESPALIER_WITH_METIS

constexpr std::int64_t kMostTotal = std::int64_t{1} << 30;

// Divides by a power of two, so that a sum stays below 2^30; what was there is at least 1.
class Scale {
 public:
  explicit Scale(std::int64_t total) {
    while (total >> shift_ > kMostTotal) ++shift_;
  }
  idx_t operator()(std::int64_t weight) const {
    const auto scaled = weight >> shift_;
    return static_cast<idx_t>(scaled == 0 && weight > 0 ? 1 : scaled);
  }

 private:
  int shift_ = 0;
};

// METIS's names for a graph, at its width.
struct MetisGraph {
  std::vector<idx_t> indptr, neighbours, weights, vertex_weights;
  std::vector<std::size_t> kinds;  // those of which there is something
};

MetisGraph metis_graph(const SmallGraph& graph) {
  MetisGraph metis;
  metis.indptr.assign(graph.indptr.begin(), graph.indptr.end());
  metis.neighbours.assign(graph.neighbours.begin(), graph.neighbours.end());
  std::int64_t total = 0;
  for (const auto weight : graph.weights) total += weight;
  const Scale scale(total);
  for (const auto weight : graph.weights) metis.weights.push_back(scale(weight));
  ClusterWeights totals{};
  for (const auto& weight : graph.vertex_weights) totals += weight;
  for (std::size_t kind = 0; kind < totals.size(); ++kind)
    if (totals[kind] > 0) metis.kinds.push_back(kind);
  for (const auto& weight : graph.vertex_weights)
    for (const auto kind : metis.kinds) metis.vertex_weights.push_back(Scale(totals[kind])(weight[kind]));
  return metis;
}

// The part, 0 or 1, of each vertex. Weights that METIS's 32 bits do not hold are scaled down, so
// balance is then near. UserError(kUsage) without METIS, UserError(kMemory) for 2^31 entries.
std::vector<std::uint8_t> metis_bisect(const SmallGraph& graph, const BisectionOptions& options) {
  if (graph.indptr.back() > std::numeric_limits<idx_t>::max())
    memory_error("METIS counts to 2^31: the coarsest graph has {} entries", graph.indptr.back());
  auto metis = metis_graph(graph);
  auto nodes = static_cast<idx_t>(graph.nodes()), kinds = static_cast<idx_t>(metis.kinds.size());
  if (nodes < 2 || kinds == 0) return std::vector<std::uint8_t>(static_cast<std::size_t>(nodes), 0);
  std::vector<real_t> shares, tolerance;
  for (const double share : {options.first_share, 1 - options.first_share})
    shares.insert(shares.end(), metis.kinds.size(), static_cast<real_t>(share));
  for (const auto kind : metis.kinds) tolerance.push_back(static_cast<real_t>(options.tolerance[kind]));
  idx_t asked[METIS_NOPTIONS];
  METIS_SetDefaultOptions(asked);
  asked[METIS_OPTION_SEED] = static_cast<idx_t>(options.seed >> 34);
  asked[METIS_OPTION_NCUTS] = options.tries;
  std::vector<idx_t> part(static_cast<std::size_t>(nodes));
  idx_t parts = 2, cut = 0;
  const int answer = METIS_PartGraphRecursive(
      &nodes, &kinds, metis.indptr.data(), metis.neighbours.data(), metis.vertex_weights.data(), nullptr,
      metis.weights.data(), &parts, shares.data(), tolerance.data(), asked, &cut, part.data());
  if (answer == METIS_ERROR_MEMORY) memory_error("METIS ran out of memory on {} vertices", nodes);
  ESPALIER_CHECK(answer == METIS_OK, "METIS answers {}", answer);
  return {part.begin(), part.end()};
}

#else

std::vector<std::uint8_t> metis_bisect(const SmallGraph&, const BisectionOptions&) {
  usage_error("this program was built without METIS: install libmetis-dev and build it again");
}

#endif

// ---- the coarsest graph ----

// An entry of it.
struct HeavyEntry {
  std::int32_t row, column;
  std::int64_t weight;
};

// The heaviest entries of a row, `most` of them, ties by a hash that both ends of an edge know.
void keep_heaviest(std::vector<HeavyEntry>& row, std::int64_t most) {
  if (static_cast<std::int64_t>(row.size()) <= most) return;
  const auto tie = [](const HeavyEntry& e) {
    return absorb(mix(static_cast<std::uint64_t>(std::min(e.row, e.column))), std::max(e.row, e.column));
  };
  std::nth_element(row.begin(), row.begin() + most, row.end(), [&](const HeavyEntry& a, const HeavyEntry& b) {
    return a.weight != b.weight ? a.weight > b.weight : tie(a) < tie(b);
  });
  row.resize(static_cast<std::size_t>(most));
}

Buffer<HeavyEntry> heavy_entries(const LevelGraph& graph, std::int64_t most_of_a_row) {
  Buffer<HeavyEntry> kept;
  std::vector<HeavyEntry> row;
  for (std::int64_t v = 0; v < graph.own(); ++v) {
    row.clear();
    for (auto e = graph.indptr[v]; e < graph.indptr[v + 1]; ++e)
      row.push_back({static_cast<std::int32_t>(graph.id(v)),
                     static_cast<std::int32_t>(graph.id(graph.neighbours[e])), graph.weights[e]});
    keep_heaviest(row, most_of_a_row);
    kept.insert(kept.end(), row.begin(), row.end());
  }
  return kept;
}

// The graph on rank 0; of one with very many edges only those that are among the heaviest of one
// of their ends.
SmallGraph gather_graph(const Communicator& comm, const LevelGraph& graph) {
  const auto all = comm.all_reduce(graph.indptr[graph.own()], Reduction::kSum, "partition");
  const bool dense = all > kMostEntries;
  auto entries = gather<HeavyEntry>(
      comm, heavy_entries(graph, dense ? kMostEntries / (2 * graph.nodes) : all), "partition");
  if (dense) {  // both directions of what one end has kept
    const auto kept = entries.size();
    for (std::size_t k = 0; k < kept; ++k)
      entries.push_back({entries[k].column, entries[k].row, entries[k].weight});
  }
  std::ranges::sort(entries, {}, [](const HeavyEntry& entry) { return std::pair(entry.row, entry.column); });
  SmallGraph small;
  small.vertex_weights = gather<ClusterWeights>(comm, graph.vertex_weights, "partition");
  small.indptr.assign(small.vertex_weights.size() + 1, 0);
  const HeavyEntry* last = nullptr;
  for (const auto& entry : entries) {
    if (last != nullptr && last->row == entry.row && last->column == entry.column) continue;
    last = &entry;
    ++small.indptr[entry.row + 1];
    small.neighbours.push_back(entry.column);
    small.weights.push_back(entry.weight);
  }
  for (std::size_t v = 1; v < small.indptr.size(); ++v) small.indptr[v] += small.indptr[v - 1];
  return small;
}

// Halves the vertices of a node of the tree, again and again.
class Halving {
 public:
  Halving(const SmallGraph& graph, const ClusterTree& tree, std::uint64_t seed)
      : graph_(&graph), tree_(&tree), seed_(seed), code_(graph.nodes(), 0), nodes_(1) {
    for (std::int64_t v = 0; v < graph.nodes(); ++v) nodes_[0].push_back(static_cast<std::int32_t>(v));
  }

  void halve_down_to(int depth) {
    place_.assign(static_cast<std::size_t>(graph_->nodes()), -1);
    for (; depth_ < std::min(depth, tree_->depth()); ++depth_) {
      std::vector<std::vector<std::int32_t>> halves;
      for (const auto& vertices : nodes_) halve(vertices, halves);
      nodes_ = std::move(halves);
    }
  }

  std::int64_t price() const {
    std::int64_t price = 0;
    for (std::int64_t v = 0; v < graph_->nodes(); ++v)
      for (auto e = graph_->indptr[v]; e < graph_->indptr[v + 1]; ++e)
        price += graph_->weights[e] * tree_->price_between(code_[v], code_[graph_->neighbours[e]]);
    return price;
  }

  const Buffer<std::uint16_t>& codes() const { return code_; }

 private:
  // The graph between some of the vertices.
  SmallGraph between(const std::vector<std::int32_t>& vertices) {
    SmallGraph part;
    for (std::size_t k = 0; k < vertices.size(); ++k) place_[vertices[k]] = static_cast<std::int32_t>(k);
    for (const auto v : vertices) {
      for (auto e = graph_->indptr[v]; e < graph_->indptr[v + 1]; ++e) {
        const auto place = place_[graph_->neighbours[e]];
        if (place < 0) continue;
        part.neighbours.push_back(place);
        part.weights.push_back(graph_->weights[e]);
      }
      part.indptr.push_back(static_cast<std::int64_t>(part.neighbours.size()));
      part.vertex_weights.push_back(graph_->vertex_weights[v]);
    }
    for (const auto v : vertices) place_[v] = -1;
    return part;
  }

  // Tight where parts of few ranks are cut, looser below, where a vertex is much of a part.
  BisectionOptions options(int node) const {
    BisectionOptions asked;
    const double loose = 1 + 0.012 * std::exp2(0.5 * std::max(0, depth_ - 3));
    asked.tolerance = {loose, loose + 0.05, loose, loose + 0.01, loose + 0.01};
    const auto below = tree_->clusters_below(node);
    asked.first_share = static_cast<double>(below - below / 2) / below;
    asked.tries = depth_ < 4 ? 2 : 1;
    asked.seed = absorb(mix(seed_), node);
    return asked;
  }

  // For how much weight more vertices with `side` = 1 are connected with what lies before than
  // behind, and those with 0 the other way round.
  std::int64_t leaning(const std::vector<std::int32_t>& vertices,
                       const std::vector<std::uint8_t>& side) const {
    std::int64_t leaning = 0;
    for (std::size_t k = 0; k < vertices.size(); ++k) {
      const auto v = vertices[k];
      for (auto e = graph_->indptr[v]; e < graph_->indptr[v + 1]; ++e) {
        const auto other = code_[graph_->neighbours[e]];
        if (other == code_[v]) continue;
        leaning += (other < code_[v]) == (side[k] == 1) ? graph_->weights[e] : -graph_->weights[e];
      }
    }
    return leaning;
  }

  void halve(const std::vector<std::int32_t>& vertices, std::vector<std::vector<std::int32_t>>& halves) {
    std::vector<std::int32_t> half[2];
    const int node = vertices.empty() ? 1 : tree_->node(code_[vertices[0]], depth_);
    const auto below = tree_->clusters_below(node);
    if (vertices.empty() || below < 2) {
      half[0] = vertices;
    } else {
      auto side = metis_bisect(between(vertices), options(node));
      if (below % 2 == 0 && leaning(vertices, side) > 0)
        for (auto& of : side) of ^= 1;
      const auto bit = static_cast<std::uint16_t>(1 << (tree_->depth() - depth_ - 1));
      for (std::size_t k = 0; k < vertices.size(); ++k) half[side[k]].push_back(vertices[k]);
      for (const auto v : half[1]) code_[v] |= bit;
    }
    for (auto& vertices_of : half) halves.push_back(std::move(vertices_of));
  }

  const SmallGraph* graph_;
  const ClusterTree* tree_;
  std::uint64_t seed_;
  int depth_ = 0;                                 // halved so far
  Buffer<std::uint16_t> code_;                    // the way so far, zeros behind
  std::vector<std::vector<std::int32_t>> nodes_;  // the vertices of each node of that depth
  Buffer<std::int32_t> place_;                    // in the graph that is halved, or -1
};

// METIS's luck differs: of several ways down to eight parts the best goes on. Where there are few
// edges they take no time.
Buffer<std::uint16_t> halve_luckily(const SmallGraph& graph, const ClusterTree& tree, std::uint64_t seed) {
  constexpr int kDepth = 3;
  const auto tries = std::clamp<std::int64_t>((1 << 22) / (graph.indptr.back() + 1), 1, 4);
  std::optional<Halving> best;
  for (std::int64_t attempt = 0; attempt < tries; ++attempt) {
    Halving halving(graph, tree, absorb(seed, attempt));
    halving.halve_down_to(kDepth);
    if (!best || halving.price() < best->price()) best = std::move(halving);
  }
  best->halve_down_to(tree.depth());
  return best->codes();
}

// The same in a process of its own: METIS takes over signals and prints. On rank 0.
Buffer<std::uint16_t> halve_apart(const SmallGraph& graph, const ClusterTree& tree, std::uint64_t seed) {
  const auto bytes = static_cast<std::size_t>(graph.nodes()) * sizeof(std::uint16_t);
  const SharedMemory shared(bytes);
  auto* const codes = static_cast<std::uint16_t*>(shared.data());
  const auto ending = run_in_child_process([&] {
    std::ranges::copy(halve_luckily(graph, tree, seed), codes);
    return 0;
  });
  if (!ending.good())
    memory_error("METIS gave up on the coarsest graph ({} vertices, code {}, signal {}); is memory short?",
                 graph.nodes(), ending.code, ending.signal);
  return {codes, codes + graph.nodes()};
}

}  // namespace

Buffer<std::uint16_t> partition_coarsest(const Communicator& comm, const LevelGraph& graph,
                                         const ClusterTree& tree, std::uint64_t seed) {
  Buffer<std::uint16_t> code(static_cast<std::size_t>(graph.nodes), 0);
  const auto all = gather_graph(comm, graph);
  agree(comm, [&] {
    if (comm.rank() == 0) code = halve_apart(all, tree, seed);
  });
  comm.broadcast(std::span<std::uint16_t>(code), 0, "partition");
  return {code.begin() + graph.mine.begin, code.begin() + graph.mine.end};
}

}  // namespace espalier
