// espalier plan CONFIG --ranks P: memory, bytes, messages and seconds of a job, without running it.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/output_file.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/job/job.hpp"
#include "espalier/job/job_plan.hpp"
#include "job_in_words.hpp"

namespace espalier {

namespace {

// `espalier plan` wrote it.
bool is_plan(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_object() && json.contains("plan") && json.value("command", nlohmann::json()) == "plan";
}

void write_plan(const Plan& plan, const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error) usage_error("cannot make the folder {}: {}", folder.string(), error.message());
  write_file(path, plan_json(plan));
  log::info("plan: {}", path);
}

}  // namespace

void plan_command(const Communicator& world, const PlanArguments& arguments) {
  if (world.size() > 1)
    usage_error("plan is a matter of one process: --ranks says how many the job will have");
  set_memory_advice(
      "give --draw 0, which estimates from degrees and does not hold the graph, or a node with more memory");
  check_replaceable(arguments.output, "plan", is_plan);
  const auto config = load_job_config(world, arguments.job.config, arguments.job.overrides);
  const Watchdog watchdog(config.run.stall_minutes);
  const auto plan = plan_job(
      world, config,
      {arguments.ranks, arguments.memory_per_rank, arguments.machine, arguments.sampling, arguments.draw},
      log::write);
  log::info("{}", plan_page(plan));
  write_plan(plan, arguments.output.empty() ? config.output.dir + "/plan.json" : arguments.output);
  check_memory(world, plan, log::write);
}

}  // namespace espalier
