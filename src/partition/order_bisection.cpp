#include "order_bisection.hpp"

#include <algorithm>
#include <numeric>

#include "espalier/base/mix.hpp"

namespace espalier {

namespace {

class Bisections {
 public:
  Bisections(const WholePattern& graph, int clusters, std::uint64_t seed, const Bisector& bisect)
      : graph_(graph),
        clusters_(clusters),
        seed_(seed),
        bisect_(bisect),
        first_(graph.weights.size(), 0),
        place_(graph.weights.size(), 0) {}

  std::vector<std::uint16_t> run() {
    std::vector<std::int32_t> all(graph_.weights.size());
    std::iota(all.begin(), all.end(), 0);
    split(std::move(all), 0, clusters_);
    return std::move(first_);
  }

 private:
  // Of the vertices in the clusters [first, first + count), each of which knows `first`.
  void split(std::vector<std::int32_t> vertices, int first, int count) {
    if (count == 1) return;
    const Split halves{count / 2, count - count / 2, clusters_ / count < kTopSets,
                       absorb(absorb(absorb(0, static_cast<std::int64_t>(seed_)), first), count)};
    auto sides = sides_of(std::move(vertices), first, halves);
    for (int side = 0; side < 2; ++side) {
      const auto begin = first + (side == 0 ? 0 : halves.first);
      for (const auto v : sides[side]) first_[v] = static_cast<std::uint16_t>(begin);
    }
    split(std::move(sides[0]), first, halves.first);
    split(std::move(sides[1]), first + halves.first, halves.second);
  }

  std::array<std::vector<std::int32_t>, 2> sides_of(std::vector<std::int32_t> vertices, int first,
                                                    const Split& halves) {
    auto part = take(std::move(vertices), first);
    auto side = bisect_(part, halves);
    fill_up(part, side, halves);
    if (halves.first == halves.second && stands_wrong_way(part, side, first, halves))
      for (auto& of_vertex : side) of_vertex = 1 - of_vertex;
    std::array<std::vector<std::int32_t>, 2> sides;
    for (std::int32_t i = 0; i < part.size(); ++i) sides[side[i]].push_back(part.vertices[i]);
    return sides;
  }

  // The vertices and the edges among them: neighbours that know the same `first`.
  SubGraph take(std::vector<std::int32_t> vertices, int first) {
    SubGraph part;
    part.vertices = std::move(vertices);
    part.indptr.reserve(part.vertices.size() + 1);
    part.indptr.push_back(0);
    part.weights.reserve(part.vertices.size() * kBalanceNames.size());
    for (std::int32_t i = 0; i < part.size(); ++i) place_[part.vertices[i]] = i;
    for (const auto v : part.vertices) {
      for (const auto u : graph_.row(v))
        if (first_[u] == first) part.indices.push_back(place_[u]);
      part.indptr.push_back(static_cast<std::int32_t>(part.indices.size()));
      for (const auto weight : graph_.weights[v]) part.weights.push_back(static_cast<std::int32_t>(weight));
    }
    return part;
  }

  // No side may have fewer vertices than clusters: then those with the fewest edges change sides.
  static void fill_up(const SubGraph& part, std::vector<std::int32_t>& side, const Split& halves) {
    const auto second = static_cast<std::int32_t>(std::ranges::count(side, 1));
    const auto first = part.size() - second;
    const int poor = first < halves.first ? 0 : 1;
    const auto missing = poor == 0 ? halves.first - first : halves.second - second;
    if (missing <= 0) return;
    std::vector<std::int32_t> others;
    for (std::int32_t i = 0; i < part.size(); ++i)
      if (side[i] != poor) others.push_back(i);
    std::ranges::stable_sort(others, {}, [&](auto i) { return part.indptr[i + 1] - part.indptr[i]; });
    for (std::int32_t k = 0; k < missing; ++k) side[others[k]] = poor;
  }

  // Do more edges reach past the other half than would the other way round?
  bool stands_wrong_way(const SubGraph& part, const std::vector<std::int32_t>& side, int first,
                        const Split& halves) const {
    std::int64_t past = 0;
    for (std::int32_t i = 0; i < part.size(); ++i)
      for (const auto u : graph_.row(part.vertices[i])) {
        if (first_[u] < first) past += side[i] == 1 ? 1 : -1;
        if (first_[u] >= first + halves.first + halves.second) past += side[i] == 0 ? 1 : -1;
      }
    return past > 0;
  }

  static constexpr int kTopSets = 16;  // splits of sets as large as a 16th of all: four rounds

  const WholePattern& graph_;
  int clusters_;
  std::uint64_t seed_;
  const Bisector& bisect_;
  std::vector<std::uint16_t> first_;  // [n] the first cluster of the set that has the vertex
  std::vector<std::int32_t> place_;   // [n] its place there, while it is looked at
};

}  // namespace

std::vector<std::uint16_t> order_by_bisection(const WholePattern& graph, int clusters, std::uint64_t seed,
                                              const Bisector& bisect) {
  return Bisections(graph, clusters, seed, bisect).run();
}

}  // namespace espalier
