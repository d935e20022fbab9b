// The task "links": edges (head, relation, tail) are told from others that are made up
// (sample/link_examples.hpp), by a score of the rows that the network gives their two ends
// (nn/link_scores.hpp); a relation may have a trained row of its own.
//
// A link is evaluated by its rank among candidates, which replace one of its ends: those that the
// file gives, some that are drawn (link_candidates.hpp), or all vertices that the relation allows
// there. With g of them above its score and e equal to it,
//
//     rank = 1 + g + e / 2,     MRR = mean of 1 / rank,     Hits@k = share with rank <= k,
//     AUC  = mean of 1 - (g + e / 2) / candidates
//
// over links and, where both ends are replaced, both ends: the "realistic" rank of PyKEEN, and
// OGB's. Where the file gives pairs that are no links, all links of the split are ranked among
// them: then Hits@k is the share of links that fewer than k of the pairs come before, as in OGB's
// ogbl-ppa, -collab and -ddi. Filtered metrics leave candidates out that are links of any split.
#pragma once

#include <memory>
#include <vector>

#include "espalier/sample/link_examples.hpp"
#include "espalier/train/task.hpp"

namespace espalier {

/// Vertices that one end of each link of a list is replaced by, [links of this rank, candidates];
/// or pairs that all links are ranked among.
struct GivenCandidates {
  Matrix<std::int64_t> of_heads, of_tails;  ///< without columns: none are given
  std::int64_t non_links = 0;               ///< of all ranks, which have even shares of them
  Matrix<std::int64_t> pairs = {};          ///< [mine, 2]: head, tail

  bool any() const { return of_heads.columns + of_tails.columns + non_links > 0; }
};

struct LinkTargets : Targets {
  std::unique_ptr<LinkSource> train_links;
  LinkList valid, test;
  GivenCandidates of_valid, of_test;
  bool directed = true;
  Ownership blocks;  ///< of the vertices by block rows

  std::int64_t relations() const { return std::ssize(train_links->ends()); }
  const LinkList& links(Split split) const {
    return split == Split::kTrain ? train_links->list() : split == Split::kValid ? valid : test;
  }
  /// Of valid or test.
  const GivenCandidates& given(Split split) const { return split == Split::kValid ? of_valid : of_test; }
};

/// What train.* says of negatives.
Negatives negatives_of(const TrainConfig& train);

/// Is train.metric of ranks that leave links out of the candidates?
bool is_filtered(const TrainConfig& train);

/// Collective. What score_links, best_tails and links_of_file want: the links of a file, which may
/// have none, and relations and what they join as `graph` says.
std::unique_ptr<LinkTargets> read_links_to_ask(const Grid& grid, const GraphFile& file,
                                               const GraphInfo& graph, const Ownership& blocks,
                                               const Config& config);

/// Collective. The scores of links, which every rank has all of, the same on every grid. `own`:
/// rows of the vertices that this rank evaluates; `tensors`: those of the task. Throws
/// UserError(kDiverged), on every rank, where a score is not finite.
std::vector<float> score_links(const Cpu& cpu, const Grid& grid, const LinkTargets& targets,
                               const TrainConfig& train, ConstMatrixView<float> own,
                               std::span<const ConstMatrixView<float>> tensors,
                               std::span<const LinkTriple> links);

struct LinkAnswer {
  std::int64_t vertex;  ///< -1: there is no other
  float score;
};

/// Collective. The same, of links whose tails are asked for: [heads, k] those of the highest scores
/// among all vertices that the relation allows but the head itself, best first, ties by id.
std::vector<LinkAnswer> best_tails(const Cpu& cpu, const Grid& grid, const LinkTargets& targets,
                                   const TrainConfig& train, ConstMatrixView<float> own,
                                   std::span<const ConstMatrixView<float>> tensors,
                                   std::span<const LinkTriple> heads, std::int64_t k);

/// Collective. Those of all splits.
KnownLinks links_of_file(const Grid& grid, const LinkTargets& targets);

extern const TaskKind kLinksKind;

}  // namespace espalier
