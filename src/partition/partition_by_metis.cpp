// Clusters by METIS (Karypis and Kumar 1998), bisecting from the top down: a set of vertices that
// is to become `clusters` clusters is split into two, one for each half of the clusters, and so on,
// round after round. So the clusters of any aligned stretch of 2^k were one set, and few edges
// leave it. Each is a multilevel bisection with a constraint for each kind of weight, as in
// DistDGLv2 5.3.2.
//
// The halves of a set may stand either way round. They stand so that fewer edges reach past the
// other half: what of the rest of the graph comes before the set in the sequence, and what after,
// is known when it is split. That is what makes cuts good that are no power of two.
//
// A good first cut may leave no good second one. So the first three rounds are made four times, and
// go on from where the edges cut after each of the rounds are fewest in sum. Each bisection of the
// first five rounds gets two attempts, of which METIS keeps the better. With `fast` it gets one,
// with one pass of refinement instead of ten, as in 5.3.1 (how many initial partitions METIS 5.1
// tries within an attempt cannot be said to it).
//
// METIS 5.1 takes SIGTERM and SIGABRT over while it runs, leaves by longjmp where memory is
// short, and prints what it dislikes: so it runs in a process of its own
// (base/process.hpp), on rank 0.
#include <algorithm>
#include <csignal>
#include <limits>
#include <new>

#ifdef ESPALIER_WITH_METIS
#include <metis.h>
#endif

#include "espalier/base/error.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/base/process.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/partition/partition_methods.hpp"
#include "partition_pattern.hpp"

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

// Some vertices of a graph, and the edges between them.
struct SubGraph {
  std::vector<std::int32_t> vertices;         // ids in the graph; the others are places here
  std::vector<std::int32_t> indptr, indices;  // [n + 1], symmetric
  std::size_t kinds = kBalanceNames.size();   // and, of several types, two of each
  std::vector<std::int32_t> weights;          // [n, kinds] of a type 1, entries; else 0

  std::int32_t size() const { return static_cast<std::int32_t>(vertices.size()); }
};

// What is to be split.
struct WantedSplit {
  int first = 0, second = 0;  // clusters that either side will be
  int round = 0;              // from 0: the set is one of about 2^round
  std::uint64_t key = 0;      // names this split among all, for random numbers
};

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

// A set of vertices that will be the clusters [first, first + count).
struct Set {
  int first = 0, count = 0;
};

class Bisections {
 public:
  Bisections(const WholePattern& graph, const VertexPartitionTask& task)
      : graph_(graph),
        clusters_(task.clusters),
        seed_(task.seed),
        fast_(task.fast),
        first_(graph.weights.size(), 0),
        place_(graph.weights.size(), 0) {}

  // The cluster of each vertex, none empty.
  std::vector<std::uint16_t> run() {
    std::vector<Set> sets;
    std::vector<std::uint16_t> best;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (int beginning = 0; beginning < kBeginnings; ++beginning) {
      const auto cuts = begin(beginning, sets);
      if (cuts >= least) continue;
      least = cuts;
      best = first_;
    }
    first_ = std::move(best);
    for (int round = kFirstRounds; is_to_split(sets); ++round) sets = split(sets, round, 0);
    return std::move(first_);
  }

 private:
  static constexpr int kFirstRounds = 3;

  static bool is_to_split(const std::vector<Set>& sets) {
    return std::ranges::any_of(sets, [](const Set& set) { return set.count > 1; });
  }

  // The first rounds; the edges that are cut after each of them. Sets are the same each time.
  std::int64_t begin(int beginning, std::vector<Set>& sets) {
    sets = {{0, clusters_}};
    std::ranges::fill(first_, 0);
    std::int64_t cuts = 0;
    for (int round = 0; round < kFirstRounds; ++round) {
      sets = split(sets, round, beginning);
      cuts += edges_cut();
    }
    return cuts;
  }

  std::int64_t edges_cut() const {
    std::int64_t cut = 0;
    for (std::int32_t v = 0; v < graph_.nodes(); ++v)
      for (const auto u : graph_.row(v)) cut += first_[u] != first_[v];
    return cut;
  }

  // One round: the halves of all sets, in their order.
  std::vector<Set> split(const std::vector<Set>& sets, int round, int beginning) {
    auto members = members_of(sets);
    std::vector<Set> halves;
    for (std::size_t s = 0; s < sets.size(); ++s) {
      const auto [first, count] = sets[s];
      if (count == 1) {
        halves.push_back(sets[s]);
        continue;
      }
      const auto key =
          absorb(absorb(absorb(absorb(0, static_cast<std::int64_t>(seed_)), beginning), first), count);
      const WantedSplit wanted{count / 2, count - count / 2, round, key};
      split(std::move(members[s]), first, wanted);
      halves.push_back({first, wanted.first});
      halves.push_back({first + wanted.first, wanted.second});
    }
    return halves;
  }

  // The vertices of each set, which know its first cluster.
  std::vector<std::vector<std::int32_t>> members_of(const std::vector<Set>& sets) const {
    std::vector<std::int32_t> set_at(static_cast<std::size_t>(clusters_), 0);
    for (std::size_t s = 0; s < sets.size(); ++s) set_at[sets[s].first] = static_cast<std::int32_t>(s);
    std::vector<std::vector<std::int32_t>> members(sets.size());
    for (std::int32_t v = 0; v < graph_.nodes(); ++v) members[set_at[first_[v]]].push_back(v);
    return members;
  }

  // Of one set: those of its second half learn their first cluster.
  void split(std::vector<std::int32_t> vertices, int first, const WantedSplit& wanted) {
    auto part = take(std::move(vertices), first);
    auto side = bisect_by_metis(part, wanted, fast_);
    fill_up(part, side, wanted);
    if (wanted.first == wanted.second && stands_wrong_way(part, side, first, wanted))
      for (auto& of_vertex : side) of_vertex = 1 - of_vertex;
    for (std::int32_t i = 0; i < part.size(); ++i)
      if (side[i] == 1) first_[part.vertices[i]] = static_cast<std::uint16_t>(first + wanted.first);
  }

  // Of all kinds.
  std::vector<std::int32_t> weights_of(std::int32_t v) const {
    const auto& ends = graph_.type_ends;
    std::vector<std::int32_t> weights(graph_.weights[v].begin(), graph_.weights[v].end());
    weights.resize(kBalanceNames.size() + 2 * ends.size(), 0);
    if (ends.empty()) return weights;
    const auto type = kBalanceNames.size() + 2 * (std::ranges::upper_bound(ends, v) - ends.begin());
    weights[type] = weights[0];
    weights[type + 1] = weights[1];
    return weights;
  }

  // The vertices and the edges among them: neighbours that know the same `first`.
  SubGraph take(std::vector<std::int32_t> vertices, int first) {
    SubGraph part;
    part.vertices = std::move(vertices);
    part.indptr.reserve(part.vertices.size() + 1);
    part.indptr.push_back(0);
    part.kinds = kBalanceNames.size() + 2 * graph_.type_ends.size();
    part.weights.assign(part.vertices.size() * part.kinds, 0);
    for (std::int32_t i = 0; i < part.size(); ++i) place_[part.vertices[i]] = i;
    std::ptrdiff_t at = 0;
    for (const auto v : part.vertices) {
      for (const auto u : graph_.row(v))
        if (first_[u] == first) part.indices.push_back(place_[u]);
      part.indptr.push_back(static_cast<std::int32_t>(part.indices.size()));
      std::ranges::copy(weights_of(v), part.weights.begin() + at);
      at += static_cast<std::ptrdiff_t>(part.kinds);
    }
    return part;
  }

  // No side may have fewer vertices than clusters: then those with the fewest edges change sides.
  static void fill_up(const SubGraph& part, std::vector<std::int32_t>& side, const WantedSplit& wanted) {
    const auto second = static_cast<std::int32_t>(std::ranges::count(side, 1));
    const auto first = part.size() - second;
    const int poor = first < wanted.first ? 0 : 1;
    const auto missing = poor == 0 ? wanted.first - first : wanted.second - second;
    if (missing <= 0) return;
    std::vector<std::int32_t> others;
    for (std::int32_t i = 0; i < part.size(); ++i)
      if (side[i] != poor) others.push_back(i);
    std::ranges::stable_sort(others, {}, [&](auto i) { return part.indptr[i + 1] - part.indptr[i]; });
    for (std::int32_t k = 0; k < missing; ++k) side[others[k]] = poor;
  }

  // Do more edges reach past the other half than would the other way round?
  bool stands_wrong_way(const SubGraph& part, const std::vector<std::int32_t>& side, int first,
                        const WantedSplit& wanted) const {
    std::int64_t past = 0;
    for (std::int32_t i = 0; i < part.size(); ++i)
      for (const auto u : graph_.row(part.vertices[i])) {
        if (first_[u] < first) past += side[i] == 1 ? 1 : -1;
        if (first_[u] >= first + wanted.first + wanted.second) past += side[i] == 0 ? 1 : -1;
      }
    return past > 0;
  }

  const WholePattern& graph_;
  int clusters_;
  std::uint64_t seed_;
  bool fast_;
  std::vector<std::uint16_t> first_;  // [n] the first cluster of the set that has the vertex
  std::vector<std::int32_t> place_;   // [n] its place there, while it is looked at
};

int run_metis(const WholePattern& graph, const VertexPartitionTask& task, std::uint16_t* clusters) {
  try {
    std::ranges::copy(Bisections(graph, task).run(), clusters);
    return kGood;
  } catch (const MetisFailure& failure) {
    return failure.code;
  } catch (const std::bad_alloc&) {
    return kNoMemory;
  }
}

// On rank 0.
std::vector<std::uint16_t> clusters_of(const WholePattern& graph, const VertexPartitionTask& task) {
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

std::vector<std::uint16_t> clusters_of(const WholePattern&, const VertexPartitionTask&) {
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

Buffer<std::uint16_t> partition_by_metis(const VertexPartitionTask& task) {
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
