// What `espalier verify` runs: two graphs that are made in the memory of every rank, so that no
// file and no folder is needed, and jobs on them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "commands.hpp"
#include "espalier/file/hdf5_memory.hpp"
#include "espalier/job/job.hpp"
#include "espalier/partition/order.hpp"
#include "espalier/train/training_state.hpp"
#include "verify_lines.hpp"

namespace espalier {

struct MadeGraphs {
  hdf5::WrittenBytes plain, typed;  ///< of one type; of three types and six relations
  Order order;                      ///< of the plain one
  std::int64_t batches = 0;         ///< in an epoch on it
  std::string digests;              ///< of what was read

  hdf5::WrittenBytes& of(bool is_typed) { return is_typed ? typed : plain; }
};

/// Collective. Every rank makes all of each.
void make_graphs(const Communicator& world, MadeGraphs& graphs);

using Keys = std::vector<std::string>;  ///< of a config, "model.kind=gat"

/// The config of a run with so many copies of each block row.
Config verify_config(const VerifyArguments& arguments, std::int64_t copies, const Keys& keys);

/// Runs jobs, each a line or several. All members are collective.
class VerifyRuns {
 public:
  /// All of what is given must outlive it.
  VerifyRuns(const Communicator& world, const VerifyArguments& arguments, MadeGraphs& graphs,
             VerifyLines& lines);

  /// An epoch of a sampler by every schedule, on every grid.
  void draws(const std::string& name, bool typed, const Keys& keys);

  /// Two epochs of training, on the grids in turn. `key`: as VerifyLines::check() takes it.
  void training(const std::string& group, const std::string& name, bool typed, const Keys& keys,
                const std::string& key = {});

  /// The same, stopped in the second epoch and gone on with from its state, which has the bits of
  /// the training in one piece: the line `key`.
  void restart(const std::string& name, const std::string& key, bool typed, const Keys& keys);

 private:
  /// Is given a state to keep; may be empty.
  using KeepState = std::function<void(const Job&, const TrainingState&)>;

  Job open(JobKind kind, bool typed, std::int64_t copies, const Keys& keys);
  std::string draw(bool typed, std::int64_t copies, const Keys& keys);
  /// Trains to the end or, where the state is to be kept, to the first step of epoch 2; from
  /// `state` on where there is one.
  std::string train(bool typed, std::int64_t copies, const Keys& keys, std::vector<double>& losses,
                    const TrainingState* state = nullptr, const KeepState& keep = {});
  std::int64_t next_copies() { return copies_[turn_++ % copies_.size()]; }

  const Communicator& world_;
  const VerifyArguments& arguments_;
  MadeGraphs& graphs_;
  VerifyLines& lines_;
  std::vector<std::int64_t> copies_;  ///< of a block row, on each grid
  std::size_t turn_ = 0;
};

}  // namespace espalier
