#include "espalier/product/dist_csr.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "cut_rows.hpp"
#include "entry_deal.hpp"
#include "espalier/base/error.hpp"

namespace espalier {

namespace {

// A + I of the local rows: the diagonal entry is inserted where it belongs, or 1 is added to it. Of
// a row with several holders the first has it.
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
  a.for_each_row([&](std::int64_t row, std::int64_t vertex) {
    const auto self = static_cast<Index>(vertex);
    const auto columns = a.local.row_indices(row);
    const auto weights = a.local.row_values(row);
    bool placed = a.cut && std::countr_zero(a.cut->holders->of()(vertex)) != a.part;
    for (std::size_t k = 0; k < columns.size(); ++k) {
      if (!placed && columns[k] > self) put(self, 1.0f);
      placed = placed || columns[k] >= self;
      const float weight = weights.empty() ? 1.0f : weights[k];
      put(columns[k], columns[k] == self ? weight + 1.0f : weight);
    }
    if (!placed) put(self, 1.0f);
    out.indptr.push_back(static_cast<std::int64_t>(out.indices.size()));
  });
  return out;
}

// Of the rows that I own, from those of the rows that I hold: all holders have the same.
template <class Index>
Buffer<double> at_owners(const DistCsr<Index>& a, const Buffer<double>& of_rows) {
  if (!a.cut) return of_rows;
  const HeldRows rows(a, {0, a.rows()}, false);
  Buffer<double> held;
  for (const auto row : rows.held) held.push_back(of_rows[row]);
  const auto pieces = rows.to_owners(held);
  Buffer<double> owned(a.ownership.size(a.part));
  for (std::size_t j = 0; j < rows.owned.size(); ++j) owned[rows.owned[j]] = pieces[j];
  return owned;
}

// Divides the entries whose column `part` owns by sqrt(D_v D_u). column_sum: of its vertices.
template <class Index>
void scale_columns(DistCsr<Index>& a, const Buffer<double>& row_sum, int part,
                   const Buffer<double>& column_sum) {
  const auto places = a.owners.places(Cpu{}, part);
  const auto owner = a.owners.owners();
  for (std::int64_t row = 0; row < a.local.rows; ++row)
    for (auto k = a.local.row_begin(row); k < a.local.row_end(row); ++k) {
      const auto column = a.local.indices[k];
      if (owner(column) != part) continue;
      const double d_v = row_sum[row], d_u = column_sum[places.view(column)];
      float& value = a.local.values[k];
      value = static_cast<float>(static_cast<double>(value) / std::sqrt(d_v * d_u));
    }
}

}  // namespace

RowPartition row_ranges(const Grid& grid, std::int64_t rows, Topology topology) {
  return block_partition(rows, topology != Topology::kReplicated ? grid.rows() : 1);
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
DistCsr<Index> deal_cut(const Grid& grid, const Csr<Index>& mine, const Ownership& ownership,
                        Buffer<std::uint16_t> parts, bool apart) {
  const auto& column = grid.column_comm();
  EntryDeal<Index> deal(grid, ownership, mine.columns, mine.has_values(), apart);
  deal.add(even_range(ownership.rows(), column.size(), column.rank()).begin, mine, std::move(parts));
  return deal.finish();
}

template <class Index>
DistCsr<Index> normalize_with_self_loops(DistCsr<Index> a) {
  a.local = add_identity(a);
  a.has_values = a.local.weighted = a.adds_self = true;
  const auto mine = segment_sums(a), owned = at_owners(a, mine);
  for (int part = 0; part < a.parts(); ++part) {
    auto theirs = owned;
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
  const auto sums = segment_sums(a);
  auto sum = sums.begin();
  for_each_segment(a.local, a.columns.view(), [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    if (const double of_segment = *sum++; of_segment > 0)
      for (auto k = begin; k < end; ++k)
        a.local.values[k] = static_cast<float>(static_cast<double>(a.local.values[k]) / of_segment);
  });
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

#define ESPALIER_INSTANTIATE(Index)                                                                         \
  template DistCsr<Index> with_values(DistCsr<Index>);                                                      \
  template DistCsr<Index> without_zeros(DistCsr<Index>);                                                    \
  template DistCsr<Index> normalize_rows(DistCsr<Index>, bool, bool);                                       \
  template DistCsr<Index> empty_dist_csr(const Grid&, Ownership);                                           \
  template DistCsr<Index> distribute(const Grid&, const Csr<Index>&, const Ownership&);                     \
  template DistCsr<Index> deal_cut(const Grid&, const Csr<Index>&, const Ownership&, Buffer<std::uint16_t>, \
                                   bool);                                                                   \
  template DistCsr<Index> normalize_with_self_loops(DistCsr<Index>);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
