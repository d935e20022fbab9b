// History in training (FreshGNN): rows of H[l] that have stopped changing are read, not computed,
// and what only they need leaves the minibatch.
//
//     begin     a step's minibatches, before their features are fetched: which rows hit, pruned
//               minibatches, the rows that they read (feature/grid_history.hpp)
//     note      of a minibatch, when its backward pass is done: rows with small gradients are
//               written, cached rows with large ones dropped (train/history_policy.hpp)
//     end       all minibatches of the step are done
//
//     state     what a checkpoint holds; `restore` goes on from it, on any grid
//
// Law: which rows hit, and with what bits, depends on (config, graph) only: step t reads what steps
// up to t - 1 - lag have left, and steps are counted from the first of the job. So prefetching
// changes no bit as long as no step begins more than `lag` steps early (check_history).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "espalier/base/config.hpp"
#include "espalier/feature/grid_history.hpp"
#include "espalier/feature/state_tensor.hpp"
#include "espalier/nn/network.hpp"
#include "espalier/sample/prune.hpp"
#include "espalier/train/history_counts.hpp"
#include "espalier/train/history_policy.hpp"

namespace espalier {

/// Throws UserError(kUsage) where history and other keys do not go together.
void check_history(const Config& config);

/// A minibatch that was pruned, and H[l] of the rows that it reads.
template <class Space>
struct PrunedStepOn {
  std::vector<MinibatchOn<Space>> sampled;                ///< as they were
  std::vector<PrunedMinibatchOn<Space>> pruned;           ///< of each
  std::vector<std::vector<Matrix<float, Space>>> cached;  ///< [minibatch][L] before dropout
  HistoryCounts counts;

  bool empty() const { return pruned.empty(); }
};

template <class Space>
class TrainingHistoryOn {
 public:
  /// `config`: with history.kind other than "none". `batches_per_step`: resolved. Both must stay.
  TrainingHistoryOn(const GridOn<Space>& grid, const Config& config, std::int64_t batches_per_step);

  /// Is there anything to read or to write in a step of this number, from 0?
  bool works(std::int64_t step) const { return can_hit_ && step >= history_.start; }

  /// Collective over the grid. The minibatches of a step become their pruned forms, with the list
  /// of input vertices in place of all; what they were is in `step`.
  void begin(const Space& space, std::int64_t step, std::vector<MinibatchOn<Space>>& minibatches,
             PrunedStepOn<Space>& pruned, std::string_view label);

  /// Not collective: when the backward pass of a minibatch is done. Adds what is written and
  /// evicted to `counts`.
  void note(const Space& space, std::int64_t step, const PrunedMinibatchOn<Space>& pruned,
            Network<float, Space>& network, HistoryCounts& counts);

  /// Collective over the grid.
  void end(const Space& space, std::int64_t step, std::string_view label);

  /// Of what this rank keeps.
  std::int64_t bytes() const;

  /// Collective. What step `next` begins with, `next` the first that has not ended, as matrices
  /// of words, by scope and precision: history/grid-fp32/counts [1024 or lanes, 1], how many
  /// records each shard, or lane, has; .../records [all, 10], those of one after the other: kind
  /// (held, written, dropped), layer, then batch, vertex, age before `next`, score as two words
  /// each, the lower first; .../rows [all, words], their rows as they are kept. Valid until the
  /// next `begin` or `end`.
  std::vector<StateTensor> state(const Space& space, std::int64_t next);

  /// Not collective. Goes on from those tensors of a checkpoint, as step `next`; false where it has
  /// none for this scope and precision: then history is empty.
  bool restore(const Space& space, std::int64_t next, std::span<const StateTensor> tensors);

 private:
  /// One for each lane that this rank keeps, by number. A rank that is alone has the cache of its
  /// grid here, as lane 0 of all batches.
  using Lanes = std::map<std::int64_t, HistoryCacheOn<Space>>;

  /// Shards, or lanes: each is of one rank, whatever the grid.
  std::int64_t parts() const;
  int rank_of_part(std::int64_t part) const;
  std::string tensor_name(const char* what) const;

  std::int64_t lane_number(std::int64_t batch) const;
  HistoryCacheOn<Space>& lane(std::int64_t number);
  HistoryCacheOn<Space>& lane_of(std::int64_t batch) { return lane(lane_number(batch)); }
  void begin_lanes(const Space& space, std::int64_t step, std::span<const MinibatchOn<Space>> minibatches);

  const GridOn<Space>* grid_;
  const HistoryConfig& history_;
  std::int64_t batches_per_step_;
  HistoryShape shape_;
  bool can_hit_;
  std::uint64_t share_;
  std::variant<Lanes, GridHistoryOn<Space>> cache_;
  std::map<std::int64_t, std::set<std::int64_t>> begun_;  ///< which lanes, of steps under way
};

}  // namespace espalier
