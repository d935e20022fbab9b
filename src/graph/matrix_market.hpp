// A matrix in the coordinate format of Matrix Market (Boisvert, Pozo, Remington 1996, NISTIR 5935):
//
//     %%MatrixMarket matrix coordinate real general
//     % comments
//     ROWS COLUMNS ENTRIES
//     i j value                   ENTRIES times, counted from 1
//
// It is the adjacency matrix as it stands: entry (i, j), in row i and column j, is an edge from
// vertex j - 1 to vertex i - 1. Of a symmetric one entries off the diagonal stand for both
// directions. Pattern, integer and real matrices can be read, general and symmetric ones.
#pragma once

#include <cstdint>
#include <string>

#include "espalier/graph/edge_source.hpp"

namespace espalier {

class MatrixMarket : public EdgeSource {
 public:
  /// Reads the header; `values`: they are the weights, where the matrix has any. Throws
  /// UserError(kInput) with file and line.
  MatrixMarket(const std::string& path, bool values);
  std::int64_t nodes() const { return nodes_; }
  bool symmetric() const { return symmetric_; }

  void read(const std::function<void(const EdgePiece&)>& use) const override;
  bool weighted() const override { return weighted_; }
  std::string name() const override { return path_; }
  std::string place(std::int64_t edge) const override;

 private:
  /// Calls visit(row, column, value, place) for each entry; ids from 0.
  template <class Visit>
  void each(Visit visit) const;

  std::string path_;
  bool valued_ = false, weighted_ = false, symmetric_ = false;
  std::int64_t nodes_ = 0, entries_ = 0;
};

}  // namespace espalier
