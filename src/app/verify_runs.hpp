// What `espalier verify` runs: two graphs that are made in the memory of every rank, so that no
// file and no folder is needed, and jobs on them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/file/hdf5_output.hpp"
#include "espalier/job/job.hpp"
#include "espalier/partition/order.hpp"
#include "espalier/train/training_state.hpp"

namespace espalier {

// The lines of `espalier verify`: what was found, beside what is expected.

class VerifyLines {
 public:
  /// `on_gpu`: losses are judged by a tolerance; `prints_values`: nothing is judged, and finish()
  /// prints the table of expected values.
  VerifyLines(const Communicator& world, bool on_gpu, bool prints_values)
      : world_(world), on_gpu_(on_gpu), prints_values_(prints_values) {}

  /// Collective. A line: what this rank has found, in words or numbers. `key`: of the value, where
  /// it is that of another line, "draws labor"; `where`: on which grid, for people.
  void check(const std::string& group, const std::string& name, const std::string& found,
             const std::string& key = {}, const std::string& where = {});

  /// Collective. The same where the words that are right are known; `cause`: of others.
  void check_rule(const std::string& group, const std::string& name, const std::string& found,
                  const std::string& expected, const std::string& cause);

  /// Collective. The last line. Throws UserError(kInternal) where a line differs, with what the
  /// first one means.
  void finish() const;

 private:
  void judge(const std::string& group, const std::string& name, const std::string& found,
             const std::string& expected, const std::string& cause, const std::string& where);

  const Communicator& world_;
  bool on_gpu_, prints_values_;
  std::vector<std::pair<std::string, std::string>> values_;  ///< by key, as found
  int lines_ = 0, differing_ = 0;
  std::string first_, meaning_;  ///< of the first that differs
};

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
Keys joined(Keys keys, const Keys& more);

/// The config of a run with so many copies of each block row.
Config verify_config(const VerifyArguments& arguments, std::int64_t copies, const Keys& keys);

/// A job on one of the graphs, of which a line or several are checked.
struct VerifiedRun {
  std::string group;  ///< "draws": an epoch of a sampler, by every schedule, on every grid;
                      ///< "restart": a training that is stopped in its second epoch and gone on
                      ///< with; else a training in one piece, on the grids in turn
  std::string name;
  bool typed = false;
  Keys keys = {};
  std::string key = {};  ///< as VerifyLines::check() takes it
};

class VerifyRuns {
 public:
  /// All of what is given must outlive it.
  VerifyRuns(const Communicator& world, const VerifyArguments& arguments, MadeGraphs& graphs,
             VerifyLines& lines);

  /// Collective.
  void check(const VerifiedRun& run);

 private:
  /// Is given the state at the first step of epoch 2, where training stops then; may be empty.
  using KeepState = std::function<void(const Job&, const TrainingState&)>;

  Job open(JobKind kind, bool typed, std::int64_t copies, const Keys& keys);
  void check_draws(const VerifiedRun& run);
  /// From `from` on where there is one; adds the losses of epochs. All of them in words, the digest
  /// of the weights, and the score on the test split.
  std::string train(const VerifiedRun& run, std::int64_t copies, std::vector<double>& losses,
                    const TrainingState* from, const KeepState& keep);
  std::string train_in_two(const VerifiedRun& run, std::int64_t copies, std::vector<double>& losses);

  const Communicator& world_;
  const VerifyArguments& arguments_;
  MadeGraphs& graphs_;
  VerifyLines& lines_;
  std::vector<std::int64_t> copies_;  ///< of a block row, on each grid
  std::size_t turn_ = 0;
};

// What samples and losses are made of and no graph is needed for, computed here and digested: each
// has one result for all machines, ranks, threads, instruction sets and compilers (design, 4.1 and
// 4.2). `espalier verify` knows them.

/// Exponentials, logarithms, roots, powers and cosines of base/elementary.hpp.
std::string digest_of_functions();
/// The counter-based words that all draws are made of.
std::string digest_of_random_numbers();
/// Every float16 as float32, and numbers of many magnitudes as float16.
std::string digest_of_halves();
/// By so many threads.
std::string digest_of_dense_products(int threads);

/// Collective. 1 + .. + 1000, and a number that goes away again, dealt to the ranks: 500500.
double exact_sum(const Communicator& world);
/// Collective. The gradients of seven minibatches, dealt to the ranks, in fixed point.
std::string digest_of_gradient_sum(const Communicator& world);
/// Five steps of "adam" or "sgd".
std::string digest_of_optimizer(const char* kind);

}  // namespace espalier
