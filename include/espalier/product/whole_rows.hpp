// What the holders of a row that is cut know of the whole row, so that each can make the draws of
// it that fall on its own entries.
#pragma once

#include <cstdint>

#include "espalier/partition/owner_map.hpp"
#include "espalier/product/rank_lists.hpp"

namespace espalier {

/// A row of which somebody holds all entries, or a piece.
struct WholeRow {
  std::int64_t size = 0;       ///< entries of the whole row
  std::int64_t diagonal = -1;  ///< which of them is the vertex's own, or -1
  bool is_here = true;         ///< is the piece the row?
  RankCursor places = {};      ///< of the piece's entries in the row

  /// Which entry of the piece is that one of the row, or -1. Asked in ascending order.
  std::int64_t find(std::int64_t place) { return is_here ? place : places.find(place); }
};

/// Of the rows of a holder that have other holders.
class WholeRows {
 public:
  /// Pieces are rows of a block with so many; `is_piece(row)`.
  template <class IsPiece>
  WholeRows(std::int64_t rows, IsPiece is_piece) : pieces_(make_marks(rows, is_piece)) {}
  /// Piece by piece, ascending: where its entries are among `size`, and its vertex's own.
  template <class Places>
  void add(const Places& places, std::int64_t size, std::int64_t diagonal) {
    rows_.push_back({size, diagonal, lists_.add(places, size)});
  }

  bool is_piece(std::int64_t row) const { return (pieces_.words[row / 64] >> (row % 64) & 1) != 0; }
  /// Of a row that is a piece of so many entries.
  WholeRow of(std::int64_t row, std::int64_t entries) const {
    const auto& of_row = rows_[PlaceOf{pieces_.words.data(), pieces_.before.data()}(row)];
    return {of_row.size, of_row.diagonal, false, {lists_.bits(), of_row.begin, entries, of_row.size}};
  }
  std::int64_t bytes() const {
    return lists_.bytes() + static_cast<std::int64_t>(rows_.size() * sizeof(Row)) +
           16 * static_cast<std::int64_t>(pieces_.words.size());
  }

 private:
  struct Row {
    std::int64_t size, diagonal, begin;
  };
  PartMarks<Cpu> pieces_;
  Buffer<Row> rows_;
  RankLists lists_;
};

}  // namespace espalier
