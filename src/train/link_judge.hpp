// Ranks links by the rows of all vertices, exactly and alike on every grid: the rows and scores are
// the host's, whatever computes the network. A score that is no number is the lowest.
//
// Candidates that are given or drawn: each rank fetches the rows that its links need, some links at
// a time. All vertices: some links of every rank at a time go to all ranks, each counts the
// candidates that it has rows of, and the counts are added.
#pragma once

#include <memory>
#include <vector>

#include "espalier/feature/row_store.hpp"
#include "espalier/nn/link_scores.hpp"
#include "espalier/product/schedule.hpp"
#include "espalier/train/links.hpp"

namespace espalier {

/// Of one rank, in messages and bytes, for a split of so many links, `sides` ends of which are
/// replaced, between `vertices` whose rows are `width` wide; `others`: candidates of a side, 0 for
/// all vertices.
Cost ranking_cost(int ranks, int rows, double links, double sides, double others, double vertices,
                  double width);

/// Bytes of a rank beside its own rows and those of its block row.
double ranking_bytes(int ranks, double links, double sides, double others, double vertices, double width);

class LinkJudge {
 public:
  /// Collective over the grid. Both must outlive it. `against`: how many candidates are drawn
  /// where the file gives none; 0: all vertices.
  LinkJudge(const Grid& grid, const LinkTargets& targets, const LinkScore& score, bool of_both_ends,
            std::int64_t against, std::uint64_t seed);

  /// Collective. `own`: rows of the vertices that this rank judges.
  Evaluation judge(const Cpu& cpu, ConstMatrixView<float> own, ConstMatrixView<float> relations) const;

 private:
  struct Ranks;
  struct Known;

  Ranks rank_candidates(const Cpu& cpu, const RowStore& rows, ConstMatrixView<float> relations,
                        Split split) const;
  Ranks rank_all(const Cpu& cpu, const RowStore& store, ConstMatrixView<float> own,
                 ConstMatrixView<float> relations, Split split) const;
  bool ranks_all(Split split) const { return against_ == 0 && !targets_.given(split).any(); }
  Metrics metrics_of(const Ranks& ranks) const;
  std::shared_ptr<const Known> know() const;

  const Grid& grid_;
  const LinkTargets& targets_;
  LinkScore score_;
  bool of_both_ends_;
  std::int64_t against_;
  std::uint64_t seed_;
  std::shared_ptr<const Known> known_;  ///< where all vertices are candidates
};

}  // namespace espalier
