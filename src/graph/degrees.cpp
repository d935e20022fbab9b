#include "espalier/graph/degrees.hpp"

#include <map>

#include <cmath>

namespace espalier {

DegreeHistogram read_degrees(const Communicator& comm, const GraphFile& file, std::int64_t more) {
  std::map<std::int64_t, std::int64_t> mine, all;
  in_row_parts(comm, file.info().nodes, [&](std::int64_t begin, std::int64_t end) {
    for (const auto degree : file.read_row_sizes(begin, end)) ++mine[degree + more];
  });
  DegreeHistogram counts;
  for (const auto& [degree, vertices] : mine) counts.push_back({degree, vertices});
  for (const auto& of : comm.all_gather_v(std::span<const DegreeCount>(counts), "setup"))
    all[of.degree] += of.vertices;
  counts.clear();
  for (const auto& [degree, vertices] : all) counts.push_back({degree, vertices});
  return counts;
}

std::int64_t quantile(const DegreeHistogram& degrees, double q, std::int64_t n) {
  const auto wanted = std::max<std::int64_t>(1, std::llround(std::ceil(q * static_cast<double>(n))));
  std::int64_t covered = 0;
  for (const auto& of : degrees)
    if ((covered += of.vertices) >= wanted) return of.degree;
  return 0;
}

}  // namespace espalier
