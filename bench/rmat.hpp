// The graph of the sampling benches, made in memory: `espalier generate rmat --scale N --symmetrize
// --drop-self-loops` (2^N vertices, 16 2^N undirected edges drawn), and batches of seeds on it.
#pragma once

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "espalier/graph/edge_list.hpp"
#include "espalier/graph/generate.hpp"
#include "espalier/sample/epoch_plan.hpp"
#include "espalier/sample/sampler.hpp"

namespace espalier::bench {

constexpr std::int64_t kEdgeFactor = 16;
constexpr std::uint64_t kSeed = 0;

inline Csr<std::int32_t> make_rmat(std::int64_t scale) {
  const auto n = std::int64_t{1} << scale, edges = n * kEdgeFactor;
  const Scramble scramble(n, {.seed = kSeed, .purpose = FilePurpose::kGenerateEdges, .layer = 1});
  EdgeList<std::int32_t> list;
  list.sources.resize(static_cast<std::size_t>(edges));
  list.targets.resize(static_cast<std::size_t>(edges));
#pragma omp parallel for schedule(static) num_threads(std::thread::hardware_concurrency())
  for (std::int64_t e = 0; e < edges; ++e) {
    const Edge edge = rmat_edge(kSeed, e, scale);
    list.sources[static_cast<std::size_t>(e)] = static_cast<std::int32_t>(scramble(edge.source));
    list.targets[static_cast<std::size_t>(e)] = static_cast<std::int32_t>(scramble(edge.target));
  }
  EdgeCounts counts;
  return build_rows(list, {0, n}, n, {.symmetrize = true, .drop_self_loops = true}, counts);
}

inline std::vector<std::int64_t> vertices_with_neighbours(const Csr<std::int32_t>& a) {
  std::vector<std::int64_t> vertices;
  for (std::int64_t v = 0; v < a.rows; ++v)
    if (a.row_size(v) > 0) vertices.push_back(v);
  return vertices;
}

/// The first batches of an epoch over all vertices that have a neighbour.
class FirstBatches {
 public:
  FirstBatches(const Csr<std::int32_t>& a, std::int64_t batch_size, std::int64_t batches)
      : plan_(vertices_with_neighbours(a), batch_size, 1, 1, kSeed, 1) {
    for (std::int64_t b = 0; b < std::min(batches, plan_.batches()); ++b) batches_.push_back(plan_.batch(b));
  }
  FirstBatches(const FirstBatches&) = delete;
  FirstBatches& operator=(const FirstBatches&) = delete;
  std::span<const SeedBatch> all() const { return batches_; }

 private:
  EpochPlan plan_;
  std::vector<SeedBatch> batches_;
};

/// The first minibatch of GraphSAGE with fanout 15,10,5 and 1024 seeds: the blocks of a real
/// training step.
inline Minibatch sample_step(const Csr<std::int32_t>& a, const Grid& grid) {
  const auto matrix = distribute(grid, a, Topology::kReplicated);
  const FirstBatches batches(a, 1024, 1);
  auto minibatches =
      make_sampler("graphsage", matrix, {.fanout = {15, 10, 5}})->sample(Cpu{1}, batches.all(), kSeed, 1);
  return std::move(minibatches.front());
}

/// Takes `NAME TEXT` out of the arguments; empty where it is not among them.
inline std::string take_text(int& argc, char** argv, const std::string& name) {
  for (int i = 1; i + 1 < argc; ++i)
    if (argv[i] == name) {
      std::string text = argv[i + 1];
      std::copy(argv + i + 2, argv + argc + 1, argv + i);  // the closing null too
      argc -= 2;
      return text;
    }
  return {};
}

/// Takes `--scale N` out of the arguments.
inline std::int64_t take_scale(int& argc, char** argv, std::int64_t otherwise) {
  const auto text = take_text(argc, argv, "--scale");
  return text.empty() ? otherwise : std::stoll(text);
}

}  // namespace espalier::bench
