// What the holders of a row that is cut know of the whole row, so that each can make the draws of
// it that fall on its own entries.
#pragma once

#include <algorithm>
#include <cstdint>

#include "espalier/base/error.hpp"
#include "espalier/base/fixed_point.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/partition/owner_map.hpp"
#include "espalier/product/rank_lists.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

/// What a draw by weight asks of a row: of its entries of positive weight, without the diagonal
/// where it is kept out of the draw.
struct RowSupport {
  std::int64_t size = 0;
  float largest = 0;        ///< of their weights
  std::uint64_t total = 0;  ///< of their integer weights, in the row's scale; 0: not known

  ESPALIER_HD int shift() const { return shift_for_sum(static_cast<double>(largest), size); }
};

/// Calls use(begin, end) for the places of a row before and behind one that is kept out, or -1.
template <class Use>
void without_place(std::int64_t size, std::int64_t kept_out, const Use& use) {
  if (kept_out >= 0) use(std::int64_t{0}, kept_out);
  use(kept_out + 1, size);
}

/// All but the total. kept_out: the place of the diagonal, or -1.
template <class Index>
RowSupport support_of(const RowView<Index>& row, std::int64_t kept_out) {
  // Bits of numbers ascend with them from 0 on, are below 0 with theirs, and come in vectors.
  std::int32_t largest = 0;
  std::int64_t size = 0;
  without_place(row.size, kept_out, [&](std::int64_t begin, std::int64_t end) {
    for (auto k = begin; k < end; ++k) {
      const auto bits = bit_cast<std::int32_t>(row.values[k]);
      largest = std::max(largest, bits);
      size += bits > 0;
    }
  });
  return {.size = size, .largest = bit_cast<float>(largest)};
}

/// The sum of integer weights of such a row.
template <class Index>
std::uint64_t total_weight(const RowView<Index>& row, std::int64_t kept_out, int shift) {
  std::uint64_t total = 0;
  without_place(row.size, kept_out, [&](std::int64_t begin, std::int64_t end) {
    for (auto k = begin; k < end; ++k) total += fixed_point_weight(static_cast<double>(row.values[k]), shift);
  });
  return total;
}

/// What holders of pieces are told of their rows: nothing, where in the row their entries are, or
/// its support, perhaps without the diagonal.
enum class WholeRowFacts { kNone, kPlaces, kSupports, kSupportsOffDiagonal };

/// A row of which somebody holds all entries, or a piece.
struct WholeRow {
  std::int64_t size = 0;       ///< entries of the whole row
  std::int64_t diagonal = -1;  ///< which of them is the vertex's own, or -1
  bool is_here = true;         ///< is the piece the row?
  RankCursor places = {};      ///< of the piece's entries in the row
  const RowSupport* support = nullptr;

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
    if (sizes_.size() % kTogether == 0) begins_.push_back(lists_.size());
    offsets_.push_back(narrow(lists_.size() - begins_.back()));
    lists_.add(places, size);
    sizes_.push_back(narrow(size));
    if (diagonal >= 0) diagonals_.resize(sizes_.size() - 1, kNone);
    if (diagonal >= 0 || !diagonals_.empty())
      diagonals_.push_back(diagonal < 0 ? kNone : static_cast<std::uint32_t>(diagonal));
  }

  /// Piece by piece, instead.
  void add(const RowSupport& support) { supports_.push_back(support); }

  bool is_piece(std::int64_t row) const { return (pieces_.words[row / 64] >> (row % 64) & 1) != 0; }
  /// Of a row that is a piece of so many entries.
  WholeRow of(std::int64_t row, std::int64_t entries) const {
    const auto piece = PlaceOf{pieces_.words.data(), pieces_.before.data()}(row);
    if (!supports_.empty()) return {.is_here = false, .support = &supports_[piece]};
    const std::int64_t size = sizes_[piece];
    const auto diagonal = piece < std::ssize(diagonals_) ? diagonals_[piece] : kNone;
    return {size, diagonal == kNone ? -1 : static_cast<std::int64_t>(diagonal), false,
            RankCursor(lists_.bits(), begins_[piece / kTogether] + offsets_[piece], entries, size), nullptr};
  }
  std::int64_t list_bytes() const { return lists_.bytes(); }
  /// All others.
  std::int64_t bytes() const {
    return 4 * (std::ssize(sizes_) + std::ssize(diagonals_) + std::ssize(offsets_)) +
           8 * (std::ssize(begins_) + 2 * std::ssize(pieces_.words)) +
           static_cast<std::int64_t>(sizeof(RowSupport)) * std::ssize(supports_);
  }

 private:
  static constexpr std::int64_t kTogether = 64;  // lists with one begin
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static std::uint32_t narrow(std::int64_t number) {
    ESPALIER_CHECK(number < kNone, "a row of {} entries, in a vertex cut", number);
    return static_cast<std::uint32_t>(number);
  }

  PartMarks<Cpu> pieces_;
  Buffer<std::uint32_t> sizes_, diagonals_, offsets_;  // of each piece; bits from its begin on
  Buffer<std::int64_t> begins_;                        // of each kTogether
  RankLists lists_;
  Buffer<RowSupport> supports_;  // of each piece
};

/// The rows of a holder by their vertices.
struct HeldWholeRows {
  const WholeRows* rows;
  PlaceOf row_of;  ///< of the block

  /// Of a vertex of which the holder has so many entries.
  WholeRow operator()(std::int64_t vertex, std::int64_t entries) const {
    const std::int64_t row = row_of(vertex);
    return rows->is_piece(row) ? rows->of(row, entries) : WholeRow{.size = entries};
  }
};

}  // namespace espalier
