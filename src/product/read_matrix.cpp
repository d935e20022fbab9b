// Matrices read from files: rows to the ranks that own them, or entries to those that hold them.
// Apart from the rest of the room, which needs no file.
#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>

#include "espalier/partition/edge_parts.hpp"
#include "espalier/partition/owned_reader.hpp"
#include "espalier/product/dist_csr.hpp"

namespace espalier {

template <class Index>
DistCsr<Index> read_dist_csr(const Grid& grid, const GraphFile& file, const Ownership& ownership) {
  auto a = empty_dist_csr<Index>(grid, ownership);
  a.has_values = file.info().weighted;
  set_schema(a, file.info().schema, file.view().apart);
  a.local = OwnedReader(grid, file, ownership).rows<Index>();
  return a;
}

namespace {

constexpr const char* kReading = "setup";

// Who holds rows from `begin` on, entry k of which is in part[k]. A loop goes where a diagonal that
// is added would: with the first part that has another entry of the row, or of a row without one
// with part v mod parts, which holds it in any case. apart: columns are (relation, source).
template <class Index>
Buffer<std::uint64_t> holders_of_rows(std::int64_t begin, const Csr<Index>& rows, int parts, bool apart,
                                      Buffer<std::uint16_t>& part) {
  Buffer<std::uint64_t> sets(rows.rows, 0);
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    const auto is_loop = [&](std::int64_t k) { return !apart && rows.indices[k] == begin + row; };
    for (auto k = rows.row_begin(row); k < rows.row_end(row); ++k)
      if (!is_loop(k)) sets[row] |= std::uint64_t{1} << part[k];
    if (sets[row] == 0) sets[row] = std::uint64_t{1} << (begin + row) % parts;
    for (auto k = rows.row_begin(row); k < rows.row_end(row); ++k)
      if (is_loop(k)) part[k] = static_cast<std::uint16_t>(std::countr_zero(sets[row]));
  }
  return sets;
}

// Rows of the whole matrix, which ranks of a process column read piece by piece, to their holders.
template <class Index>
class EntryDeal {
 public:
  EntryDeal(const Grid& grid, const Ownership& ownership, std::int64_t columns, bool values, bool apart)
      : column_(grid.column_comm()), apart_(apart), holders_(ownership.rows(), grid.rows()) {
    a_ = empty_dist_csr<Index>(grid, ownership);
    a_.local.columns = columns;
    a_.has_values = a_.local.weighted = values;
  }

  // Collective over the column. Rows from `begin` on of mine, entry k with part[k]; those of the
  // ranks follow one another.
  void add(std::int64_t begin, const Csr<Index>& rows, Buffer<std::uint16_t> part) {
    auto sets = holders_of_rows(begin, rows, column_.size(), apart_, part);
    const auto counts = column_.all_gather(rows.rows, kReading);
    auto all = column_.all_gather_v(std::span<const std::uint64_t>(sets), kReading);
    holders_.append(all);
    const auto mine = std::accumulate(counts.begin(), counts.begin() + column_.rank(), std::int64_t{0});
    send(rows, part, std::span(all).subspan(mine, rows.rows));
  }

  DistCsr<Index> finish() {
    holders_.finish();
    const auto holders = std::make_shared<const RowHolders>(std::move(holders_));
    const auto marks = std::make_shared<const PartMarks<Cpu>>(holders->marks(a_.part));
    a_.local.rows = std::ssize(a_.local.indptr) - 1;
    a_.cut = std::make_shared<const CutRows>(CutRows{holders, marks});
    a_.cut_leaf = {holders->of(), {marks->words.data(), marks->before.data()}};
    return std::move(a_);
  }

 private:
  void send(const Csr<Index>& rows, const Buffer<std::uint16_t>& part, std::span<const std::uint64_t> sets) {
    const auto ranks = static_cast<std::size_t>(column_.size());
    std::vector<Buffer<std::int64_t>> sizes(ranks);
    std::vector<Buffer<Index>> indices(ranks);
    std::vector<Buffer<float>> values(ranks);
    for (std::int64_t row = 0; row < rows.rows; ++row) {
      for_each_part(sets[row], [&](int holder) { sizes[holder].push_back(0); });
      for (auto k = rows.row_begin(row); k < rows.row_end(row); ++k) {
        ++sizes[part[k]].back();
        indices[part[k]].push_back(rows.indices[k]);
        if (a_.has_values) values[part[k]].push_back(rows.values[k]);
      }
    }
    for (const auto size : send(sizes)) a_.local.indptr.push_back(a_.local.indptr.back() + size);
    const auto append = [](auto& all, const auto& more) { all.insert(all.end(), more.begin(), more.end()); };
    append(a_.local.indices, send(indices));
    if (a_.has_values) append(a_.local.values, send(values));
  }

  template <class T>
  Buffer<T> send(std::vector<Buffer<T>>& to) const {
    Buffer<T> sent;
    std::vector<std::int64_t> counts;
    for (auto& one : to) {
      counts.push_back(std::ssize(one));
      sent.insert(sent.end(), one.begin(), one.end());
      one = {};
    }
    return column_.all_to_all_v(std::span<const T>(sent), counts, kReading).data;
  }

  const Communicator& column_;
  bool apart_;
  RowHolders holders_;
  DistCsr<Index> a_;
};

// The block rows of the entries of rows, of a view of the file that may have merged relations: all
// edges between two vertices are in one part.
template <class Index>
Buffer<std::uint16_t> parts_of_view(const Csr<Index>& rows, const Csr<std::int64_t>& apart,
                                    const Schema& schema, const Buffer<std::uint16_t>& parts) {
  Buffer<std::uint16_t> of_view(rows.entries());
  std::vector<std::pair<std::int64_t, std::uint16_t>> of_row;
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    of_row.clear();
    for (auto k = apart.row_begin(row); k < apart.row_end(row); ++k)
      of_row.emplace_back(schema.vertex_of(apart.indices[k]), parts[k]);
    std::ranges::sort(of_row);
    auto at = of_row.begin();
    for (auto k = rows.row_begin(row); k < rows.row_end(row); ++k) {
      while (at->first < rows.indices[k]) ++at;
      of_view[k] = at->second;
    }
  }
  return of_view;
}

// Collective over `comm`, whose ranks read it piece by piece. Calls use(begin, rows, part) for rows
// of the matrix from `begin` on, entry k of which is with block row part[k]; apart(): are its
// columns (relation, source)?
template <class Index>
class CutReading {
 public:
  CutReading(const Communicator& comm, const Communicator& world, const GraphFile& file, const EdgeCut& cut,
             int block_rows)
      : comm_(comm), file_(file), parts_(comm, cut.path, cut.info) {
    block_rows_ = fold_parts(cut.info.entries, block_rows);
    if (file.view().apart || file.info().schema.plain()) return;
    GraphView view(Verify::kNo);
    view.apart = true;
    apart_file_.emplace(world, file.path(), view);
  }
  bool apart() const { return file_.view().apart && !file_.info().schema.plain(); }

  template <class Use>
  void read(Use use) {
    constexpr std::int64_t kBytesAtOnce = std::int64_t{64} << 20;
    const auto& info = file_.info();
    const auto bytes = info.edges * static_cast<std::int64_t>(sizeof(Index) + sizeof(float));
    const auto rounds = 1 + bytes / comm_.size() / kBytesAtOnce;
    std::int64_t before = 0;  // entries of the file that were read
    for (std::int64_t round = 0; round < rounds; ++round) {
      const auto slice = even_range(info.nodes, rounds, round),
                 mine = even_range(slice.size(), comm_.size(), comm_.rank());
      const auto begin = slice.begin + mine.begin, end = slice.begin + mine.end;
      const auto rows = file_.read_rows<Index>(begin, end);
      Csr<std::int64_t> in_file;
      if (apart_file_) in_file = apart_file_->read_rows<std::int64_t>(begin, end);
      const auto counts = comm_.all_gather(apart_file_ ? in_file.entries() : rows.entries(), kReading);
      const auto first = std::accumulate(counts.begin(), counts.begin() + comm_.rank(), before);
      before = std::accumulate(counts.begin(), counts.end(), before);
      auto parts = parts_.read(first, first + counts[comm_.rank()]);
      for (auto& part : parts) part = static_cast<std::uint16_t>(block_rows_[part]);
      use(begin, rows, apart_file_ ? parts_of_view(rows, in_file, info.schema, parts) : std::move(parts));
    }
    parts_.check();
  }

 private:
  const Communicator& comm_;
  const GraphFile& file_;
  EdgePartsReader parts_;
  std::vector<int> block_rows_;          // of each part
  std::optional<GraphFile> apart_file_;  // where the view merges relations
};

}  // namespace

template <class Index>
DistCsr<Index> read_cut_csr(const Grid& grid, const GraphFile& file, const Ownership& ownership,
                            const EdgeCut& cut) {
  const auto& info = file.info();
  CutReading<Index> reading(grid.column_comm(), grid.world(), file, cut, grid.rows());
  EntryDeal<Index> deal(grid, ownership, info.columns, info.weighted, reading.apart());
  reading.read([&](std::int64_t begin, const Csr<Index>& rows, Buffer<std::uint16_t> part) {
    deal.add(begin, rows, std::move(part));
  });
  auto a = deal.finish();
  set_schema(a, info.schema, file.view().apart);
  return a;
}

RowHolders read_row_holders(const Communicator& comm, const GraphFile& file, const EdgeCut& cut,
                            int block_rows) {
  RowHolders holders(file.info().nodes, block_rows);
  CutReading<std::int64_t> reading(comm, comm, file, cut, block_rows);
  reading.read([&](std::int64_t begin, const Csr<std::int64_t>& rows, Buffer<std::uint16_t> part) {
    const auto mine = holders_of_rows(begin, rows, block_rows, reading.apart(), part);
    auto all = comm.all_gather_v(std::span<const std::uint64_t>(mine), kReading);
    holders.append(all);
  });
  holders.finish();
  return holders;
}

template <class Index>
DistCsr<Index> distribute_cut(const Grid& grid, const Csr<Index>& whole, const Ownership& ownership,
                              std::span<const std::uint16_t> parts, bool apart) {
  const auto& column = grid.column_comm();
  EntryDeal<Index> deal(grid, ownership, whole.columns, whole.has_values(), apart);
  const auto mine = even_range(whole.rows, column.size(), column.rank());
  Csr<Index> rows;
  rows.rows = mine.size();
  const auto first = whole.row_begin(mine.begin), last = whole.row_begin(mine.end);
  for (auto row = mine.begin; row < mine.end; ++row) rows.indptr.push_back(whole.row_end(row) - first);
  rows.indices.assign(whole.indices.begin() + first, whole.indices.begin() + last);
  if (whole.has_values()) rows.values.assign(whole.values.begin() + first, whole.values.begin() + last);
  deal.add(mine.begin, rows, {parts.begin() + first, parts.begin() + last});
  return deal.finish();
}

#define ESPALIER_INSTANTIATE(Index)                                                                      \
  template DistCsr<Index> read_dist_csr(const Grid&, const GraphFile&, const Ownership&);                \
  template DistCsr<Index> read_cut_csr(const Grid&, const GraphFile&, const Ownership&, const EdgeCut&); \
  template DistCsr<Index> distribute_cut(const Grid&, const Csr<Index>&, const Ownership&,               \
                                         std::span<const std::uint16_t>, bool);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
