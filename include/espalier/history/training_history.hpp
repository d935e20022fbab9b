// History in training (FreshGNN): rows of H[l] that have stopped changing are read, not computed,
// and what only they need leaves the minibatch.
//
//     begin     a step's minibatches, before their features are fetched: which rows hit, pruned
//               minibatches, the rows that they read (history/grid_history.hpp)
//     draw      the same of minibatches that were not drawn yet (history.draw = "needed"): of them
//               only what is left is (history/prune.hpp)
//     note      of a minibatch, when its backward pass is done: rows with small gradients are
//               written, cached rows with large ones dropped (history/history_policy.hpp)
//     end       all minibatches of the step are done
//
//     state     what a checkpoint holds; `restore` goes on from it, on any grid
//     held      what there is, for the report
//
// Law: which rows hit, and with what bits, depends on (config, graph) only: step t reads what steps
// up to t - 2 have left, and steps are counted from the first of the job. So prefetching changes no
// bit as long as no step begins more than one step early (check_history).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "espalier/base/config.hpp"
#include "espalier/comm/counters.hpp"
#include "espalier/file/state_tensor.hpp"
#include "espalier/history/grid_history.hpp"
#include "espalier/history/history_policy.hpp"
#include "espalier/history/prune.hpp"
#include "espalier/nn/network.hpp"
#include "espalier/sample/epoch_sampler.hpp"
#include "espalier/sample/sampler.hpp"

namespace espalier {

/// Throws UserError(kUsage) where history and other keys do not go together.
void check_history(const Config& config);

/// What history counts is in this group of a report; what it moves is booked under this label,
/// beside what it spares.
inline constexpr const char* kHistoryGroup = "history";
inline constexpr const char* kHistoryLabel = "fetch/history";
/// How the names of its tensors in a checkpoint begin.
inline constexpr const char* kHistoryTensors = "history/";

/// What history counts, of some minibatches: the group "history" of a report.
///
///     needed_rows           rows of H[1] .. H[L-1] that layers read
///     hits                  of them those that history had
///     recomputed            and those that it had, and that were computed
///     input_rows, edges     input rows, and entries of blocks, that are left
///     written, evicted      rows, as minibatches asked for
///     input_rows_of_sample, edges_of_sample   before they were pruned; not known where only what
///                           is left was drawn
Counters history_counters();

/// What the keys say of a cache.
HistoryShape history_shape(const Config& config);

/// Rows of one layer that ranks hold when a step begins, of ages from `youngest` = 2^k to
/// `oldest` = 2^(k+1) - 1.
struct HeldHistory {
  int layer = 0;
  std::int64_t youngest = 0, oldest = 0, rows = 0;
};

/// A row that a rank holds.
struct HeldRow {
  int layer = 0;
  std::int64_t age = 0;  ///< 1 or more
};

/// Collective. What all ranks hold, by layer and age, the same on every grid; none that are empty.
std::vector<HeldHistory> count_held(const Communicator& world, std::span<const HeldRow> held);

/// Minibatches that were pruned, and H[l] of the rows that they read.
template <class Space>
struct PrunedStepOn {
  std::vector<PrunedMinibatchOn<Space>> pruned;  ///< of each
  /// [minibatch][L] before dropout
  std::vector<std::vector<Matrix<float, Space>>> cached;
  std::vector<std::vector<Array<Space, std::uint8_t>>> recomputed;  ///< [minibatch] JoinedRows
  Counters counts = history_counters();
  SampleCounts drawn;  ///< by `draw`

  bool empty() const { return pruned.empty(); }
};

template <class Space>
class TrainingHistoryOn {
 public:
  /// `config`: with history.kind other than "none". `batches_per_step`: resolved. All must stay.
  TrainingHistoryOn(const GridOn<Space>& grid, const Config& config, std::int64_t batches_per_step);

  /// Can any row be read, in any step?
  bool can_hit() const { return can_hit_; }
  /// Is there anything to read or to write in a step of this number, from 0?
  bool works(std::int64_t step) const { return can_hit_ && step >= history_.start; }
  /// Will it work in a later step?
  bool waits(std::int64_t step) const { return can_hit_ && step < history_.start; }
  /// What a step before history.start adds to the counts of its epoch: all of its minibatches was
  /// computed.
  Counters counts_before_start(std::span<const MinibatchOn<Space>> minibatches) const;

  /// Collective over the grid. The minibatches of a step become their pruned forms, with the list
  /// of input vertices in place of all.
  void begin(const Space& space, std::int64_t step, std::vector<MinibatchOn<Space>>& minibatches,
             PrunedStepOn<Space>& pruned, std::string_view label);

  /// Are the minibatches of steps that it works in left to `draw`?
  bool draws_needed() const { return history_.draw == "needed"; }

  /// Collective over the grid and the sampler's. These batches of an epoch, a step's that this rank
  /// keeps, as `begin` leaves them; of the sample only what is left is drawn.
  void draw(const Space& space, std::int64_t step, SamplerOn<Space>& sampler, const EpochPlan& plan,
            std::span<const std::int64_t> batches, std::vector<MinibatchOn<Space>>& minibatches,
            PrunedStepOn<Space>& pruned, std::string_view label);

  /// Not collective: when the backward pass of a minibatch is done. Adds what is written and
  /// evicted to `counts`.
  void note(const Space& space, std::int64_t step, const PrunedMinibatchOn<Space>& pruned,
            std::span<const Array<Space, std::uint8_t>> recomputed, Network<float, Space>& network,
            Counters& counts);

  /// Collective over the grid.
  void end(const Space& space, std::int64_t step, std::string_view label);

  /// Of what this rank keeps: the most so far, between steps and at the end of one.
  std::int64_t bytes() const { return std::max(most_bytes_, bytes_now()); }

  /// Collective. What step `next` begins with, `next` the first that has not ended, as matrices
  /// of words, by scope and precision: history/grid-fp32/counts [1024 or lanes, 1], how many
  /// records each shard, or lane, has; .../records [all, 10], those of one after the other: kind
  /// (held, written, dropped), layer, then batch, vertex, age before `next`, score as two words
  /// each, the lower first; .../rows [all, words], their rows as they are kept. Valid until the
  /// next `begin` or `end`.
  std::vector<StateTensor> state(const Space& space, std::int64_t next);

  /// Collective. What step `next` may read, of all caches. `next` as above.
  std::vector<HeldHistory> held(const Space& space, std::int64_t next);

  /// What gradients through rows that were computed by a draw count (history.recompute).
  double recomputed_weight() const {
    return shape_.recompute > 0 ? 0x1p32 / static_cast<double>(shape_.recompute) : 1;
  }

  /// Not collective. Goes on from those tensors of a checkpoint, as step `next`; false where it has
  /// none for this scope and precision: then history is empty.
  bool restore(const Space& space, std::int64_t next, std::span<const StateTensor> tensors);

 private:
  /// One for each lane that this rank keeps, by number. A rank that is alone has the cache of its
  /// grid here, as lane 0 of all batches.
  using Lanes = std::map<std::int64_t, HistoryCacheOn<Space>>;

  std::int64_t bytes_now() const;
  /// Shards, or lanes: each is of one rank, whatever the grid.
  std::int64_t parts() const;
  int rank_of_part(std::int64_t part) const;
  std::string tensor_name(const char* what) const;

  std::int64_t lane_number(std::int64_t batch) const;
  HistoryCacheOn<Space>& lane(std::int64_t number);
  HistoryCacheOn<Space>& lane_of(std::int64_t batch) { return lane(lane_number(batch)); }
  void begin_step(const Space& space, std::int64_t step, std::span<const std::int64_t> batches);
  std::vector<HistoryFoundOn<Space>> find(const Space& space, std::span<const MinibatchOn<Space>> minibatches,
                                          std::string_view label);
  void read(const Space& space, std::span<HistoryFoundOn<Space>> found,
            std::vector<MinibatchOn<Space>>& minibatches, PrunedStepOn<Space>& pruned,
            std::string_view label);

  const GridOn<Space>* grid_;
  const HistoryConfig& history_;
  std::int64_t batches_per_step_;
  std::int64_t layers_;  ///< of the network
  HistoryShape shape_;
  bool can_hit_;
  std::uint64_t share_;
  std::variant<Lanes, GridHistoryOn<Space>> cache_;
  std::int64_t most_bytes_ = 0;
  std::map<std::int64_t, std::set<std::int64_t>> begun_;  ///< which lanes, of steps under way
};

}  // namespace espalier
