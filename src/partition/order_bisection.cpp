#include "order_bisection.hpp"

#include <algorithm>
#include <limits>

#include "espalier/base/mix.hpp"

namespace espalier {

namespace {

// A set of vertices that will be the clusters [first, first + count).
struct Set {
  int first = 0, count = 0;
};

class Bisections {
 public:
  Bisections(const WholePattern& graph, int clusters, std::uint64_t seed, const Bisector& bisect)
      : graph_(graph),
        clusters_(clusters),
        seed_(seed),
        bisect_(bisect),
        first_(graph.weights.size(), 0),
        place_(graph.weights.size(), 0) {}

  std::vector<std::uint16_t> run(int beginnings) {
    std::vector<Set> sets;
    std::vector<std::uint16_t> best;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (int beginning = 0; beginning < beginnings; ++beginning) {
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
    auto side = bisect_(part, wanted);
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
  const Bisector& bisect_;
  std::vector<std::uint16_t> first_;  // [n] the first cluster of the set that has the vertex
  std::vector<std::int32_t> place_;   // [n] its place there, while it is looked at
};

}  // namespace

std::vector<std::uint16_t> order_by_bisection(const WholePattern& graph, int clusters, std::uint64_t seed,
                                              int beginnings, const Bisector& bisect) {
  return Bisections(graph, clusters, seed, bisect).run(beginnings);
}

}  // namespace espalier
