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

#include "edge_text.hpp"

namespace espalier {

class MatrixMarket : public EdgeLines {
 public:
  /// Reads the header; `values`: they are the weights, where the matrix has any; `part`: as of
  /// EdgeTextOptions. Throws UserError(kInput) with file and line.
  MatrixMarket(const std::string& path, bool values, std::int64_t part = 0);
  std::int64_t nodes() const { return nodes_; }
  bool symmetric() const { return symmetric_; }
  bool weighted() const override { return weighted_; }

 private:
  void add(const PairReader& line, EdgePieces& pieces) const override;
  std::int64_t edges_of(const PairReader& line) const override {
    return symmetric_ && line.first() != line.second() ? 2 : 1;
  }

  bool weighted_ = false, symmetric_ = false;
  std::int64_t nodes_ = 0;
};

}  // namespace espalier
