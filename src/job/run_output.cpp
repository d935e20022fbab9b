#include "espalier/job/run_output.hpp"

#include <array>
#include <filesystem>

#include "espalier/base/clock.hpp"
#include "espalier/base/output_file.hpp"
#include "espalier/base/ranged_file.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/train/checkpoint.hpp"
#include "espalier/train/task.hpp"

namespace espalier {

namespace {

constexpr const char* kWeights = "weights.h5";
constexpr const char* kReport = "report.json";
constexpr const char* kMetrics = "metrics.csv";

}  // namespace

RunOutput::RunOutput(const Communicator& world, const Config& config, bool overwrite)
    : world_(world), folder_(config.output.dir) {
  agree(world, [&] {
    if (is_writer()) lock_ = std::make_unique<OutputLock>(folder_);
  });
  const auto has = [&](const char* name) {
    std::error_code error;
    return std::filesystem::is_regular_file(path_of(name), error);
  };
  std::array<std::int64_t, 2> found = {};
  agree(world, [&] {
    if (!is_writer() || !has(kReport)) return;
    const bool weights = has(kWeights) && (config.model.embedding == 0 || has(kEmbeddingsFile));
    found = {1, weights && is_of_whole_training(bytes_of_file(path_of(kReport)))};
  });
  world.broadcast(std::span<std::int64_t>(found), 0, "setup");
  earlier_ = {.finished = found[0] != 0, .replaced = found[0] != 0 && overwrite, .whole = found[1] != 0};
}

void RunOutput::refuse_to_replace() const {
  if (earlier_.finished && !earlier_.replaced)
    usage_error(
        "output.dir = {} holds a finished run ({}); give --overwrite to replace it, or name another folder: "
        "output.dir=PATH",
        folder_, kReport);
}

// The folder may have been removed under a running job.
void RunOutput::make_folder() const {
  std::error_code error;  // what is written next says what is wrong
  std::filesystem::create_directories(folder_, error);
}

void RunOutput::start(Job& job) {
  job_ = &job;
  job.graph.content = job.file->content();
  job.verified = job.config.graph.verify && job.file->has_digest();
  job.file.reset();
  job.tell(log::Level::kDebug, "resolved config:\n\n{}", to_toml(job.config));
  agree(world_, [&] {
    if (!is_writer()) return;
    make_folder();
    write_file(path_of("config.toml"), to_toml(job.asked, job.config));
    std::error_code error;
    for (const char* of_another_run : {kReport, kMetrics})
      std::filesystem::remove(path_of(of_another_run), error);
    metrics_.emplace(path_of(kMetrics));
  });
}

// Returns whether the file has every line.
bool RunOutput::write_metrics() {
  make_folder();
  const auto problem = metrics_->write();
  if (!problem.empty() && !lacks_lines_)
    job_->tell(log::Level::kWarning,
               "cannot write {}: {}; its lines are kept, and tried again after every epoch", metrics_->path(),
               problem);
  if (problem.empty() && lacks_lines_)
    job_->tell(log::Level::kWarning, "{} is written again; no line is missing", metrics_->path());
  lacks_lines_ = !problem.empty();
  return problem.empty();
}

void RunOutput::add(const EpochReport& epoch) {
  for (const auto& [stage, volume] : epoch.bytes)
    job_->tell(log::Level::kDebug, "            {:<9} {} bytes between ranks, at most {} to one rank", stage,
               volume.total, volume.max_rank);
  if (!is_writer()) return;
  const auto& metrics = task_kind_of(job_->config.train.task).metrics;
  if (!has_header_) metrics_->add(metrics_header(epoch, metrics));
  has_header_ = true;
  metrics_->add(metrics_line(epoch, metrics));
  write_metrics();
}

void RunOutput::write(const RunReport& report, const std::string& missing, const PrintReport& print) {
  agree(world_, [&] {
    if (!is_writer()) return;
    const auto path = path_of(kReport), text = to_json(report);
    const bool has_metrics = write_metrics();
    const auto problem = replace_file(path, text);
    const auto& diverged = report.diverged;
    std::string words = diverged ? diverged->words : std::string();
    add_problem(words, missing);
    if (!problem.empty()) add_problem(words, fmt::format("cannot write {}: {}", path, problem));
    if (diverged && missing.empty())
      add_problem(words, report.best_epoch == 0 ? "no epoch before it was evaluated, so there are no weights"
                                                : fmt::format("the weights of epoch {} are {}",
                                                              report.best_epoch, path_of(kWeights)));
    const char* const done = diverged ? "" : "the run is done, and ";
    if (!problem.empty() && print)
      add_problem(words, fmt::format("{}its report is on {}: copy it from there", done, print(path, text)));
    if (problem.empty() && !has_metrics)
      job_->tell(log::Level::kWarning, "{} lacks lines; report.json has all epochs", path_of(kMetrics));
    if (problem.empty()) job_->tell(log::Level::kInfo, "report: {}", path);
    if (words.empty()) return;
    if (problem.empty()) add_problem(words, fmt::format("{}its report is {}", done, path));
    throw UserError(diverged ? ExitCode::kDiverged : ExitCode::kUsage, words);
  });
}

void add_problem(std::string& missing, const std::string& problem) {
  if (!problem.empty()) missing += (missing.empty() ? "" : "; ") + problem;
}

void RunOutput::remove_weights() const {
  std::error_code error;
  if (!is_writer()) return;
  std::filesystem::remove(path_of(kWeights), error);
  std::filesystem::remove(path_of(kEmbeddingsFile), error);
}

// Collective. Returns what is wrong, on rank 0.
std::string RunOutput::write_embeddings(const TrainedWeights& weights, bool silently) const {
  if (weights.embeddings.empty()) return {};
  const auto path = path_of(kEmbeddingsFile), under_way = path + ".partial";
  try {
    write_checkpoint(world_, embeddings_of(weights, world_.size()), under_way);
    agree(world_, [&] {
      std::error_code error;
      if (is_writer()) std::filesystem::rename(under_way, path, error);
      if (error) usage_error("{}", error.message());
    });
  } catch (const UserError& error) {  // on every rank
    std::error_code ignored;
    if (!is_writer()) return {};
    std::filesystem::remove(under_way, ignored);
    return fmt::format("cannot write {}: {}", path, error.what());
  }
  if (is_writer() && !silently) job_->tell(log::Level::kInfo, "embeddings: {}", path);
  return {};
}

// Collective. Both files; what is wrong, on rank 0.
std::string RunOutput::write_both(const TrainedWeights& weights, const std::string& bytes,
                                  bool silently) const {
  auto missing = write_embeddings(weights, silently);
  if (!is_writer()) return {};
  const auto path = path_of(kWeights);
  const auto problem = replace_file(path, bytes);
  if (!problem.empty())
    add_problem(missing, fmt::format("cannot write {}: {}", path, problem));
  else if (!silently)
    job_->tell(log::Level::kInfo, "weights: {}", path);
  return missing;
}

std::string RunOutput::write_weights(TrainedWeights weights, bool silently) {
  const auto& job = *job_;
  if (is_writer()) make_folder();
  weights.config = to_toml(job.config);
  weights.graph = job.graph;
  weights.standardization = job.standardization;
  weights.digest = hex(weights_digest(world_, weights));
  std::string bytes;
  agree(world_, [&] {
    if (is_writer()) bytes = weights_bytes(weights);
  });
  auto missing = write_both(weights, bytes, silently);
  auto failed = std::int64_t{!missing.empty()};
  world_.broadcast(&failed, 1, 0, "weights");
  if (failed == 0 || silently) return missing;
  remove_weights();  // those of an epoch before may take the room
  return write_both(weights, bytes, silently);
}

void WeightsOnTheWay::offer(std::int64_t best_epoch, const std::function<TrainedWeights()>& best) {
  constexpr double kPatience = 20;
  if (best_epoch == 0 || best_epoch == written_) return;
  const auto& world = job_.grid->world();
  const double begin = now();
  auto due = std::int64_t{begin >= due_};
  world.broadcast(&due, 1, 0, "checkpoint");
  if (due == 0) return;
  const auto problem = output_.write_weights(best(), /*silently=*/true);
  due_ = now() + kPatience * (now() - begin);
  auto failed = std::int64_t{!problem.empty()};
  world.broadcast(&failed, 1, 0, "checkpoint");
  if (failed == 0) written_ = best_epoch;
  if (!problem.empty() && !failing_)
    job_.tell(log::Level::kWarning, "{}; tried again while training goes on", problem);
  failing_ = failed != 0;
}

}  // namespace espalier
