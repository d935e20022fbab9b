#include "espalier/product/dist_csr.hpp"

#include <algorithm>
#include <cmath>

namespace espalier {

namespace {

// A + I of the local rows: the diagonal entry is inserted where it belongs, or 1 is added to it.
template <class Index>
Csr<Index> add_identity(const DistCsr<Index>& a) {
  Csr<Index> out;
  out.rows = a.local.rows;
  out.columns = a.local.columns;
  out.indptr.reserve(a.local.indptr.size());
  out.indices.reserve(a.local.indices.size() + static_cast<std::size_t>(a.local.rows));
  out.values.reserve(out.indices.capacity());
  for (std::int64_t row = 0; row < a.local.rows; ++row) {
    const auto self = static_cast<Index>(a.first_row() + row);
    const auto columns = a.local.row_indices(row);
    const auto weights = a.local.row_values(row);
    bool placed = false;
    for (std::size_t k = 0; k < columns.size(); ++k) {
      if (!placed && columns[k] > self) {
        out.indices.push_back(self);
        out.values.push_back(1.0f);
        placed = true;
      }
      const float weight = weights.empty() ? 1.0f : weights[k];
      out.indices.push_back(columns[k]);
      out.values.push_back(columns[k] == self ? weight + 1.0f : weight);
      placed = placed || columns[k] == self;
    }
    if (!placed) {
      out.indices.push_back(self);
      out.values.push_back(1.0f);
    }
    out.indptr.push_back(static_cast<std::int64_t>(out.indices.size()));
  }
  return out;
}

template <class Index>
std::vector<double> row_sums(const Csr<Index>& a) {
  std::vector<double> sums(a.rows, 0.0);
  for (std::int64_t row = 0; row < a.rows; ++row)
    for (const float value : a.row_values(row)) sums[row] += value;
  return sums;
}

// Divides the entries whose column lies in [first, first + sums.size()) by sqrt(D_v D_u).
template <class Index>
void scale_columns(Csr<Index>& a, const std::vector<double>& row_sum, std::int64_t first,
                   const std::vector<double>& column_sum) {
  const auto last = first + static_cast<std::int64_t>(column_sum.size());
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const auto columns = a.row_indices(row);
    const auto from = std::lower_bound(columns.begin(), columns.end(), first) - columns.begin();
    for (auto k = from; k < std::ssize(columns) && columns[k] < last; ++k) {
      float& value = a.values[a.row_begin(row) + k];
      const double d_v = row_sum[row];
      const double d_u = column_sum[columns[k] - first];
      value = static_cast<float>(static_cast<double>(value) / std::sqrt(d_v * d_u));
    }
  }
}

}  // namespace

template <class Index>
DistCsr<Index> empty_dist_csr(const Grid& grid, std::int64_t rows, Topology topology) {
  DistCsr<Index> a;
  a.grid = &grid;
  const bool spread = topology == Topology::kPartitioned;
  a.partition = block_partition(rows, spread ? grid.rows() : 1);
  a.part = spread ? grid.row() : 0;
  return a;
}

template <class Index>
DistCsr<Index> distribute(const Grid& grid, const Csr<Index>& whole, Topology topology) {
  auto a = empty_dist_csr<Index>(grid, whole.rows, topology);
  const auto first = a.partition.begin(a.part), last = a.partition.end(a.part);
  const auto from = whole.indptr[first], to = whole.indptr[last];
  a.local.rows = last - first;
  a.local.columns = whole.columns;
  a.has_values = whole.has_values();
  a.local.indptr.assign(whole.indptr.begin() + first, whole.indptr.begin() + last + 1);
  for (auto& at : a.local.indptr) at -= from;
  a.local.indices.assign(whole.indices.begin() + from, whole.indices.begin() + to);
  if (whole.has_values()) a.local.values.assign(whole.values.begin() + from, whole.values.begin() + to);
  return a;
}

template <class Index>
DistCsr<Index> normalize_with_self_loops(DistCsr<Index> a) {
  a.local = add_identity(a);
  a.has_values = true;
  const auto mine = row_sums(a.local);
  for (int part = 0; part < a.partition.parts(); ++part) {
    std::vector<double> theirs = mine;
    theirs.resize(a.partition.size(part));
    if (a.partition.parts() > 1) a.grid->column_comm().broadcast(std::span<double>(theirs), part, "setup");
    scale_columns(a.local, mine, a.partition.begin(part), theirs);
  }
  return a;
}

template <class Index>
DistCsr<Index> normalize_rows(DistCsr<Index> a, bool self_loops, bool weighted) {
  if (!weighted || !a.has_values) a.local.values.assign(a.local.indices.size(), 1.0f);
  if (self_loops) a.local = add_identity(a);
  a.has_values = true;
  const auto sums = row_sums(a.local);
  for (std::int64_t row = 0; row < a.local.rows; ++row) {
    const double sum = sums[row];
    if (!(sum > 0)) continue;
    for (auto k = a.local.row_begin(row); k < a.local.row_end(row); ++k) {
      float& value = a.local.values[k];
      value = static_cast<float>(static_cast<double>(value) / sum);
    }
  }
  return a;
}

template <class Index>
DistCsr<Index> with_values(DistCsr<Index> a) {
  if (!a.has_values) a.local.values.assign(a.local.indices.size(), 1.0f);
  a.has_values = true;
  return a;
}

#define ESPALIER_INSTANTIATE(Index)                                             \
  template DistCsr<Index> with_values(DistCsr<Index>);                          \
  template DistCsr<Index> normalize_rows(DistCsr<Index>, bool, bool);           \
  template DistCsr<Index> empty_dist_csr(const Grid&, std::int64_t, Topology);  \
  template DistCsr<Index> distribute(const Grid&, const Csr<Index>&, Topology); \
  template DistCsr<Index> normalize_with_self_loops(DistCsr<Index>);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
