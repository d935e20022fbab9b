// Rows of a graph file, brought to the ranks that own them. Ranges are read where they lie. Of a
// map every rank of a process column reads an even piece of the file and sends each row to its
// owner in the column; rows arrive in the order of their places, without ids:
//
//   file        [ piece of rank 0 | piece of rank 1 | ... ]     again and again, for pieces of
//                 a  b  b  a  b     a  a  b                      bounded size
//   all-to-all  a: [a a | a a]   b: [b b b | b]                  by source, then by id
#pragma once

#include <cstdint>
#include <functional>

#include "espalier/comm/grid.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/partition/held_types.hpp"
#include "espalier/partition/ownership.hpp"

namespace espalier {

/// Features of edges, and whose they are.
template <class Index, class T>
struct OwnedEdges {
  Csr<Index> entries;  ///< of my rows of the matrix, those whose relation has features
  Matrix<T> rows;      ///< beside them, and one row of zeros
};

class OwnedReader {
 public:
  /// For the rows of part grid.row(), or of the one part that there is. `piece_bytes`: about as
  /// much of the file as a rank of a process column reads at a time. All of them must stay.
  OwnedReader(const Grid& grid, const GraphFile& file, const Ownership& ownership,
              std::int64_t piece_bytes = std::int64_t{64} << 20);

  /// Collective over the grid, as all of these; errors are those of GraphFile's members. Row k is
  /// that of ownership.vertex(part, k); columns are global ids.
  template <class Index>
  Csr<Index> rows() const;
  /// Rows of `width` numbers of the types that are held, whose numbers the ownership is of; of
  /// sparse features rows of pairs. T: float or Half.
  template <class T>
  Matrix<T> features(const HeldTypes& held, std::int64_t width) const;
  /// The same, some rows at a time, in their order; on every rank as many times, sometimes none.
  template <class T>
  void features_in_pieces(const HeldTypes& held, std::int64_t width,
                          const std::function<void(Matrix<T>)>& use) const;
  /// Of the edges into the part's vertices, whose relations are held: rows of `width` numbers,
  /// zeros behind those of a narrower relation. Throws UserError(kInput) where a relation has
  /// another number of features than of entries.
  template <class Index, class T>
  OwnedEdges<Index, T> edges(const std::vector<std::uint8_t>& held, std::int64_t width) const;
  /// Of my share of the part: piece grid.column() of grid.replication(), as Ownership::cut cuts it.
  Buffer<std::int32_t> labels() const;
  Matrix<std::uint8_t> multi_labels() const;

 private:
  struct Deal;
  template <class Index, class T>
  class EdgePieces;
  template <class Read>
  void each_piece(std::int64_t bytes, Read read) const;
  template <class T>
  Buffer<T> read_features(const HeldTypes& held, std::int64_t width, std::int64_t begin,
                          std::int64_t end) const;
  template <class T, class Read>
  Buffer<T> collect(std::int64_t width, Read read) const;
  template <class T, class Read>
  Buffer<T> collect_share(std::int64_t width, Read read) const;

  const Grid& grid_;
  const GraphFile& file_;
  const Ownership& ownership_;
  int part_;
  std::int64_t piece_bytes_;
};

}  // namespace espalier
