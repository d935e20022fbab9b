// A training run in the lines of MLPerf's loggers (output.mllog): mllog.txt in output.dir.
//
//     :::MLLOG {"namespace":"","time_ms":..,"event_type":..,"key":..,"value":..,"metadata":{..}}
//
// Keys and order are those that the compliance checker of MLPerf Training 5.1 (PyPI:
// mlperf-logging) asks of its benchmark of graph networks, rgat, in the open division, where a run
// may be of any model and graph. What is written is what the run did: it is no submission, it
// clears no cache, and eval_accuracy is the validation score that the run goes by (train.metric).
// The checker wants at least one below 1, so a run with no vertices to validate on does not pass.
//
// The clock of a run, run_start to run_stop, holds the reading of the graph. Times are rank 0's. A
// run that goes on from a checkpoint begins the file anew, with the epochs that it does itself.
#pragma once

#include "job.hpp"

namespace espalier {

/// Writes on rank 0 with output.mllog, and does nothing elsewhere. Local. A line that the disk does
/// not take is kept and tried again with the next ones; lines that stay behind are warned of.
class MlLog {
 public:
  /// After start_output. The lines up to run_start.
  MlLog(const Job& job, const RunReport& report);

  /// A step of the epoch is done: after the last one comes what evaluates.
  void note_step(std::int64_t step, std::int64_t steps);

  /// The lines of an epoch of this run, evaluated or not.
  void add(const EpochReport& epoch, const MetricKind& metric);

  /// The last line. `status`: "success", or "aborted" when it stops to go on later. Returns what
  /// could not be written, and why.
  std::string stop(const char* status);

 private:
  std::optional<GrowingFile> file_;           ///< where this writes
  double epoch_began_ = 0, steps_ended_ = 0;  ///< seconds_since_start
};

}  // namespace espalier
