#include "symmetric_pattern.hpp"

#include "espalier/base/group_stably.hpp"
#include "espalier/base/mix.hpp"
#include "espalier/graph/edge_list.hpp"
#include "espalier/graph/row_range.hpp"

namespace espalier {

namespace {

constexpr std::int64_t kEntriesPerRound = std::int64_t{1} << 22;

struct MirroredEntry {
  std::int64_t row, column;
};

// The sum of a hash of the entries less that of their mirror images is 0.
bool seems_symmetric(const Communicator& comm, const Csr<std::int64_t>& rows, std::int64_t first) {
  std::uint64_t sum = 0;
  for (std::int64_t row = 0; row < rows.rows; ++row)
    for (const auto column : rows.row_indices(row))
      sum += absorb(mix(static_cast<std::uint64_t>(first + row)), column) -
             absorb(mix(static_cast<std::uint64_t>(column)), first + row);
  return comm.all_reduce(sum, Reduction::kSum, "partition") == 0;
}

void drop_loops(Csr<std::int64_t>& rows, std::int64_t first) {
  std::int64_t kept = 0, entry = 0;
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    for (; entry < rows.row_end(row); ++entry)
      if (rows.indices[entry] != first + row) rows.indices[kept++] = rows.indices[entry];
    rows.indptr[row + 1] = kept;
  }
  rows.indices.resize(kept);
}

void add(EdgeList<std::int64_t>& edges, std::int64_t row, std::int64_t column) {
  edges.targets.push_back(row);
  edges.sources.push_back(column);
}

// My entries and those that others' become when mirrored.
EdgeList<std::int64_t> both_ways(const Communicator& comm, const Csr<std::int64_t>& rows,
                                 std::int64_t first) {
  EdgeList<std::int64_t> edges;
  const auto rounds = comm.all_reduce(rows.entries() / kEntriesPerRound + 1, Reduction::kMax, "partition");
  for (std::int64_t round = 0; round < rounds; ++round) {
    const auto part = even_range(rows.rows, rounds, round);
    Buffer<MirroredEntry> send;  // mirrored
    for (auto row = part.begin; row < part.end; ++row)
      for (const auto column : rows.row_indices(row)) send.push_back({column, first + row});
    const auto counts = group_stably(send, comm.size(), [&](const MirroredEntry& entry) {
      return even_owner(rows.columns, comm.size(), entry.row);
    });
    for (const auto& entry :
         comm.all_to_all_v(std::span<const MirroredEntry>(send), counts, "partition").data)
      add(edges, entry.row, entry.column);
    for (auto row = part.begin; row < part.end; ++row)
      for (const auto column : rows.row_indices(row)) add(edges, first + row, column);
  }
  return edges;
}

}  // namespace

Csr<std::int64_t> symmetric_pattern(const Communicator& comm, Csr<std::int64_t> rows) {
  rows.values = {};
  const auto n = rows.columns;
  const auto mine = even_range(n, comm.size(), comm.rank());
  if (seems_symmetric(comm, rows, mine.begin)) {
    drop_loops(rows, mine.begin);
    return rows;
  }
  auto edges = both_ways(comm, rows, mine.begin);
  rows = {};
  EdgeOptions options;
  options.drop_self_loops = true;
  EdgeCounts counts;
  return build_rows(edges, mine, n, options, counts);
}

}  // namespace espalier
