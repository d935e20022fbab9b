#include "espalier/base/launch.hpp"
#include "spread_weights.hpp"

namespace espalier {

void find_intervals(const Cuda& cuda, const WeightAxisOn<Cuda>& axis, const std::uint64_t* points,
                    std::int64_t count, Interval* intervals) {
  const auto* const prefix = axis.prefix.data();
  const auto vertices = std::ssize(axis.prefix) - 1, first = axis.first_vertex;
  for_each(cuda, "find_intervals", count, [=] __device__(std::int64_t k) {
    intervals[k] = interval_at(prefix, vertices, first, points[k]);
  });
}

void put(const Cuda& cuda, const Interval* from, const std::int64_t* order, std::int64_t count,
         Interval* to) {
  for_each(cuda, "put", count, [=] __device__(std::int64_t k) { to[order[k]] = from[k]; });
}

}  // namespace espalier
