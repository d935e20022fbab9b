// Which steps will look for which rows of history, as far as that is known: of an epoch whose
// minibatches are all drawn. A row that no step will find before it is too old need not be kept
// (history.admit = "awaited").
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "espalier/base/id_map.hpp"

namespace espalier {

/// Of one epoch.
class HistoryUses {
 public:
  /// Nothing is known of steps from `end` on.
  explicit HistoryUses(std::int64_t end) : end_(end) {}

  /// A step will look for a row of H[layer]. Steps do not descend.
  void add(int layer, std::int64_t vertex, std::int64_t step);
  /// Will a step in (after, until] look for it? What is not known may be. Of one row `after` does
  /// not descend: what lies behind is forgotten.
  bool awaited(int layer, std::int64_t vertex, std::int64_t after, std::int64_t until);

 private:
  struct Use {
    std::int64_t step;
    std::int64_t next;  ///< of the same row, or -1
  };
  struct Chain {
    std::int64_t key, first, last;
  };

  std::int64_t end_, capacity_ = 1024;
  IdMap numbers_{capacity_};  ///< of chains_
  std::vector<Chain> chains_;
  std::vector<Use> uses_;
};

/// Of the epochs that have begun and not ended.
class HistoryUsesOfEpochs {
 public:
  /// Those of the epoch whose last step is end - 1, instead of what there was.
  HistoryUses& of_epoch_until(std::int64_t end) {
    return epochs_.insert_or_assign(end, HistoryUses(end)).first->second;
  }
  /// Will a step in (after, until] look for what step `step` writes? Where its epoch is not known:
  /// yes.
  bool awaited(std::int64_t step, int layer, std::int64_t vertex, std::int64_t after, std::int64_t until) {
    const auto epoch = epochs_.upper_bound(step);
    return epoch == epochs_.end() || epoch->second.awaited(layer, vertex, after, until);
  }
  /// A step has ended, and all before it.
  void forget(std::int64_t step) { epochs_.erase(epochs_.begin(), epochs_.upper_bound(step + 1)); }

 private:
  std::map<std::int64_t, HistoryUses> epochs_;  ///< by the step after their last
};

}  // namespace espalier
