// Matrices read from files: rows to the ranks that own them, or entries to those that hold them.
// Apart from the rest of the room, which needs no file.
#include <algorithm>
#include <numeric>
#include <optional>

#include "entry_deal.hpp"
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

#define ESPALIER_INSTANTIATE(Index)                                                       \
  template DistCsr<Index> read_dist_csr(const Grid&, const GraphFile&, const Ownership&); \
  template DistCsr<Index> read_cut_csr(const Grid&, const GraphFile&, const Ownership&, const EdgeCut&);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
