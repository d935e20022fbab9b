// What a run writes to output.dir while it holds the folder: config.toml, metrics.csv, report.json,
// weights.h5.
//
// Nothing is begun where the folder cannot be written to. Later a disk that is full, or gone, ends
// no run: lines of metrics.csv are kept and tried again after every epoch, with one warning and one
// word when they are there; a report that no file takes is printed, where somebody prints. A result
// that is missing in the end is an error, when all others are there.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "espalier/base/config.hpp"
#include "espalier/base/output_file.hpp"
#include "espalier/base/output_lock.hpp"
#include "espalier/job/job.hpp"
#include "espalier/train/report.hpp"
#include "espalier/train/weights_file.hpp"

namespace espalier {

/// What an earlier run left in output.dir.
struct EarlierOutput {
  bool finished = false;  ///< its report.json is there
  bool replaced = false;  ///< and may go: --overwrite
  bool whole = false;     ///< it is of a training that came to its end, whose weights are there
};

/// Prints a report that no file takes, for people to copy, and says where: "standard output".
using PrintReport = std::function<std::string(const std::string& path, const std::string& text)>;

class RunOutput {
 public:
  /// Collective, before anything in the folder is read. Makes output.dir and takes its lock, which
  /// rank 0 holds as long as this lives. Throws UserError(kUsage) when another job holds it or the
  /// folder cannot be written to.
  RunOutput(const Communicator& world, const Config& config, bool overwrite);

  /// The same on every rank.
  const EarlierOutput& earlier() const { return earlier_; }
  /// Throws UserError(kUsage) where a run that begins anew would replace one that is finished.
  void refuse_to_replace() const;

  /// Collective, after everything was read from the graph file: closes it, writes the config, what
  /// was asked for and what that became; reports of an earlier run are removed. Throws
  /// UserError(kUsage) when it cannot be written. The job must outlive this; all that follows is of
  /// it.
  void start(Job& job);

  /// Rank 0 adds the epoch's line to metrics.csv at once, so that a job that is cut off leaves what
  /// it measured. Epochs come in order, from the first one of the history on.
  void add(const EpochReport& epoch);

  /// Collective, when all results have been printed. Rank 0 writes report.json, and says where.
  /// Throws UserError(kUsage) when it could not, `print` was asked then, or when rank 0 has
  /// something `missing`. Where the training has diverged, UserError(kDiverged) that says so in any
  /// case.
  void write(const RunReport& report, const std::string& missing = {}, const PrintReport& print = {});

  /// Collective. Rank 0 writes weights.h5, all ranks embeddings.h5 where the network has
  /// embeddings; the config, the graph and the features' mean and deviation in them are the job's.
  /// Returns on rank 0 what could not be written, and why. Says where they are, unless `silently`.
  /// Throws UserError(kDiverged), on every rank, where a weight is not finite.
  std::string write_weights(TrainedWeights weights, bool silently = false);
  /// Rank 0 removes them: those of another run are none of this one. Local.
  void remove_weights() const;

 private:
  bool is_writer() const { return world_.rank() == 0; }
  std::string path_of(const char* name) const { return folder_ + "/" + name; }
  void make_folder() const;
  bool write_metrics();
  std::string write_embeddings(const TrainedWeights& weights, bool silently) const;
  std::string write_both(const TrainedWeights& weights, const std::string& bytes, bool silently) const;

  const Communicator& world_;
  std::string folder_;
  std::unique_ptr<OutputLock> lock_;  ///< on rank 0
  EarlierOutput earlier_;
  Job* job_ = nullptr;
  std::optional<GrowingFile> metrics_;  ///< on rank 0, from start() on
  bool has_header_ = false;
  bool lacks_lines_ = false;  ///< and that was said
};

/// Another sentence of what is missing; nothing where `problem` is empty.
void add_problem(std::string& missing, const std::string& problem);

/// The best weights while training goes on, so that whatever ends it leaves some: written when they
/// have become better and 20 times as long has passed as their last writing took.
class WeightsOnTheWay {
 public:
  WeightsOnTheWay(const Job& job, RunOutput& output) : job_(job), output_(output) {}

  /// Collective, after an epoch. `best_epoch`: 0: none yet; `best`: its weights, asked for where
  /// they are written. A disk that takes none is a warning, once.
  void offer(std::int64_t best_epoch, const std::function<TrainedWeights()>& best);

 private:
  const Job& job_;
  RunOutput& output_;
  std::int64_t written_ = 0;  ///< of which epoch
  double due_ = 0;            ///< by the clock of rank 0
  bool failing_ = false;
};

}  // namespace espalier
