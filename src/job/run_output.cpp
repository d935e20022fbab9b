#include "espalier/job/run_output.hpp"

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "espalier/base/clock.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/ranged_file.hpp"
#include "espalier/base/result_file.hpp"
#include "espalier/comm/agree.hpp"
#include "espalier/train/checkpoint.hpp"
#include "espalier/train/task.hpp"

namespace espalier {

namespace {

constexpr const char* kWeights = "weights.h5";
constexpr const char* kReport = "report.json";

std::string path_of(const Job& job, const char* name) {
  return job.config.output.dir + "/" + name;
}

bool is_writer(const Job& job) {
  return job.grid->world().rank() == 0;
}

// The folder may have been removed under a running job.
void make_folder(const Job& job) {
  std::error_code error;  // what is written next says what is wrong
  std::filesystem::create_directories(job.config.output.dir, error);
}

// Returns whether the file has every line.
bool write_metrics(const Job& job) {
  auto& metrics = *job.metrics;
  make_folder(job);
  const auto problem = metrics.file.write();
  if (!problem.empty() && !metrics.failing)
    log::warning("cannot write {}: {}; its lines are kept, and tried again after every epoch",
                 metrics.file.path(), problem);
  if (problem.empty() && metrics.failing)
    log::warning("{} is written again; no line is missing", metrics.file.path());
  metrics.failing = !problem.empty();
  return problem.empty();
}

// To where there is room, for people to copy. Returns where.
const char* print_report(const std::string& path, const std::string& text) {
  const bool taken = log::output_failure().empty();
  const auto page = fmt::format("\n{}:\n{}", path, text);
  if (taken) log::print(page);
  if (taken && log::output_failure().empty()) {
    // mpirun passes on the two outputs by ways of their own: the error that follows would stand in
    // the middle of the page.
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return "standard output";
  }
  std::fwrite(page.data(), 1, page.size(), stderr);
  return "standard error";
}

}  // namespace

std::unique_ptr<OutputLock> lock_output(const Communicator& world, const Config& config) {
  std::unique_ptr<OutputLock> lock;
  agree(world, [&] {
    if (world.rank() == 0) lock = std::make_unique<OutputLock>(config.output.dir);
  });
  return lock;
}

OutputFolder look_at_output(const Communicator& world, const Config& config, bool overwrite) {
  const auto has = [&](const char* name) {
    std::error_code error;
    return std::filesystem::is_regular_file(config.output.dir + "/" + name, error);
  };
  std::array<std::int64_t, 2> found = {};
  agree(world, [&] {
    if (world.rank() != 0 || !has(kReport)) return;
    const bool weights = has(kWeights) && (config.model.embedding == 0 || has(kEmbeddingsFile));
    found = {1, weights && is_of_whole_training(bytes_of_file(config.output.dir + "/" + kReport))};
  });
  world.broadcast(std::span<std::int64_t>(found), 0, "setup");
  return {.finished = found[0] != 0, .replaced = found[0] != 0 && overwrite, .whole = found[1] != 0};
}

void refuse_to_replace(const OutputFolder& output, const Config& config) {
  if (output.finished && !output.replaced)
    usage_error(
        "output.dir = {} holds a finished run ({}); give --overwrite to replace it, or name another folder: "
        "output.dir=PATH",
        config.output.dir, kReport);
}

void start_output(Job& job) {
  job.graph.content = job.file->content();
  job.verified = job.config.graph.verify && job.file->has_digest();
  job.file.reset();
  log::debug("resolved config:\n\n{}", to_toml(job.config));
  agree(job.grid->world(), [&] {
    if (!is_writer(job)) return;
    make_folder(job);
    write_file(path_of(job, "config.toml"), to_toml(job.asked, job.config));
    std::error_code error;
    for (const char* of_another_run : {kReport, "metrics.csv"})
      std::filesystem::remove(path_of(job, of_another_run), error);
    job.metrics = std::make_unique<MetricsFile>(GrowingFile(path_of(job, "metrics.csv")));
  });
}

void append_metrics(const Job& job, const EpochReport& epoch) {
  for (const auto& [stage, volume] : epoch.bytes)
    log::debug("            {:<9} {} bytes between ranks, at most {} to one rank", stage, volume.total,
               volume.max_rank);
  if (!is_writer(job)) return;
  const auto& metrics = task_kind_of(job.config.train.task).metrics;
  if (!job.metrics->has_header) job.metrics->file.add(metrics_header(epoch, metrics));
  job.metrics->has_header = true;
  job.metrics->file.add(metrics_line(epoch, metrics));
  write_metrics(job);
}

void write_report(const Job& job, const RunReport& report, const std::string& missing) {
  agree(job.grid->world(), [&] {
    if (!is_writer(job)) return;
    const auto path = path_of(job, kReport), text = to_json(report);
    const bool has_metrics = write_metrics(job);
    const auto problem = replace_file(path, text);
    const auto& diverged = report.diverged;
    std::string words = diverged ? diverged->words : std::string();
    add_problem(words, missing);
    if (!problem.empty()) add_problem(words, fmt::format("cannot write {}: {}", path, problem));
    if (diverged && missing.empty())
      add_problem(words, report.best_epoch == 0 ? "no epoch before it was evaluated, so there are no weights"
                                                : fmt::format("the weights of epoch {} are {}",
                                                              report.best_epoch, path_of(job, kWeights)));
    const char* const done = diverged ? "" : "the run is done, and ";
    if (!problem.empty())
      add_problem(words,
                  fmt::format("{}its report is on {}: copy it from there", done, print_report(path, text)));
    if (problem.empty() && !has_metrics)
      log::warning("{} lacks lines; report.json has all epochs", path_of(job, "metrics.csv"));
    if (problem.empty()) log::info("report: {}", path);
    if (words.empty()) return;
    if (problem.empty()) add_problem(words, fmt::format("{}its report is {}", done, path));
    throw UserError(diverged ? ExitCode::kDiverged : ExitCode::kUsage, words);
  });
}

void add_problem(std::string& missing, const std::string& problem) {
  if (!problem.empty()) missing += (missing.empty() ? "" : "; ") + problem;
}

void remove_weights(const Job& job) {
  std::error_code error;
  if (!is_writer(job)) return;
  std::filesystem::remove(path_of(job, kWeights), error);
  std::filesystem::remove(path_of(job, kEmbeddingsFile), error);
}

// Collective. Returns what is wrong, on rank 0.
static std::string write_embeddings(const Job& job, const TrainedWeights& weights, bool silently) {
  if (weights.embeddings.empty()) return {};
  const auto& world = job.grid->world();
  const auto path = path_of(job, kEmbeddingsFile), under_way = path + ".partial";
  try {
    write_checkpoint(world, embeddings_of(weights, world.size()), under_way);
    agree(world, [&] {
      std::error_code error;
      if (is_writer(job)) std::filesystem::rename(under_way, path, error);
      if (error) usage_error("{}", error.message());
    });
  } catch (const UserError& error) {  // on every rank
    std::error_code ignored;
    if (!is_writer(job)) return {};
    std::filesystem::remove(under_way, ignored);
    return fmt::format("cannot write {}: {}", path, error.what());
  }
  if (is_writer(job) && !silently) log::info("embeddings: {}", path);
  return {};
}

// Collective. Both files; what is wrong, on rank 0.
static std::string write_both(const Job& job, const TrainedWeights& weights, const std::string& bytes,
                              bool silently) {
  auto missing = write_embeddings(job, weights, silently);
  if (!is_writer(job)) return {};
  const auto path = path_of(job, kWeights);
  const auto problem = replace_file(path, bytes);
  if (!problem.empty())
    add_problem(missing, fmt::format("cannot write {}: {}", path, problem));
  else if (!silently)
    log::info("weights: {}", path);
  return missing;
}

std::string write_weights(const Job& job, TrainedWeights weights, bool silently) {
  const auto& world = job.grid->world();
  if (is_writer(job)) make_folder(job);
  weights.config = to_toml(job.config);
  weights.graph = job.graph;
  weights.standardization = job.standardization;
  weights.digest = hex(weights_digest(job.grid->world(), weights));
  std::string bytes;
  agree(world, [&] {
    if (is_writer(job)) bytes = weights_bytes(weights);
  });
  auto missing = write_both(job, weights, bytes, silently);
  auto failed = std::int64_t{!missing.empty()};
  world.broadcast(&failed, 1, 0, "weights");
  if (failed == 0 || silently) return missing;
  remove_weights(job);  // those of an epoch before may take the room
  return write_both(job, weights, bytes, silently);
}

void WeightsOnTheWay::offer(std::int64_t best_epoch, const std::function<TrainedWeights()>& best) {
  constexpr double kPatience = 20;
  if (best_epoch == 0 || best_epoch == written_) return;
  const auto& world = job_.grid->world();
  const double begin = now();
  auto due = std::int64_t{begin >= due_};
  world.broadcast(&due, 1, 0, "checkpoint");
  if (due == 0) return;
  const auto problem = write_weights(job_, best(), /*silently=*/true);
  due_ = now() + kPatience * (now() - begin);
  auto failed = std::int64_t{!problem.empty()};
  world.broadcast(&failed, 1, 0, "checkpoint");
  if (failed == 0) written_ = best_epoch;
  if (!problem.empty() && !failing_) log::warning("{}; tried again while training goes on", problem);
  failing_ = failed != 0;
}

}  // namespace espalier
