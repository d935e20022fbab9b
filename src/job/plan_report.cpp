// A plan as JSON: a report (train/report.hpp) of an epoch that was not run, and what is
// planned alone.
#include <nlohmann/json.hpp>

#include "espalier/job/job.hpp"
#include "espalier/job/job_plan.hpp"

namespace espalier {

using Json = nlohmann::ordered_json;

static Json volume_json(const StageVolume& volume) {
  return {{"total", volume.total},   {"max_rank", volume.max_rank}, {"messages", volume.messages},
          {"rounds", volume.rounds}, {"predicted", volume.total},   {"predicted_messages", volume.messages}};
}

std::string plan_json(const Plan& plan) {
  RunReport report;
  report.command = "plan";
  report.config_json = to_json(plan.job.config);
  report.ranks = plan.epoch.ranks;
  report.replication = plan.epoch.replication;
  report.threads = plan.threads;
  report.device = "cpu";
  report.graph = plan.job.graph;
  report.verified = plan.job.config.graph.verify && plan.job.graph.content.file;
  if (plan.moves_samples()) report.schedules = names_of(plan.work.schedules);
  report.peak_memory_max = std::llround(plan.memory.bytes());
  report.peak_memory_sum = report.peak_memory_max * plan.epoch.ranks;
  auto json = Json::parse(to_json(report));
  json["device"] = plan.job.config.run.device;

  Json epoch = {{"epoch", 1}};
  if (plan.work.drawn == plan.work.batches) epoch["sample_digest"] = hex(plan.work.digest);
  for (const auto& [stage, time] : plan.seconds) epoch["seconds"][stage] = time;
  for (const auto& [stage, costs] : plan.costs)
    epoch[stage.find('/') != std::string::npos ? "steps" : "bytes"][stage] = volume_json(volume_of(costs));
  if (plan.disk)
    epoch["disk"] = {{"rows", plan.disk->rows},
                     {"kept", plan.disk->rows - plan.disk->missed},
                     {"bytes", plan.disk->bytes}};
  if (plan.reads_disk_at_a_rate()) epoch["disk"]["seconds"] = plan.disk->seconds;
  epoch["batches"] = plan.work.batches;
  epoch["sampled_edges"] = std::llround(plan.work.sampled_edges);
  epoch["input_rows"] = std::llround(plan.work.input_rows);
  json["epochs"] = Json::array({epoch});

  Json details;
  details["fits"] = plan.does_not_fit.empty();
  details["judged_bytes"] = std::llround(plan.by_degrees.bytes());
  details["memory_per_rank"] = plan.offer.bytes;
  details["drawn"] = plan.work.drawn;
  details["relative_error"] = plan.work.relative_error;
  for (const auto& phase : plan.memory.phases)
    for (const auto& item : phase.items) details["memory"][phase.name][item.name] = std::llround(item.bytes);
  for (const auto& choice : plan.copies)
    details["peak_by_replication"][std::to_string(choice.replication)] = std::llround(choice.bytes);
  details["largest_bulk"] = plan.largest_bulk;
  if (plan.epoch.holders) details["row_copies"] = plan.work.copies;
  if (plan.moves_samples()) {
    for (const auto schedule : kMovingSchedules) {
      if (plan.job.config.grid.cuts() && !takes_pieces(schedule, plan.job.gpu)) continue;
      const std::vector<Schedule> all(plan.work.schedules.size(), schedule);
      details["sample_by_schedule"][name_of(schedule)] = volume_json(volume_of(sample_costs(plan, all)));
    }
  }
  if (plan.machine) details["machine"] = plan.machine->name;
  json["plan"] = details;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace espalier
