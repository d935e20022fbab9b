// What a graph file holds beside its edges and links, copied from one file to another: each rank
// its even range of each table, one table at a time.
#pragma once

#include <algorithm>
#include <numeric>

#include "espalier/graph/graph_file.hpp"
#include "espalier/graph/graph_writer.hpp"
#include "espalier/graph/row_range.hpp"

namespace espalier {

/// Collective. Features, labels, splits and ids of the vertices of all types.
void copy_vertices(const Communicator& comm, const GraphFile& file, GraphWriter& writer);

/// Collective. Features of the vertices `mine`, all of one type which has some, as the file keeps
/// them: moved(rows) become this rank's rows of the other file.
template <class Moved>
void copy_features(const GraphFile& file, const RowRange& mine, int type, const Moved& moved,
                   GraphWriter& writer) {
  const auto& info = file.info().types[type];
  if (info.half_features)
    return writer.write_features(moved(file.read_features<Half>(mine.begin, mine.end, type)), type);
  const auto rows = moved(file.read_features<float>(mine.begin, mine.end, type));
  if (info.pairs > 0)
    writer.write_sparse_features(rows, info.features, type);
  else
    writer.write_features(rows, type);
}

/// The places in `rows` of a relation's entries, in the order of its features and times.
template <class Index>
Buffer<std::int64_t> entries_of(const Schema& schema, const Csr<Index>& rows, int relation) {
  Buffer<std::int64_t> places;
  const auto begin = schema.begin(relation), end = schema.begin(relation + 1);
  for (std::int64_t e = 0; e < rows.entries(); ++e)
    if (rows.indices[e] >= begin && rows.indices[e] < end) places.push_back(e);
  return places;
}

/// Collective. Which of the relation's entries of all ranks are so many of this one.
inline RowRange among_entries(const Communicator& comm, std::int64_t mine) {
  const auto sizes = comm.all_gather(mine, "graph file");
  const auto begin = std::accumulate(sizes.begin(), sizes.begin() + comm.rank(), std::int64_t{0});
  return {begin, begin + mine};
}

/// Collective. Features and times of those entries of the even range `rows` of this rank that stay:
/// stays(place of an entry in `rows`).
template <class Index, class Stays>
void copy_edges(const Communicator& comm, const GraphFile& file, const Csr<Index>& rows, Stays stays,
                GraphWriter& writer);

// ---- implementation ----

namespace copy_detail {

// Rows of a matrix that stay, in order.
template <class T, class Keeps>
void keep_rows(Matrix<T>& rows, Keeps keeps) {
  std::int64_t kept = 0;
  for (std::int64_t k = 0; k < rows.rows; ++k)
    if (keeps(k)) std::copy_n(rows.row(k), rows.columns, rows.row(kept++));
  rows.data.resize(kept * rows.columns);
  rows.rows = kept;
}

template <class T, class Stays>
void copy_relation(const Communicator& comm, const GraphFile& file, const Buffer<std::int64_t>& places,
                   int relation, Stays stays, GraphWriter& writer) {
  const auto mine = among_entries(comm, std::ssize(places));
  auto rows = file.read_edge_features<T>(relation, mine.begin, mine.end);
  keep_rows(rows, [&](std::int64_t k) { return stays(places[k]); });
  writer.write_edge_features(rows, relation);
}

}  // namespace copy_detail

template <class Index, class Stays>
void copy_edges(const Communicator& comm, const GraphFile& file, const Csr<Index>& rows, Stays stays,
                GraphWriter& writer) {
  const auto& info = file.info();
  for (int r = 0; r < std::ssize(info.edge_features); ++r) {
    const bool timed = info.edge_times[r] > 0;
    if (!info.edge_features[r].has() && !timed) continue;
    const auto places = entries_of(info.schema, rows, r);
    if (info.edge_features[r].has())
      info.edge_features[r].half ? copy_detail::copy_relation<Half>(comm, file, places, r, stays, writer)
                                 : copy_detail::copy_relation<float>(comm, file, places, r, stays, writer);
    if (!timed) continue;
    const auto mine = among_entries(comm, std::ssize(places));
    auto times = file.read_edge_times(r, mine.begin, mine.end);
    std::int64_t kept = 0;
    for (std::size_t k = 0; k < places.size(); ++k)
      if (stays(places[k])) times[kept++] = times[k];
    times.resize(kept);
    writer.write_edge_times(times, r);
  }
}

}  // namespace espalier
