// Edges that are not in memory, those of a file, which is read again each time: from them to rows
// of the adjacency matrix in memory of the matrix alone.
//
//     auto counted = count_entries(edges, -1, options);           // reads them once
//     auto rows = build_rows<std::int32_t>(edges, std::move(counted), options, counts);    // again
//
// The rows are those that build_rows() of edge_list.hpp makes of a list of the same edges.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "espalier/graph/edge_list.hpp"

namespace espalier {

/// Ids lie below it; 8 bytes for each vertex are in memory.
inline constexpr std::int64_t kMostVertices = std::int64_t{1} << 40;

/// Some edges, one after the other.
struct EdgePiece {
  std::span<const std::int64_t> sources, targets;
  std::span<const float> weights;             ///< empty: all 1
  std::int64_t vanished = 0;                  ///< how many weights are 0 because float32 holds no
                                              ///< such number
  std::span<const std::int64_t> times = {};   ///< empty: nobody said when they were
  std::span<const std::uint8_t> turned = {};  ///< 1: the reverse of the edge before it, which is no
                                              ///< edge of the file; empty: none is
};

class EdgeSource {
 public:
  virtual ~EdgeSource() = default;
  /// Calls `use` for piece after piece of all edges, the same each time. Ids are at least 0 and
  /// below kMostVertices. Throws UserError(kInput) with the place of what is no edge.
  virtual void read(const std::function<void(const EdgePiece&)>& use) const = 0;
  virtual bool weighted() const = 0;
  /// The file, for messages.
  virtual std::string name() const = 0;
  /// Where an edge stands: "FILE:LINE".
  virtual std::string place(std::int64_t edge) const = 0;
};

/// What one reading of the edges tells.
struct CountedEntries {
  std::int64_t nodes = 0, columns = 0;
  Buffer<std::int64_t> indptr;  ///< [nodes + 1] where each row begins, duplicates included
  EdgeCounts edges;             ///< what is known before duplicates meet
  std::uint64_t digest = 0;     ///< of the edges, as they were read
};

/// Reads the edges of so many vertices; of -1: as many as the largest id says. With `columns`
/// sources are columns, so many, which are others than the rows: there is nothing to symmetrize,
/// and no loop.
CountedEntries count_entries(const EdgeSource& edges, std::int64_t nodes, const EdgeOptions& options,
                             std::int64_t columns = -1);

/// The whole matrix. Reads the edges again, and once or twice more to throw DuplicateEdge
/// (kRefuse). Throws UserError(kInput) when they are not those that were counted. There are fewer
/// rows and columns than the largest Index.
template <class Index>
Csr<Index> build_rows(const EdgeSource& edges, CountedEntries counted, const EdgeOptions& options,
                      EdgeCounts& counts);

/// As feature_edges() of a list. Reads the edges again.
template <class Index>
Buffer<std::int64_t> feature_edges(const EdgeSource& edges, const EdgeOptions& options,
                                   const Csr<Index>& matrix);

/// For each entry when it was, of edges that have times, else 0. Of those that the file has in its
/// direction the earliest, with options.latest the latest; where there is none, of those that it
/// has the other way round. Reads the edges again.
template <class Index>
Buffer<std::int64_t> entry_times(const EdgeSource& edges, const EdgeOptions& options,
                                 const Csr<Index>& matrix);

/// For each edge the one that stands for it where features are added up: that of its entry in
/// `first`, which feature_edges() made; -1 of a loop that was dropped. Reads the edges again.
template <class Index>
Buffer<std::int64_t> standing_edges(const EdgeSource& edges, const EdgeOptions& options,
                                    const Csr<Index>& matrix, const Buffer<std::int64_t>& first);

}  // namespace espalier
