// What a graph file holds beside its edges, copied to one whose vertices have other numbers, or the
// same: each rank its even range of each table, one table at a time. And which entries of the
// matrix the tables of a relation's edges speak of.
#pragma once

#include "espalier/base/row_range.hpp"
#include "espalier/comm/agree.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/graph/graph_writer.hpp"
#include "fetch_rows.hpp"
#include "renumbered_vertices.hpp"

namespace espalier {

/// Collective. Features, labels, splits and ids of the vertices of all types, as they are, and the
/// names of all columns. With `vertices`, of a graph without types: of those that stay, in their
/// new order; where there are no ids the old numbers become some.
void copy_vertices(const Communicator& comm, const GraphFile& file, const RenumberedVertices* vertices,
                   GraphWriter& writer);

/// Collective. All links with what they are ranked among, in the order of the file; `vertices` may
/// be null. Throws UserError(kInput) where they name a vertex that is dropped.
void copy_links(const Communicator& comm, const GraphFile& file, const RenumberedVertices* vertices,
                GraphWriter& writer);

/// The places in `rows` of a relation's entries, in the order of its features and times.
template <class Index>
Buffer<std::int64_t> entries_of(const Schema& schema, const Csr<Index>& rows, int relation) {
  Buffer<std::int64_t> places;
  const auto begin = schema.begin(relation), end = schema.begin(relation + 1);
  for (std::int64_t e = 0; e < rows.entries(); ++e)
    if (rows.indices[e] >= begin && rows.indices[e] < end) places.push_back(e);
  return places;
}

/// How many each relation has.
template <class Index>
std::vector<std::int64_t> entries_by_relation(const Schema& schema, const Csr<Index>& rows) {
  std::vector<std::int64_t> entries(schema.relations().size(), 0);
  for (const auto column : rows.indices) ++entries[schema.relation_of(column)];
  return entries;
}

/// Collective. The same of all ranks, checked against the file's features and times of edges.
/// Throws UserError(kInput).
template <class Index>
std::vector<std::int64_t> count_and_check(const Communicator& comm, const GraphFile& file,
                                          const Csr<Index>& rows) {
  auto entries = entries_by_relation(file.info().schema, rows);
  comm.all_reduce(std::span(entries), Reduction::kSum, "graph file");
  agree(comm, [&] { check_edge_features(file, entries); });
  return entries;
}

/// Collective. Which of the relation's entries of all ranks are so many of this one.
inline RowRange among_entries(const Communicator& comm, std::int64_t mine) {
  const auto begin = stretches(comm, mine)[comm.rank()];
  return {begin, begin + mine};
}

}  // namespace espalier
