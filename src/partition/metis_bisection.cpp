#include "metis_bisection.hpp"

#include <limits>

#include "espalier/base/error.hpp"
#ifdef ESPALIER_WITH_METIS
#include <metis.h>
#endif

namespace espalier {

#ifdef ESPALIER_WITH_METIS

namespace {

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

}  // namespace

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

}  // namespace espalier
