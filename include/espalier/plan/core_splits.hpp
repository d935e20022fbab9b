// Ranks x threads: the ways to share the cores of a node among ranks, and which is fastest
// (docs/cores.md). `espalier calibrate` measures them, machine files hold them (node.core_splits),
// `espalier plan` compares.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/base/cores.hpp"
#include "espalier/comm/session.hpp"

namespace espalier {

struct CoreSplit {
  std::int64_t ranks = 1, threads = 1;  ///< of a node, of a rank
  double steps = 0;                     ///< standard steps that a node makes per second; 0:
                                        ///< not measured
};

/// All whose ranks x threads are `cores`, of `most_ranks` at most, few ranks first.
std::vector<CoreSplit> core_splits(std::int64_t cores, std::int64_t most_ranks);
/// What rank `place` of a split runs on, of cores near each other (near_each_other).
CoreList cores_of(const CoreSplit& split, const CoreList& near, std::int64_t place);
/// The one with the most steps, of equals that with fewer ranks, whose copies take less memory;
/// null where none was measured.
const CoreSplit* fastest_of(const std::vector<CoreSplit>& splits);

/// "1x8 4.25, 2x4 5.5": ranks x threads, steps per second.
std::string core_splits_in_words(const std::vector<CoreSplit>& splits);
/// Throws UserError(kUsage) with `where` for what is no such list.
std::vector<CoreSplit> parse_core_splits(const std::string& words, const std::string& where);
/// A table: rates, and each beside the fastest.
std::string core_split_table(const std::vector<CoreSplit>& splits);
/// What is to be said of a job of so many ranks a node and threads by a machine that measured
/// splits, or nothing: where it is one of them and not the fastest, or none of them.
std::string advice_on_split(const std::vector<CoreSplit>& splits, std::int64_t ranks, std::int64_t threads);

// A standard step is what every rank of a split does at once: it draws minibatches of GraphSAGE
// 15,10,5, 512 seeds each, fetches their rows of 128 numbers and takes them through three layers of
// sums and products. Ranks have a graph and rows of their own, so nothing is sent: what more ranks
// of a node send each other is not in it.

/// The ranks of a node in a split: those that are left over wait without taking a core.
class SplitRanks {
 public:
  /// Collective. This rank runs on its part of the cores of its node while this lives.
  SplitRanks(const Communicator& world, const NodePlace& node, const CoreSplit& split, const CoreList& near);

  bool takes_part() const { return takes_part_; }
  /// Were all ranks that take part allowed to move to their cores?
  bool moved() const { return moved_; }
  /// The ranks that take part, of all nodes; for one of them.
  const Communicator& group() const { return group_; }
  /// That this rank runs on, if it takes part.
  const CoreList& cores() const { return cores_; }
  /// Collective over all: waits for those that take part.
  void wait() const;

 private:
  const Communicator& world_;
  bool takes_part_, moved_ = true;
  CoreList cores_;
  Communicator group_;
  OnCores on_;
};

/// Collective. The cores that ranks of my node may run on, near each other, as many as the least
/// node has.
CoreList cores_of_node(const Communicator& world);
/// Collective. Measures the splits, one after another: a second or two each.
void measure_core_splits(const Communicator& world, const NodePlace& node, const CoreList& near,
                         std::vector<CoreSplit>& splits);

}  // namespace espalier
