// What a run says about itself: report.json and metrics.csv of the design, section 7.
//
// Seconds are maxima over ranks, of the main thread: with run.overlap, those of `sample` and
// `fetch` are what it waited and worked for them itself. Bytes are what crosses between ranks: the
// total is the sum over ranks of bytes received, max_rank the largest of them; predicted is what
// the model expects the total to be.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "espalier/base/clock.hpp"
#include "espalier/comm/counters.hpp"
#include "espalier/comm/grid.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/sample/epoch_sampler.hpp"
#include "espalier/train/evaluation.hpp"

namespace espalier {

/// The stages of an epoch in the order of reports; those of a sampling run come first.
inline constexpr const char* kStageNames[] = {"sample", "fetch",     "forward", "backward",
                                              "reduce", "optimizer", "evaluate"};
inline constexpr std::span<const char* const> kSampleStages(kStageNames, 1);
inline constexpr std::span<const char* const> kTrainStages(kStageNames);

struct StageSeconds {
  double min = 0, mean = 0, max = 0;  ///< over ranks
};

/// What one label moved between ranks, and what the alpha-beta model expected of it.
struct StageVolume {
  std::int64_t messages = 0, total = 0, max_rank = 0;
  double predicted_messages = 0, predicted = 0;  ///< 0: no derivation; bytes like `total`
  std::int64_t rounds = 0;                       ///< of the rank with the most (comm/traffic.hpp)
};

/// How the work of an epoch was dealt: the three goals of DistDGLv2 (Zheng et al. 2022, 5.6.1).
struct WorkBalance {
  std::int64_t input_rows = 0, remote_rows = 0;  ///< over all ranks; remote: fetched from others
  double edges = 1, remote = 1;                  ///< the most of a rank over the mean: sampled
                                                 ///< edges, remote rows
  double local_share() const {
    return input_rows > 0 ? 1 - static_cast<double>(remote_rows) / static_cast<double>(input_rows) : 1;
  }
};

/// How even ranks are in something: over the mean, and over the least of a rank, which may be none.
struct Evenness {
  std::int64_t total = 0;
  double over_mean = 1, over_least = 1;  ///< the most of a rank; over none: 0
};

/// What samplers asked of ranks for an epoch (ServedLoad): figure 10 of GLISP (Zhu et al. 2024)
/// shows the most over the least.
struct ServedBalance {
  Evenness rows, entries, picks;
};

/// What a hook of a step says of an epoch beside its counters: a key of a group of report.json, and
/// its value, as JSON.
struct Remark {
  std::string group, name, json;
};

/// Collective. From what one rank has: sampled edges, input rows, those of them that it fetched.
WorkBalance work_balance_of(const Communicator& comm, std::int64_t edges, std::int64_t input_rows,
                            std::int64_t remote_rows);

struct EpochReport;

/// The sum of a counter over the epochs that have its group; nothing where none has, or one of them
/// does not know it.
std::optional<std::int64_t> total(std::span<const EpochReport> epochs, std::string_view group,
                                  std::string_view name);

struct EpochReport {
  std::int64_t epoch = 0;
  std::int64_t resumed_step = 0;  ///< > 0: seconds and bytes are of the steps from here on, which
                                  ///< this run did
  std::optional<double> loss;
  std::optional<Metrics> train, valid;  ///< where the epoch was evaluated; valid: unless that
                                        ///< split is empty
  SampleCounts counts;
  Counters counters = {};                       ///< of the hooks of a step, of the whole epoch
  std::vector<Remark> remarks = {};             ///< and what they say beside
  std::optional<WorkBalance> work_balance;      ///< of training on several ranks, as
                                                ///< seconds and bytes
  std::optional<ServedBalance> served;          ///< where rows are asked of several ranks' CPUs
  std::map<std::string, StageSeconds> seconds;  ///< "total" and the stages
  std::map<std::string, StageVolume> bytes;     ///< the stages that communicate
  std::map<std::string, StageVolume> steps;     ///< the same by label, where a stage has steps:
                                                ///< "sample/rows"
};

/// Collective. Fills seconds and bytes of `report` from this rank's timers and ledger.
void finish_epoch_report(const Grid& grid, const StageTimers& timers, std::span<const char* const> stages,
                         EpochReport& report);

/// Where a run went on from.
struct RestartNote {
  std::string checkpoint;  ///< file name
  std::int64_t epoch = 1, step = 0;
  int ranks = 1;  ///< of the run that saved it
};

/// Where a training ended because a number was no longer finite.
struct Divergence {
  std::string what;                  ///< "loss", "gradient", "weight", "evaluation"
  std::int64_t epoch = 0, step = 0;  ///< step: from 1; 0: behind the last, or not known
  std::string words;                 ///< a sentence, with what to change
};

struct RunReport {
  std::string command;
  std::string config_json;
  int ranks = 1, replication = 1, threads = 1;
  std::string device = "cpu";
  std::vector<std::string> schedules;  ///< of each layer's product, first: next to the batch;
                                       ///< empty: nothing moves
  GraphInfo graph;
  bool verified = false;  ///< was the graph checked against the digests in its file?
  std::vector<EpochReport> epochs;
  std::optional<Metrics> train, test;  ///< of the best epoch
  /// The same of the test split: vertices of label i that were taken for class j, [classes *
  /// classes]. The key "confusion" of report.json, a list of rows; none where it is empty.
  std::vector<std::int64_t> confusion;
  std::int64_t best_epoch = 0;
  std::optional<Divergence> diverged;
  std::string weights_digest;  ///< 16 hex digits of the final weights' bits; empty
                               ///< without a network
  std::optional<RestartNote> restart;
  std::int64_t checkpoints = 0;   ///< how many this run has saved
  double checkpoint_seconds = 0;  ///< and how long it took
  std::int64_t peak_memory_max = 0, peak_memory_sum = 0;
  std::int64_t peak_device_memory_max = 0, peak_device_memory_sum = 0;  ///< with GPUs
};

/// Collective. This process's peak resident memory, largest and summed over ranks.
void measure_peak_memory(const Communicator& comm, RunReport& report);

/// Report as JSON text.
std::string to_json(const RunReport& report);

/// Is this text the report of a training that came to its end?
bool is_of_whole_training(const std::string& text);

/// Epochs as JSON text with all that reports are made of, and back, exactly. Throws
/// UserError(kInput) for another text.
std::string epochs_to_json(std::span<const EpochReport> epochs);
std::vector<EpochReport> epochs_from_json(const std::string& text);

/// One line of metrics.csv per epoch, and the line of names above them. `metrics`: the task's.
std::string metrics_header(const EpochReport& report, std::span<const MetricKind> metrics);
std::string metrics_line(const EpochReport& report, std::span<const MetricKind> metrics);

/// A table stage | min | mean | max over ranks | %, summed over epochs.
std::string stage_table(const std::vector<EpochReport>& epochs);

/// One line of how the work was dealt, over epochs; empty where there is one rank.
std::string work_balance_line(const std::vector<EpochReport>& epochs);

/// A table stage or step | messages | bytes | per rank | max rank | predicted | counted /
/// predicted, over epochs.
std::string volume_table(const std::vector<EpochReport>& epochs, int ranks);

/// Writes `text` to `path` as replace_file does (base/output_file.hpp). Throws UserError(kUsage).
void write_file(const std::string& path, const std::string& text);

}  // namespace espalier
