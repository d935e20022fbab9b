#include "mllog.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "espalier/base/clock.hpp"
#include "espalier/base/log.hpp"

namespace espalier {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kPoint = "POINT_IN_TIME";
constexpr const char* kStart = "INTERVAL_START";
constexpr const char* kStop = "INTERVAL_END";

// `seconds`: since the start of the program. No line is earlier than the one above it, whatever
// becomes of the machine's calendar.
std::int64_t milliseconds_since_1970(double seconds) {
  using std::chrono::duration;
  static const double start =
      duration<double>(std::chrono::system_clock::now().time_since_epoch()).count() - seconds_since_start();
  return std::llround(1e3 * (start + seconds));
}

std::string line(double seconds, const char* type, const char* key, const Json& value,
                 const Json& metadata = Json::object()) {
  const Json event = {{"namespace", ""},    {"time_ms", milliseconds_since_1970(seconds)},
                      {"event_type", type}, {"key", key},
                      {"value", value},     {"metadata", metadata}};
  return ":::MLLOG " + event.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// What is said of the run before it begins.
std::vector<std::pair<const char*, Json>> facts(const Job& job, const RunReport& report) {
  const auto& config = job.config;
  const auto steps_batches = job.batches_per_step();
  return {{"submission_org", "none: not a submission"},
          {"submission_platform", grid_in_words(job)},
          {"submission_division", "open"},
          {"submission_status", "research"},
          {"submission_benchmark", "rgat"},
          {"cache_clear", false},
          {"seed", config.train.seed},
          {"global_batch_size", config.sampler.batch_size * steps_batches},
          {"gradient_accumulation_steps", (steps_batches + report.ranks - 1) / report.ranks},
          {"train_samples", report.graph.train},
          {"eval_samples", report.graph.valid},
          {"opt_name", config.train.optimizer},
          {"opt_base_learning_rate", config.train.learning_rate},
          {"opt_weight_decay", config.train.weight_decay}};
}

Json start_of(const RunReport& report) {
  if (!report.restart) return Json::object();
  return {{"resumed_epoch", report.restart->epoch}, {"resumed_step", report.restart->step}};
}

// Returns what is wrong.
std::string write(GrowingFile& file) {
  const auto problem = file.write();
  return problem.empty() ? problem : fmt::format("cannot write {}: {}", file.path(), problem);
}

void try_to_write(GrowingFile& file) {
  const auto problem = write(file);
  if (!problem.empty()) log::warning("{}; its lines are kept", problem);
}

}  // namespace

MlLog::MlLog(const Job& job, const RunReport& report) {
  if (!job.config.output.mllog || job.grid->world().rank() != 0) return;
  file_.emplace(job.config.output.dir + "/mllog.txt");
  const Json model = {{"model", job.config.model.kind}, {"graph", job.config.graph.file}};
  for (const auto& [key, value] : facts(job, report))
    file_->add(
        line(0, kPoint, key, value, key == std::string("submission_benchmark") ? model : Json::object()));
  file_->add(line(0, kStart, "init_start", nullptr));
  file_->add(line(job.opened_at, kStop, "init_stop", nullptr));
  file_->add(line(job.opened_at, kStart, "run_start", nullptr, start_of(report)));
  try_to_write(*file_);
  epoch_began_ = steps_ended_ = seconds_since_start();
}

void MlLog::note_step(std::int64_t step, std::int64_t steps) {
  if (file_ && step == steps) steps_ended_ = seconds_since_start();
}

void MlLog::add(const EpochReport& epoch, const MetricKind& metric) {
  if (!file_) return;
  const auto now = seconds_since_start();
  const Json number = {{"epoch_num", epoch.epoch}};
  // Where a checkpoint had every step of the epoch, only its evaluation was left to do.
  const auto steps_ended = std::max(steps_ended_, epoch_began_);
  file_->add(line(epoch_began_, kStart, "epoch_start", nullptr, number));
  file_->add(line(steps_ended, kStop, "epoch_stop", nullptr, number));
  if (const auto score = epoch.valid ? epoch.valid->find(metric.name) : std::nullopt) {
    Json of_what = number;
    of_what["metric"] = metric.name;
    file_->add(line(steps_ended, kStart, "eval_start", nullptr, number));
    file_->add(line(now, kPoint, "eval_accuracy", *score, of_what));
    file_->add(line(now, kStop, "eval_stop", nullptr, number));
  }
  try_to_write(*file_);
  epoch_began_ = now;
}

std::string MlLog::stop(const char* status) {
  if (!file_) return {};
  file_->add(line(seconds_since_start(), kStop, "run_stop", nullptr, {{"status", status}}));
  return write(*file_);
}

}  // namespace espalier
