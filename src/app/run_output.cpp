#include "run_output.hpp"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "espalier/base/log.hpp"
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
  std::error_code error;
  auto finished = std::int64_t{world.rank() == 0 &&
                               std::filesystem::is_regular_file(config.output.dir + "/" + kReport, error)};
  world.broadcast(&finished, 1, 0, "setup");
  return {.finished = finished != 0, .replaced = finished != 0 && overwrite};
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
    if (!problem.empty())
      usage_error("cannot write {}: {}; the run is done, and its report is on {}: copy it from there{}{}",
                  path, problem, print_report(path, text), missing.empty() ? "" : "; ", missing);
    if (!has_metrics) log::warning("{} lacks lines; report.json has all epochs", path_of(job, "metrics.csv"));
    log::info("report: {}", path);
    if (!missing.empty()) usage_error("{}; the run is done, and its report is {}", missing, path);
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
static std::string write_embeddings(const Job& job, const TrainedWeights& weights) {
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
  if (is_writer(job)) log::info("embeddings: {}", path);
  return {};
}

std::string write_weights(const Job& job, TrainedWeights weights) {
  if (is_writer(job)) make_folder(job);
  weights.config = to_toml(job.config);
  weights.graph = job.graph;
  weights.standardization = job.standardization;
  auto missing = write_embeddings(job, weights);
  if (!is_writer(job)) return {};
  const auto path = path_of(job, kWeights);
  const auto problem = replace_file(path, weights_bytes(weights));
  if (problem.empty())
    log::info("weights: {}", path);
  else
    add_problem(missing, fmt::format("cannot write {}: {}", path, problem));
  return missing;
}

}  // namespace espalier
