#include "espalier/product/dist_csr.hpp"

#include <algorithm>
#include <cmath>

#include "espalier/base/error.hpp"
#include "espalier/partition/owned_reader.hpp"

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
  const auto put = [&](Index column, float value) {
    out.indices.push_back(column);
    out.values.push_back(value);
  };
  for (std::int64_t row = 0; row < a.local.rows; ++row) {
    const auto self = static_cast<Index>(a.ownership.vertex(a.part, row));
    const auto columns = a.local.row_indices(row);
    const auto weights = a.local.row_values(row);
    bool placed = false;
    for (std::size_t k = 0; k < columns.size(); ++k) {
      if (!placed && columns[k] > self) put(self, 1.0f);
      placed = placed || columns[k] >= self;
      const float weight = weights.empty() ? 1.0f : weights[k];
      put(columns[k], columns[k] == self ? weight + 1.0f : weight);
    }
    if (!placed) put(self, 1.0f);
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

// Where the entries of the relation of entry k of a row end; all of the row, of one relation.
template <class Index>
std::int64_t end_of_relation(const Csr<Index>& a, const ColumnsOf& columns, std::int64_t row,
                             std::int64_t k) {
  if (columns.begins == nullptr) return a.row_end(row);
  const auto bound = columns.begins[columns.relation(a.indices[k]) + 1];
  const auto begin = a.indices.begin();
  return std::lower_bound(begin + k, begin + a.row_end(row), bound,
                          [](Index column, std::int64_t end) { return column < end; }) -
         begin;
}

void divide_by_sum(std::span<float> values) {
  double sum = 0;
  for (const float value : values) sum += value;
  if (!(sum > 0)) return;
  for (float& value : values) value = static_cast<float>(static_cast<double>(value) / sum);
}

// Divides the entries whose column `part` owns by sqrt(D_v D_u). column_sum: of its vertices.
template <class Index>
void scale_columns(DistCsr<Index>& a, const std::vector<double>& row_sum, int part,
                   const std::vector<double>& column_sum) {
  const auto places = a.owners.places(Cpu{}, part);
  const auto owner = a.owners.owners();
  for (std::int64_t row = 0; row < a.local.rows; ++row)
    for (auto k = a.local.row_begin(row); k < a.local.row_end(row); ++k) {
      const auto column = a.local.indices[k];
      if (owner(column) != part) continue;
      const double d_v = row_sum[row], d_u = column_sum[places.leaf(column)];
      float& value = a.local.values[k];
      value = static_cast<float>(static_cast<double>(value) / std::sqrt(d_v * d_u));
    }
}

}  // namespace

RowPartition row_ranges(const Grid& grid, std::int64_t rows, Topology topology) {
  return block_partition(rows, topology == Topology::kPartitioned ? grid.rows() : 1);
}

template <class Index>
DistCsr<Index> empty_dist_csr(const Grid& grid, Ownership ownership) {
  ESPALIER_CHECK(ownership.parts() == 1 || ownership.parts() == grid.rows(), "{} parts on {} block rows",
                 ownership.parts(), grid.rows());
  DistCsr<Index> a;
  a.grid = &grid;
  a.part = ownership.parts() > 1 ? grid.row() : 0;
  a.owners = {Cpu{}, ownership, a.part};
  a.ownership = std::move(ownership);
  return a;
}

template <class Index>
DistCsr<Index> read_dist_csr(const Grid& grid, const GraphFile& file, const Ownership& ownership) {
  auto a = empty_dist_csr<Index>(grid, ownership);
  a.has_values = file.info().weighted;
  set_schema(a, file.info().schema, file.view().apart);
  a.local = OwnedReader(grid, file, ownership).rows<Index>();
  return a;
}

template <class Index>
DistCsr<Index> distribute(const Grid& grid, const Csr<Index>& whole, const Ownership& ownership) {
  auto a = empty_dist_csr<Index>(grid, ownership);
  a.local.rows = ownership.size(a.part);
  a.local.columns = whole.columns;
  a.has_values = a.local.weighted = whole.has_values();
  for (std::int64_t k = 0; k < a.local.rows; ++k) {
    const auto v = ownership.vertex(a.part, k);
    const auto columns = whole.row_indices(v);
    const auto values = whole.row_values(v);
    a.local.indices.insert(a.local.indices.end(), columns.begin(), columns.end());
    a.local.values.insert(a.local.values.end(), values.begin(), values.end());
    a.local.indptr.push_back(std::ssize(a.local.indices));
  }
  return a;
}

template <class Index>
DistCsr<Index> normalize_with_self_loops(DistCsr<Index> a) {
  a.local = add_identity(a);
  a.has_values = a.local.weighted = a.adds_self = true;
  const auto mine = row_sums(a.local);
  for (int part = 0; part < a.parts(); ++part) {
    std::vector<double> theirs = mine;
    theirs.resize(a.ownership.size(part));
    if (a.parts() > 1) a.grid->column_comm().broadcast(std::span<double>(theirs), part, "setup");
    scale_columns(a, mine, part, theirs);
  }
  return a;
}

template <class Index>
DistCsr<Index> normalize_rows(DistCsr<Index> a, bool self_loops, bool weighted) {
  ESPALIER_CHECK(!self_loops || !a.columns.typed(), "{} relations have no self loops", a.columns.relations());
  if (!weighted || !a.has_values) a.local.values.assign(a.local.indices.size(), 1.0f);
  if (self_loops) a.local = add_identity(a);
  a.has_values = a.local.weighted = true;
  a.adds_self = self_loops;
  const auto columns = a.columns.leaf();
  for (std::int64_t row = 0; row < a.local.rows; ++row)
    for (auto k = a.local.row_begin(row); k < a.local.row_end(row);) {
      const auto end = end_of_relation(a.local, columns, row, k);
      divide_by_sum(std::span(a.local.values).subspan(k, end - k));
      k = end;
    }
  return a;
}

template <class Index>
DistCsr<Index> with_values(DistCsr<Index> a) {
  if (!a.has_values) a.local.values.assign(a.local.indices.size(), 1.0f);
  a.has_values = a.local.weighted = true;
  return a;
}

template <class Index>
DistCsr<Index> without_zeros(DistCsr<Index> a) {
  if (!a.has_values) return a;
  auto& local = a.local;
  std::int64_t kept = 0, k = 0;
  for (std::int64_t row = 0; row < local.rows; ++row) {
    for (const auto end = local.row_end(row); k < end; ++k) {
      if (local.values[k] == 0) continue;
      local.indices[kept] = local.indices[k];
      local.values[kept++] = local.values[k];
    }
    local.indptr[row + 1] = kept;
  }
  local.indices.resize(kept);
  local.values.resize(kept);
  return a;
}

#define ESPALIER_INSTANTIATE(Index)                                                       \
  template DistCsr<Index> with_values(DistCsr<Index>);                                    \
  template DistCsr<Index> without_zeros(DistCsr<Index>);                                  \
  template DistCsr<Index> normalize_rows(DistCsr<Index>, bool, bool);                     \
  template DistCsr<Index> empty_dist_csr(const Grid&, Ownership);                         \
  template DistCsr<Index> read_dist_csr(const Grid&, const GraphFile&, const Ownership&); \
  template DistCsr<Index> distribute(const Grid&, const Csr<Index>&, const Ownership&);   \
  template DistCsr<Index> normalize_with_self_loops(DistCsr<Index>);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
