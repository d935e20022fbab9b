// A square sparse matrix spread over the grid.
//
// (Of a graph with types: n x the columns of its schema.) Partitioned: P(i,j) holds block row i,
// the rows of the vertices that part i owns, ascending; the c ranks of a process row hold the same
// block. Replicated: every rank holds all rows, of one part. Column ids are global.
//
// Cut (a vertex cut): P(i,j) holds A_i of A = sum of A_i, whose patterns have no entry in common:
// of some rows all entries, of others some. Who owns a vertex does not change.
#pragma once

#include <algorithm>
#include <functional>
#include <map>

#include "espalier/base/device_array.hpp"
#include "espalier/comm/device_communicator.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/partition/edge_parts.hpp"
#include "espalier/partition/ownership.hpp"
#include "espalier/partition/row_holders.hpp"
#include "espalier/product/schedule.hpp"
#include "espalier/product/whole_rows.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

enum class Topology { kPartitioned, kReplicated, kCut };

/// What a rank knows of a matrix that is cut.
struct CutRows {
  std::shared_ptr<const RowHolders> holders;   ///< whom to ask for a row
  std::shared_ptr<const PartMarks<Cpu>> mine;  ///< the rows of which I hold entries
  // From count_rows on:
  Buffer<std::uint16_t> sizes = {};  ///< [rows that I own] entries; kLong: in long_rows
  std::map<std::int64_t, std::int64_t> long_rows = {};
  double copies = 1;                            ///< holders of a row, weighted by its entries
  std::shared_ptr<const WholeRows> whole = {};  ///< of rows of several holders; null: nobody knows

  static constexpr std::int64_t kLong = 0xffff;
  void add_size(std::int64_t size) {
    if (size >= kLong) long_rows[std::ssize(sizes)] = size;
    sizes.push_back(static_cast<std::uint16_t>(std::min(size, kLong)));
  }
  std::int64_t size_of(std::int64_t k) const { return sizes[k] < kLong ? sizes[k] : long_rows.at(k); }
};

/// The same for kernels of a space.
struct CutView {
  HoldersOf holders;
  PlaceOf row_of;                           ///< of a vertex of which I hold entries, in the block
  std::shared_ptr<const void> memory = {};  ///< of a GPU's
};

/// The columns of a matrix for kernels of a space: vertices, or (relation, source).
template <class Space>
struct ColumnsOn {
  SharedList<std::int64_t, Space> begins, shifts;  ///< as ColumnsOf; both empty: vertices

  ColumnsOn() = default;
  ColumnsOn(const Space& space, const Schema& schema) {
    if (schema.plain()) return;
    begins = {space, schema.begins()};
    shifts = {space, schema.shifts()};
  }
  /// Do columns say a relation?
  bool typed() const { return begins.size() > 0; }
  int relations() const { return typed() ? static_cast<int>(shifts.size()) : 1; }
  ColumnsOf view() const& {
    return typed() ? ColumnsOf{begins.data(), shifts.data(), relations()} : ColumnsOf{};
  }
  void view() const&& = delete;
};

template <class Index, class Space = Cpu>
struct DistCsr {
  const GridOn<Space>* grid = nullptr;
  Ownership ownership;                             ///< of the rows: grid rows parts, or one
  OwnersOn<Space> owners;                          ///< the same for kernels
  Csr<Index, Space> local;                         ///< row k: of ownership.vertex(part, k); cut:
                                                   ///< of the k-th vertex of cut->mine
  int part = 0;                                    ///< which part is mine
  bool has_values = false;                         ///< the same on every rank
  const DistCsr<Index>* host = nullptr;            ///< of a matrix on a GPU: its origin
  ColumnsOn<Space> columns = {};                   ///< what its columns are
  SharedList<std::int64_t, Space> type_ends = {};  ///< [types] ends; empty: one type
  bool adds_self = false;                          ///< is it made of A + I, (v, v) being v itself?
  std::shared_ptr<const CutRows> cut = {};         ///< null: rows lie whole with their owners
  CutView cut_view = {};

  std::int64_t rows() const { return ownership.rows(); }
  int parts() const { return ownership.parts(); }
  /// Row of `local` of a vertex of which I hold entries.
  PlaceOf row_of(const Space& space) const { return cut ? cut_view.row_of : owners.places(space, part).view; }
  /// Entries of the row of ownership.vertex(part, k), wherever they lie. On the host.
  std::int64_t row_size(std::int64_t k) const { return cut ? cut->size_of(k) : local.row_size(k); }
  /// Calls use(row, vertex) for the rows of `local`, ascending. On the host.
  template <class Use>
  void for_each_row(Use use) const {
    if (cut) return for_each_vertex(*cut->mine, use);
    for (std::int64_t row = 0; row < local.rows; ++row) use(row, ownership.vertex(part, row));
  }
  /// The same in memory of the host, for what is done once.
  const DistCsr<Index>& on_host() const {
    if constexpr (std::is_same_v<Space, Cuda>)
      return *host;
    else
      return *this;
  }
};

/// The shape of `a` as the cost model sees it; rows and entries are left 0.
template <class Index, class Space>
ProductShape shape_of(const DistCsr<Index, Space>& a) {
  return {.parts = a.parts(),
          .replication = a.grid->replication(),
          .index_bytes = sizeof(Index),
          .value_bytes = a.has_values ? 4 : 0,
          .cut = a.cut != nullptr,
          .on_gpu = std::is_same_v<Space, Cuda>,
          .copies = a.cut ? a.cut->copies : 1};
}

/// Says what the rows and columns of `a` are; `apart`: columns are (relation, source).
template <class Index>
void set_schema(DistCsr<Index>& a, const Schema& schema, bool apart) {
  if (apart) a.columns = {Cpu{}, schema};
  if (schema.types().size() == 1) return;
  std::vector<std::int64_t> ends;
  for (const auto& type : schema.types()) ends.push_back(type.end);
  a.type_ends = {Cpu{}, std::move(ends)};
}

/// Collective over the process column. The arrays in which the matrix lies ("entries", "where rows
/// begin" and so on), and their bytes over the ranks of the column.
template <class Index>
std::vector<std::pair<const char*, std::int64_t>> topology_arrays(const DistCsr<Index>& a);

/// A copy of `a` whose block lies in memory of the GPU, or pinned memory; `a` must stay. What
/// kernels read of a cut lies in the GPU's.
template <class Index>
DistCsr<Index, Cuda> to_device(const Cuda& cuda, const DeviceGrid& grid, const DistCsr<Index>& a,
                               Placement placement = Placement::kDevice);

/// The shape of a matrix on the grid: who owns its rows (grid.rows() parts, or one: replicated) and
/// which part is mine; `local` is yet to be filled. Not collective.
template <class Index>
DistCsr<Index> empty_dist_csr(const Grid& grid, Ownership ownership);

/// `rows` rows in ranges, one for each block row or, replicated, one for all.
RowPartition row_ranges(const Grid& grid, std::int64_t rows, Topology topology);

/// The adjacency matrix of a file, values as in the file (weights or none); part grid.row() owns
/// its rows, or the one part that there is. Collective over the grid.
template <class Index>
DistCsr<Index> read_dist_csr(const Grid& grid, const GraphFile& file, const Ownership& ownership);
template <class Index>
DistCsr<Index> read_dist_csr(const Grid& grid, const GraphFile& file, Topology topology) {
  return read_dist_csr<Index>(grid, file, row_ranges(grid, file.info().nodes, topology));
}

/// A DistCsr of parts of a matrix that every rank knows; for tests. Not collective.
template <class Index>
DistCsr<Index> distribute(const Grid& grid, const Csr<Index>& whole, const Ownership& ownership);
template <class Index>
DistCsr<Index> distribute(const Grid& grid, const Csr<Index>& whole, Topology topology) {
  return distribute(grid, whole, row_ranges(grid, whole.rows, topology));
}

/// The same matrix, cut by the parts of a file, which are folded to the block rows (fold_parts).
/// UserError(kInput) on every rank where the parts cannot be read. Collective over the grid.
template <class Index>
DistCsr<Index> read_cut_csr(const Grid& grid, const GraphFile& file, const Ownership& ownership,
                            const EdgeCut& cut);

/// Who holds which rows of it on so many block rows. Collective over `comm`.
RowHolders read_row_holders(const Communicator& comm, const GraphFile& file, const EdgeCut& cut,
                            int block_rows);

/// A DistCsr cut so that entry e of `mine` lies with block row parts[e]; mine: rows of an even
/// range of all, those of the ranks of a process column together. `apart`: its columns are
/// (relation, source). Collective.
template <class Index>
DistCsr<Index> deal_cut(const Grid& grid, const Csr<Index>& mine, const Ownership& ownership,
                        Buffer<std::uint16_t> parts, bool apart = false);

/// Calls use(sizes) for each row that I own, ascending: how many entries it has of each relation,
/// wherever they lie (where columns are vertices: in all). Collective over the process column.
template <class Index>
void for_each_whole_row(const DistCsr<Index>& a,
                        const std::function<void(std::span<const std::int64_t>)>& use);

/// A whose owners know how many entries their rows have, and whose holders know of their pieces
/// what `facts` says: what is asked when no entry comes or goes any more. Collective over the
/// process column.
template <class Index>
DistCsr<Index> count_rows(DistCsr<Index> a, WholeRowFacts facts);

/// The symmetrically normalised matrix with self-loops, D^-1/2 (A + I) D^-1/2 with D = row sums of
/// A + I (Kipf and Welling 2017, section 2); an entry is round32(a_vu / sqrt(D_v D_u)) with each
/// operation in float64. Collective over the process column (D travels block by block).
template <class Index>
DistCsr<Index> normalize_with_self_loops(DistCsr<Index> a);

/// A, or A + I with `self_loops`, with every row divided by its sum: the matrix of the mean over
/// neighbours. An entry is round32(a_vu / sum) with the sum and the quotient in float64; weights
/// count as 1 unless `weighted`. A row that sums to 0 stays as it is. Where columns are (relation,
/// source) it is each relation's part of a row that is divided, and there are no self loops.
/// Collective over the process column where rows are cut.
template <class Index>
DistCsr<Index> normalize_rows(DistCsr<Index> a, bool self_loops, bool weighted);

/// A with its entries spelt out: 1 where the file has no weights. Local.
template <class Index>
DistCsr<Index> with_values(DistCsr<Index> a);

/// The entries that are not 0. Local.
template <class Index>
DistCsr<Index> without_zeros(DistCsr<Index> a);

}  // namespace espalier
