// What a graph file holds beside its edges, copied to one whose vertices have other numbers, or the
// same: each rank its even range of each table, one table at a time. And which entries of the
// matrix the tables of a relation's edges speak of.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "espalier/base/buffer.hpp"
#include "espalier/base/row_range.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/graph/graph_writer.hpp"
#include "espalier/graph/rewrite_graph.hpp"
#include "fetch_rows.hpp"

namespace espalier {

// New numbers of vertices, of all or of those that stay. Every rank knows them of its even ranges,
// of the old numbers and of the new ones.

inline constexpr std::int64_t kDropped = -1;

class RenumberedVertices {
 public:
  /// Collective. By number[k], that of vertex k of this rank's even range, or kDropped; the numbers
  /// of those that stay are 0 .. without a gap.
  RenumberedVertices(const Communicator& comm, std::int64_t old_nodes, Buffer<std::int64_t> numbers);

  std::int64_t nodes() const { return nodes_; }
  /// Of each vertex of this rank's even range of the old numbers, or kDropped.
  const Buffer<std::int64_t>& numbers() const { return numbers_; }
  /// What was vertex k of this rank's even range.
  const Buffer<std::int64_t>& old() const { return old_; }
  /// Collective. The numbers of these old vertices, in any order.
  Buffer<std::int64_t> numbers_of(std::span<const std::int64_t> old) const;

 private:
  const Communicator& comm_;
  std::int64_t old_nodes_, nodes_;
  Buffer<std::int64_t> numbers_;  // [my old vertices]
  Buffer<std::int64_t> old_;      // [my new vertices]
};

/// What is known of vertices that are to be numbered, one entry for each of this rank's even range.
struct VertexFacts {
  Buffer<std::int64_t> degrees;     ///< entries of the row
  Buffer<std::int64_t> components;  ///< the least vertex of the component; empty: nobody asked
};

/// Collective. The vertices of the largest component, of as large ones that with the least vertex,
/// or all of them, in the order asked for. `components` becomes how many there are; 0: nobody
/// asked.
RenumberedVertices number_vertices(const Communicator& comm, std::int64_t nodes, const VertexFacts& facts,
                                   const CleanOptions& options, std::int64_t& components);

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

}  // namespace espalier
