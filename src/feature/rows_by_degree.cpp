#include "espalier/feature/rows_by_degree.hpp"

#include <algorithm>

namespace espalier {

namespace {

struct OfDegree {
  std::int64_t minus_entries, vertex;
  friend auto operator<=>(const OfDegree&, const OfDegree&) = default;
};

}  // namespace

template <class Index>
std::vector<std::int64_t> rows_by_degree(const DistCsr<Index>& a, std::int64_t most) {
  Buffer<OfDegree> rows(static_cast<std::size_t>(a.ownership.size(a.part)));
  for (std::int64_t k = 0; k < std::ssize(rows); ++k)
    rows[k] = {-a.row_size(k), a.ownership.vertex(a.part, k)};
  const auto taken = std::min<std::int64_t>(most, std::ssize(rows));
  std::ranges::partial_sort(rows, rows.begin() + taken);
  rows.resize(static_cast<std::size_t>(taken));
  if (a.parts() > 1) {
    rows = a.grid->column_comm().all_gather_v(std::span<const OfDegree>(rows), "setup");
    std::ranges::sort(rows);
  }
  std::vector<std::int64_t> vertices;
  for (const auto& row : rows) vertices.push_back(row.vertex);
  return vertices;
}

template std::vector<std::int64_t> rows_by_degree(const DistCsr<std::int32_t>&, std::int64_t);
template std::vector<std::int64_t> rows_by_degree(const DistCsr<std::int64_t>&, std::int64_t);

}  // namespace espalier
