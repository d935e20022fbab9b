// Judges the logits of several labels per vertex, exactly and alike on every grid.
//
// A ranking needs all scores of a label side by side: the vertices that each rank judges are dealt
// out by columns (column_deal.hpp), once their labels and in every evaluation their logits. What a
// rank then counts of its columns (ranking.hpp) are integers and one number per column, which all
// ranks get by a sum in which each has one term.
#pragma once

#include <array>

#include "column_deal.hpp"
#include "espalier/train/labels.hpp"
#include "espalier/train/ranking.hpp"

namespace espalier {

class LabelJudge {
 public:
  /// Collective over the grid. `targets` must outlive it.
  LabelJudge(const Grid& grid, const LabelTargets& targets);

  /// How many vertices of a split have any known label, and is there a label that some of them have
  /// and others have not? Otherwise nothing is ranked there. The same on every rank.
  std::int64_t vertices(Split split) const { return counts_[static_cast<std::size_t>(split)]; }
  bool ranks(Split split) const { return ranks_[static_cast<std::size_t>(split)] > 0; }

  /// Collective. `rows`: logits of the vertices that this rank judges, row after row, memory of the
  /// host.
  Evaluation judge(const float* rows, int threads) const;

 private:
  struct JudgedSplit {
    std::span<const std::int64_t> rows;  ///< of this rank's vertices, those in the split
    ColumnDeal deal;
    Matrix<std::uint8_t> labels;  ///< [my columns, vertices of the split]
  };

  std::vector<LabelRanking> rank_columns(const JudgedSplit& split, const float* rows, int threads) const;

  const Communicator& world_;
  std::int64_t columns_;
  std::vector<JudgedSplit> splits_;
  std::array<std::int64_t, 3> counts_ = {}, ranks_ = {};
};

}  // namespace espalier
