// espalier plan CONFIG --ranks P: memory, bytes, messages and seconds of a job, without running it.
#include "job_in_words.hpp"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>

#include "commands.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/output_file.hpp"
#include "espalier/base/text.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/job/job.hpp"
#include "espalier/job/job_plan.hpp"
#include "espalier/plan/core_splits.hpp"
#include "espalier/plan/job_shapes.hpp"
#include "espalier/sample/epoch_plan.hpp"
#include "espalier/train/task.hpp"

namespace espalier {

namespace {

constexpr double kMiB = 1 << 20;

// "1,234,567".
std::string grouped(std::int64_t number) {
  auto text = std::to_string(number);
  for (auto at = std::ssize(text) - 3; at > 0; at -= 3) text.insert(static_cast<std::size_t>(at), ",");
  return text;
}
std::string grouped(double number) {
  return grouped(static_cast<std::int64_t>(std::llround(number)));
}

std::string plural(std::int64_t count, const char* noun) {
  return fmt::format("{} {}", grouped(count), count == 1 ? noun : plural_of(noun));
}

// Where the numbers come from.
std::string source_of(const Plan& plan) {
  const auto& work = plan.work;
  if (work.drawn == 0)
    return "estimated from the degrees of the graph, nothing was drawn: rough, at worst by a factor of 3";
  if (work.drawn >= work.batches)
    return fmt::format("counted in all {} of epoch 1", plural(work.batches, "minibatch"));
  const auto error = work.drawn > 1 ? fmt::format("+- {:.1f} %", 100 * work.relative_error) : "error unknown";
  return fmt::format("counted in {} of the {} of epoch 1, {}", grouped(work.drawn),
                     plural(work.batches, "minibatch"), error);
}

std::string describe(const Plan& plan) {
  const auto& config = plan.job.config;
  const auto& graph = plan.job.graph;
  const auto steps = count_batches(plan.work.batches, plan.epoch.batches_per_step);
  std::string text =
      fmt::format("graph    {}: {}, {}, {} to train{}\n", config.graph.file, plural(graph.nodes, "vertex"),
                  plural(graph.edges, "edge"), grouped(task_kind_of(config.train.task).examples(graph)),
                  split_in_words(graph, config));
  const auto widths = fmt::format("{} -> {} -> {}", graph.features, config.model.hidden,
                                  network_shape(graph, config).classes);
  text += fmt::format("job      {}{}, batch {}; {}, {}\n", plan.job.training ? "train " : "sample ",
                      sampler_in_words(config), config.sampler.batch_size, layers_in_words(config, widths),
                      plural(network_size(network_shape(graph, config)).parameters, "parameter"));
  text += fmt::format("grid     {} as {} x {}, {}, {}, {}\n", plural(plan.epoch.ranks, "rank"),
                      plural(plan.epoch.rows(), "block row"), plural(plan.epoch.replication, "column"),
                      config.grid.topology, plan.threads_chosen.in_words("each"), config.run.device);
  if (plan.machine && !plan.job.gpu)
    if (const auto advice = advice_on_split(
            parse_core_splits(plan.machine->core_splits, "node.core_splits"),
            std::min<std::int64_t>(plan.epoch.ranks, plan.machine->ranks_per_node), plan.threads);
        !advice.empty())
      text += fmt::format("cores    {}\n", advice);
  if (const auto& cut = plan.job.cut; plan.epoch.holders)
    text += fmt::format("cut      {} of edges by {}; a row that is asked for lies with {:.2f} block rows\n",
                        plural(cut.parts(), "part"), cut.method, plan.work.copies);
  text += fmt::format(
      "epoch    {} in {} of {}, windows of {}; a minibatch has {} input rows, {} edges\n",
      plural(plan.work.batches, "batch"), plural(steps, "step"), plan.epoch.batches_per_step, plan.epoch.bulk,
      grouped(plan.work.mean.rows[0]),
      grouped(plan.work.sampled_edges / std::max<double>(1, static_cast<double>(plan.work.batches))));
  text += fmt::format("numbers  {}\n", source_of(plan));
  const auto busy = std::min<std::int64_t>(plan.epoch.batches_per_step, plan.work.batches);
  if (busy < plan.epoch.ranks)
    text += fmt::format("note     a step has {}: {} of {} ranks keep none (train.batches_per_step)\n",
                        plural(busy, "batch"), plan.epoch.ranks - busy, plan.epoch.ranks);
  return text;
}

// ---- memory ----

double bytes_of(const MemoryPhase& phase, const std::string& item) {
  for (const auto& entry : phase.items)
    if (entry.name == item) return entry.bytes;
  return 0;
}

std::string memory_table(const Plan& plan) {
  const auto& phases = plan.memory.phases;
  std::vector<std::string> items;
  for (const auto& phase : phases)
    for (const auto& item : phase.items)
      if (std::ranges::find(items, item.name) == items.end()) items.push_back(item.name);
  std::string text = fmt::format("\n{:<28}", "memory of a rank, MiB");
  for (const auto& phase : phases) text += fmt::format("{:>12}", phase.name);
  for (const auto& item : items) {
    text += fmt::format("\n  {:<26}", item);
    for (const auto& phase : phases) {
      const double bytes = bytes_of(phase, item);
      text += bytes > 0 ? fmt::format("{:>12.1f}", bytes / kMiB) : fmt::format("{:>12}", "-");
    }
  }
  text += fmt::format("\n  {:<26}", "together");
  for (const auto& phase : phases) text += fmt::format("{:>12.1f}", phase.total() / kMiB);
  return text + "\n";
}

// What was counted may lie on the other side of what a rank has than the verdict's number.
std::string doubt_of(const Plan& plan) {
  const bool over = plan.memory.bytes() > static_cast<double>(plan.offer.bytes);
  if (over == (plan.by_degrees.bytes() > static_cast<double>(plan.offer.bytes)) || plan.job.gpu) return "";
  return over ? ", more than a rank has: the verdict may be too kind"
              : ", which a rank has: the verdict may be too strict (run.memory_check)";
}

std::string choices(const Plan& plan) {
  const double has = static_cast<double>(plan.offer.bytes);
  std::string text = fmt::format("  peak {} ({}){}\n", bytes_in_words(plan.memory.bytes()),
                                 plan.memory.fullest().name, doubt_of(plan));
  text += fmt::format("  a rank has {} ({})\n", bytes_in_words(has), plan.offer.source);
  text +=
      fmt::format("  judged by degrees, as a run is, {} ({}): {}\n", bytes_in_words(plan.by_degrees.bytes()),
                  plan.by_degrees.fullest().name, plan.does_not_fit.empty() ? "fits" : "DOES NOT FIT");
  if (plan.job.spills_unasked)
    text += "  rows of hidden layers do not fit while all vertices are evaluated: files in output.dir\n";
  if (plan.job.gpu)
    text += fmt::format("  of its GPU {} without minibatches, it has {}\n",
                        bytes_in_words(bytes_on_device(plan.job, plan.epoch.replication)),
                        bytes_in_words(static_cast<double>(plan.job.device_memory)));
  constexpr std::size_t kShown = 6;
  std::int64_t largest = 0;
  std::string list;
  for (std::size_t k = 0; k < plan.copies.size(); ++k) {
    const auto& choice = plan.copies[k];
    if (choice.fits) largest = choice.replication;
    if (k < kShown)
      list +=
          fmt::format("{}c = {}: {}", k > 0 ? ", " : "", choice.replication, bytes_in_words(choice.bytes));
  }
  if (plan.copies.size() > kShown) list += ", ...";
  text += fmt::format("  by copies: {}\n", list);
  return text +
         fmt::format("  largest that fits: grid.replication = {}, sampler.bulk = {}{}; \"auto\" takes {}\n",
                     largest > 0 ? std::to_string(largest) : "none",
                     plan.largest_bulk > 0 ? std::to_string(plan.largest_bulk) : "none",
                     plan.largest_bulk == plan.work.batches ? " (the whole epoch)" : "",
                     automatic_replication(plan.job));
}

// ---- bytes ----

std::string volume_line(const std::string& name, const StageVolume& volume, const std::string& remark) {
  return fmt::format("  {:<26}{:>9}{:>12}{:>12.3f}{:>14.3f}{}{}\n", name, grouped(volume.rounds),
                     grouped(volume.messages), static_cast<double>(volume.total) / 1e6,
                     static_cast<double>(volume.max_rank) / 1e6, remark.empty() ? "" : "  ", remark);
}

std::string reads(const Plan& plan) {
  if (!plan.disk) return {};
  const auto& disk = *plan.disk;
  return fmt::format(
      "\nrows on disk, an epoch: {} wanted, {:.1f} % of them kept in memory, {:.3f} MB read{}\n",
      grouped(disk.rows),
      100 * static_cast<double>(disk.rows - disk.missed) /
          static_cast<double>(std::max<std::int64_t>(1, disk.rows)),
      static_cast<double>(disk.bytes) / 1e6,
      plan.reads_disk_at_a_rate() ? fmt::format(" in {:.3g} s", disk.seconds) : "");
}

std::string volumes(const Plan& plan) {
  if (plan.epoch.ranks == 1) return "\nnothing is sent: one rank\n";
  std::string text = fmt::format("\n{:<28}{:>9}{:>12}{:>12}{:>14}\n", "between ranks, an epoch", "rounds",
                                 "messages", "MB", "MB fullest");
  if (!plan.moves_samples()) {
    text += volume_line("sample", volume_of(plan.costs.at("sample")), "every rank has all rows");
  } else {
    const auto& asked = plan.job.config.grid.schedule;
    for (const auto schedule : kMovingSchedules) {
      if (plan.job.config.grid.cuts() && !takes_pieces(schedule, plan.job.gpu)) continue;
      const std::vector<Schedule> all(plan.work.schedules.size(), schedule);
      text += volume_line(fmt::format("sample  {}", name_of(schedule)), volume_of(sample_costs(plan, all)),
                          asked == name_of(schedule) ? "<- this job" : "");
    }
    if (asked == "auto")
      text += volume_line("sample  auto", volume_of(plan.costs.at("sample")),
                          fmt::format("<- this job: {}", fmt::join(names_of(plan.work.schedules), ", ")));
  }
  for (const char* stage : {"fetch", "reduce", "evaluate"})
    if (plan.costs.contains(stage))
      text += volume_line(stage, volume_of(plan.costs.at(stage)),
                          std::string(stage) != "evaluate"        ? ""
                          : plan.job.config.train.eval_every == 0 ? "after the last epoch"
                          : plan.job.config.train.eval_every == 1
                              ? ""
                              : fmt::format("every {} epochs", plan.job.config.train.eval_every));
  for (const auto& part : planned_hooks(plan.job, plan.epoch.replication))
    if (!part.not_prefetched.empty()) text += fmt::format("  (without {})\n", part.not_prefetched);
  if (plan.job.config.graph.nodes_share_features() && !plan.job.gpu)
    text +=
        "  (without graph.features_on = \"node\", which leaves out what ranks of one node fetch from each "
        "other)\n";
  return text;
}

// ---- seconds ----

std::string seconds(const Plan& plan) {
  if (!plan.machine)
    return "\nno seconds without --machine FILE (inputs/machines/, or `espalier calibrate`)\n";
  std::string text =
      fmt::format("\nseconds of an epoch on {}: {:.3g}", plan.machine->name, plan.seconds.at("total"));
  std::string names = " ", values = " ";
  for (const auto* stage : kStageNames)
    if (plan.seconds.contains(stage)) {
      names += fmt::format("{:>12}", stage);
      values += fmt::format("{:>12.3g}", plan.seconds.at(stage));
    }
  text += fmt::format("\n{}\n{}\n", names, values);
  if (plan.job.training && plan.job.config.run.overlap)
    text += "  (one stage after another: run.overlap will hide a part of sampling and fetching)\n";
  if (!plan.job.training) return text;
  const auto& train = plan.job.config.train;
  const double evaluations =
      train.eval_every > 0 ? static_cast<double>((train.epochs + train.eval_every - 1) / train.eval_every)
                           : 1;
  const double all =
      static_cast<double>(train.epochs) * (plan.seconds.at("total") - plan.seconds.at("evaluate")) +
      evaluations * plan.seconds.at("evaluate");
  return text + fmt::format("  {} with {}: {:.3g} s, {:.3g} rank hours\n", plural(train.epochs, "epoch"),
                            plural(std::llround(evaluations), "evaluation"), all,
                            all * plan.epoch.ranks / 3600);
}

}  // namespace

std::string plan_page(const Plan& plan) {
  return describe(plan) + memory_table(plan) + choices(plan) + volumes(plan) + reads(plan) + seconds(plan);
}

// ---- the command ----

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
