// Ranks links by the rows of all vertices, exactly and alike on every grid: the rows and scores are
// the host's, whatever computes the network. A score that is no number is the lowest.
//
// Candidates that are given or drawn: each rank fetches the rows that its links need, some links at
// a time. Pairs that all links are ranked among: each rank scores its share, and all get the
// scores. All vertices: some links of every rank at a time go to all ranks, each counts the
// candidates that it has rows of, and the counts are added.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "espalier/product/schedule.hpp"
#include "espalier/train/link_candidates.hpp"
#include "link_scorer.hpp"

namespace espalier {

/// A split that is ranked.
struct RankingSize {
  int ranks = 1, rows = 1;  ///< of the grid
  double links = 0;
  double sides = 1;                ///< ends of a link that are replaced
  double others = 0;               ///< candidates of a side; 0: all vertices
  double pairs = 0;                ///< or pairs that all links are ranked among
  double vertices = 0, width = 0;  ///< of the graph, of their rows
};

/// Of one rank, in messages and bytes.
Cost ranking_cost(const RankingSize& size);

/// Bytes of a rank beside its own rows and those of its block row.
double ranking_bytes(const RankingSize& size);

class LinkEvaluator {
 public:
  /// Collective over the grid. Grid and targets must outlive it.
  LinkEvaluator(const Grid& grid, const LinkTargets& targets, const TrainConfig& train);

  /// Collective. `own`: rows of the vertices that this rank evaluates.
  Evaluation evaluate(const Cpu& cpu, ConstMatrixView<float> own,
                      std::span<const ConstMatrixView<float>> tensors) const;

 private:
  struct Ranks;
  struct Known;

  Ranks rank_candidates(const Cpu& cpu, const RowStore& store, Scorer& scores, Split split) const;
  Ranks rank_among_pairs(const Cpu& cpu, const RowStore& store, Scorer& scores, Split split) const;
  Ranks rank_all(const Cpu& cpu, const RowStore& store, ConstMatrixView<float> own, Scorer& scores,
                 Split split) const;
  bool ranks_all(Split split) const { return !candidates_ && !targets_.given(split).any(); }
  bool ranks_filtered(Split split) const {
    return ranks_all(split) || (!targets_.given(split).any() && candidates_->filtered());
  }
  Metrics metrics_of(const Ranks& ranks, Split split) const;
  std::shared_ptr<const Known> know() const;

  const Grid& grid_;
  const LinkTargets& targets_;
  LinkScore score_;
  bool of_both_ends_;
  /// That are drawn where the file gives none; none: all vertices.
  std::optional<const LinkCandidates> candidates_;
  std::shared_ptr<const Known> known_;  ///< where all vertices are candidates
};

}  // namespace espalier
