// Clusters by METIS (Karypis and Kumar 1998), bisecting from the top down (order_bisection.hpp):
// multilevel bisections with a constraint for each kind of weight, as in DistDGLv2 5.3.2. The first
// rounds are made four times, and each bisection of the first five gets two attempts, of which
// METIS keeps the better. With `fast` it gets one, with one pass of refinement instead of ten, as
// in 5.3.1 (how many initial partitions METIS 5.1 tries within an attempt cannot be said to it).
//
// METIS 5.1 takes SIGTERM and SIGABRT over while it runs, leaves by longjmp where memory is
// short, and prints what it dislikes: so it runs in a process of its own
// (base/child_process.hpp), on rank 0.
#include <algorithm>
#include <csignal>
#include <limits>
#include <new>

#ifdef ESPALIER_WITH_METIS
#include <metis.h>
#endif

#include "espalier/base/child_process.hpp"
#include "espalier/base/error.hpp"
#include "espalier/comm/agree.hpp"
#include "order_bisection.hpp"
#include "order_by.hpp"

namespace espalier {

bool fits_metis(std::int64_t nodes, std::int64_t entries) {
  // A SubGraph counts so, too.
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  return nodes < kMost && entries < kMost;
}

#ifdef ESPALIER_WITH_METIS

namespace {

static_assert(sizeof(idx_t) >= sizeof(std::int32_t));

constexpr real_t kTolerance = 1.01f, kLaterTolerance = 1.03f;  // of each kind, at each bisection
constexpr real_t kMoreForEdges = 0.05f;                        // of a type
constexpr int kBeginnings = 4, kAttempts = 2, kDecisiveRounds = 5;
enum Code { kGood = 0, kFailed = 1, kNoMemory = 2 };

struct MetisFailure {
  Code code;
};

// The kinds that are balanced: those that the part has at all, as METIS divides by their sums. What
// a type has only where it is many vertices', and no vertex has half of the edges: where METIS
// cannot balance a kind it gives up on all. Vertices of types stand for all vertices.
std::vector<std::size_t> balanced_kinds(const SubGraph& part) {
  constexpr std::size_t kFirst = kBalanceNames.size();
  constexpr std::int64_t kFewestVertices = 50;
  std::vector<std::int64_t> sums(part.kinds, 0), heaviest(part.kinds, 0);
  for (std::size_t i = 0; i < part.weights.size(); ++i) {
    const auto kind = i % part.kinds;
    sums[kind] += part.weights[i];
    heaviest[kind] = std::max<std::int64_t>(heaviest[kind], part.weights[i]);
  }
  bool all_types = part.kinds > kFirst;
  std::vector<std::size_t> kinds;
  for (auto vertices = kFirst; vertices < part.kinds; vertices += 2) {
    const auto edges = vertices + 1;
    const bool many = sums[vertices] >= kFewestVertices;
    if (many) kinds.push_back(vertices);
    if (many && sums[edges] > 0 && sums[edges] >= 2 * heaviest[edges]) kinds.push_back(edges);
    all_types = all_types && (many || sums[vertices] == 0);
  }
  for (std::size_t kind = 0; kind < kFirst; ++kind)
    if (sums[kind] > 0 && !(kind == 0 && all_types)) kinds.push_back(kind);
  std::ranges::sort(kinds);
  return kinds;
}

std::vector<idx_t> weights_of(const SubGraph& part, const std::vector<std::size_t>& kinds) {
  std::vector<idx_t> weights;
  for (std::size_t first = 0; first < part.weights.size(); first += part.kinds)
    for (const auto kind : kinds) weights.push_back(part.weights[first + kind]);
  return weights;
}

// A part over its share, at most. The edges of a type may be few, and of few vertices.
real_t tolerance_of(std::size_t kind, bool decisive) {
  const bool of_edges_of_type = kind >= kBalanceNames.size() && (kind - kBalanceNames.size()) % 2 == 1;
  return (decisive ? kTolerance : kLaterTolerance) + (of_edges_of_type ? kMoreForEdges : 0.0f);
}

// As METIS's ids, in `room` where those are wider.
idx_t* ids_of(std::vector<std::int32_t>& numbers, std::vector<idx_t>& room) {
  if constexpr (std::is_same_v<idx_t, std::int32_t>) return numbers.data();
  room.assign(numbers.begin(), numbers.end());
  return room.data();
}

std::vector<std::int32_t> bisect_by_metis(SubGraph& part, const WantedSplit& split, bool fast) {
  const bool decisive = split.round < kDecisiveRounds;
  idx_t options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_SEED] = static_cast<idx_t>(split.key >> 33);
  options[METIS_OPTION_NCUTS] = decisive && !fast ? kAttempts : 1;
  if (fast) options[METIS_OPTION_NITER] = 1;
  const auto balanced = balanced_kinds(part);
  idx_t vertices = part.size(), kinds = static_cast<idx_t>(balanced.size()), parts = 2, cut = 0;
  auto weights = weights_of(part, balanced);
  std::vector<real_t> shares, tolerances;
  for (const auto kind : balanced) tolerances.push_back(tolerance_of(kind, decisive));
  for (const int clusters : {split.first, split.second})
    shares.insert(shares.end(), static_cast<std::size_t>(kinds),
                  static_cast<real_t>(clusters) / static_cast<real_t>(split.first + split.second));
  std::vector<idx_t> side(static_cast<std::size_t>(vertices), 0);
  part.indices.reserve(1);  // METIS refuses a null pointer, also where there are no edges
  std::vector<idx_t> indptr, indices;
  const int code = METIS_PartGraphRecursive(
      &vertices, &kinds, ids_of(part.indptr, indptr), ids_of(part.indices, indices), weights.data(), nullptr,
      nullptr, &parts, shares.data(), tolerances.data(), options, &cut, side.data());
  if (code != METIS_OK) throw MetisFailure{code == METIS_ERROR_MEMORY ? kNoMemory : kFailed};
  return {side.begin(), side.end()};
}

int run_metis(const WholePattern& graph, const OrderTask& task, std::uint16_t* clusters) {
  try {
    const auto found = order_by_bisection(
        graph, task.clusters, task.seed, kBeginnings,
        [&](SubGraph& part, const WantedSplit& split) { return bisect_by_metis(part, split, task.fast); });
    std::ranges::copy(found, clusters);
    return kGood;
  } catch (const MetisFailure& failure) {
    return failure.code;
  } catch (const std::bad_alloc&) {
    return kNoMemory;
  }
}

// On rank 0.
std::vector<std::uint16_t> clusters_of(const WholePattern& graph, const OrderTask& task) {
  const SharedMemory shared(graph.weights.size() * sizeof(std::uint16_t));
  auto* const clusters = static_cast<std::uint16_t*>(shared.data());
  const auto ending = run_in_child_process([&] { return run_metis(graph, task, clusters); });
  if (ending.code == kNoMemory || ending.signal == SIGKILL)
    memory_error(
        "METIS ran out of memory on {} vertices and {} edges; use --method multilevel or streaming, or a "
        "machine with more memory",
        task.nodes, graph.indices.size() / 2);
  if (!ending.good())
    throw UserError(
        ExitCode::kInternal,
        fmt::format("METIS gave up ({}); use another --method",
                    ending.signal != 0 ? fmt::format("signal {}", ending.signal) : "its code is -4"));
  return {clusters, clusters + graph.weights.size()};
}

}  // namespace

#else

namespace {

std::vector<std::uint16_t> clusters_of(const WholePattern&, const OrderTask&) {
  return {};
}

}  // namespace

#endif

bool has_metis() {
#ifdef ESPALIER_WITH_METIS
  return true;
#else
  return false;
#endif
}

void check_metis(std::int64_t nodes, std::int64_t entries) {
  if (!has_metis())
    usage_error(
        "--method metis: this program was built without METIS; install it (Debian: libmetis-dev) and build "
        "the "
        "program again, or use another --method");
  if (!fits_metis(nodes, entries))
    input_error(
        "--method metis: METIS counts in 32 bits here, and the graph has {} vertices and {} edges, each in "
        "both "
        "directions; use --method multilevel or --method streaming",
        nodes, entries);
}

Buffer<std::uint16_t> order_by_metis(const OrderTask& task) {
  check_metis(task.nodes, task.edges);
  const auto rows = symmetric_rows(task);
  check_metis(task.nodes, task.world.all_reduce(rows.entries(), Reduction::kSum, "order"));
  const auto graph = gather_pattern(task, rows);
  std::vector<std::uint16_t> clusters;
  agree(task.world, [&] {
    if (task.world.rank() == 0) clusters = clusters_of(graph, task);
  });
  return scatter_clusters(task, clusters);
}

}  // namespace espalier
