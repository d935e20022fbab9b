#include "spread_weights.hpp"

#include "espalier/base/search.hpp"

namespace espalier {

void find_intervals(const Cpu&, const WeightAxisOn<Cpu>& axis, const std::uint64_t* points,
                    std::int64_t count, Interval* intervals) {
  const auto* const prefix = axis.prefix.data();
  const auto vertices = std::ssize(axis.prefix) - 1;
  for (std::int64_t k = 0; k < count; ++k) {
    const auto v = segment_of(prefix, vertices, points[k]);
    intervals[k] = {axis.first_vertex + v, prefix[v], prefix[v + 1] - prefix[v]};
  }
}

void put(const Cpu&, const Interval* from, const std::int64_t* order, std::int64_t count, Interval* to) {
  for (std::int64_t k = 0; k < count; ++k) to[order[k]] = from[k];
}

}  // namespace espalier
