// espalier train CONFIG: minibatch training with exact evaluation, a report at the end.
#include "espalier/job/job.hpp"
#include "espalier/train/trainer.hpp"
#include "job_in_words.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "commands.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/process.hpp"
#include "espalier/base/signals.hpp"
#include "espalier/base/text.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/job/checkpoints.hpp"
#include "espalier/job/run_output.hpp"
#include "espalier/job/training_on_gpu.hpp"
#include "espalier/train/network_tensors.hpp"

namespace espalier {

namespace {

// What standard output of a process is, or nothing where that is not to be known.
std::string output_of(std::int64_t process) {
  std::error_code unknown;
  return std::filesystem::read_symlink(fmt::format("/proc/{}/fd/1", process), unknown).string();
}

// Does standard output end in a terminal, also through mpirun? That gives rank 0 a pseudo-terminal
// of its own even when its own output goes to a file.
bool output_is_watched() {
  if (isatty(STDOUT_FILENO) == 0) return false;
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) return true;
  // The first above that writes elsewhere is mpirun, or a daemon without a terminal; `time` or
  // `numactl` between write where we do.
  const auto mine = output_of(getpid());
  std::int64_t above = getppid();
  while (above > 1 && output_of(above) == mine) above = parent_of_process(above);
  const auto name = output_of(above);
  return name.starts_with("/dev/pts/") || name.starts_with("/dev/tty");
}

// A line that rewrites itself on a terminal; nothing in a batch log, where the epochs' lines
// tell enough.
void show_step(std::int64_t epoch, std::int64_t step, std::int64_t steps) {
  static const bool watched = log::enabled(log::Level::kInfo) && output_is_watched();
  if (!watched) return;
  std::printf("\repoch %ld: step %ld of %ld \x1b[K%s", epoch, step, steps, step == steps ? "\r\x1b[K" : "");
  std::fflush(stdout);
}

void show_epoch(const EpochReport& epoch, const MetricKind& metric) {
  std::string line = fmt::format("epoch {:>4}  loss {:.4f}", epoch.epoch, *epoch.loss);
  const auto valid = epoch.valid ? epoch.valid->find(metric.name) : std::nullopt;
  if (valid) line += fmt::format("  valid {:.4f}", *valid);
  line += fmt::format("  {:.2f} s (", epoch.seconds.at("total").max);
  const char* separator = "";
  for (const std::string stage : kTrainStages) {
    if (stage == "evaluate" && !epoch.valid) continue;
    line += fmt::format("{}{} {:.2f}", separator, stage, epoch.seconds.at(stage).max);
    separator = ", ";
  }
  std::int64_t bytes = 0;
  for (const auto& [stage, volume] : epoch.bytes) bytes += volume.total;
  log::info("{})  {:.1f} MB between ranks", line, static_cast<double>(bytes) / 1e6);
}

void describe(const Job& job, const RunReport& report, const std::vector<Schedule>& schedules,
              std::int64_t parameters) {
  const auto& config = job.config;
  const auto& task = task_kind_of(config.train.task);
  const auto [train, valid, test] = task.splits(report.graph);
  log::info(
      "graph   {}: {}, {}, {}, {}; {} / {} / {} {} to train / validate / test{}{}", config.graph.file,
      counted(report.graph.nodes, "node"), counted(report.graph.edges, "edge"), inputs_in_words(report.graph),
      task.of_labels ? counted(report.graph.classes, task.noun)
                     : counted(report.graph.links.relations(), "relation of links", "relations of links"),
      train, valid, test, plural_of(task.example), split_in_words(report.graph, config), types_in_words(job));
  log::info("grid    {}", grid_in_words(job));
  if (job.owners.order) log::info("order   {}", order_in_words(job));
  if (job.owners.cut) log::info("cut     {}", cut_in_words(job));
  log::info(
      "job     {}, {}; {}, batch {}, {} per step, {} in bulk; "
      "{}",
      layers_in_words(config, fmt::format("hidden {}", config.model.hidden)),
      counted(parameters, "parameter"), sampler_in_words(config), config.sampler.batch_size,
      job.batches_per_step(), job.bulk(), schedules_in_words(job, schedules));
  say_how_disks_are_read(job);
  if (const auto tables = tables_of(job); tables.back().trainable) {
    std::int64_t rows = 0;
    std::string types;
    for (const auto& type : embedded_types(tables.back().held, job.graph.schema)) {
      rows += type.end - type.begin;
      types += (types.empty() ? "" : ", ") + type.name;
    }
    log::info("learnt  {} of {}, by {}: {}", counted(rows, "row"), counted(tables.back().width, "number"),
              config.train.embedding_optimizer, types);
  }
  warn_of_surprises(job);
}

// Puts the trainer and the report where the checkpoint was saved.
template <class Space>
void go_on_from(Restart& restart, const Job& job, RunOutput& output, TrainerOn<Space>& trainer,
                RunReport& report) {
  auto& checkpoint = restart.checkpoint;
  const auto missing = trainer.restore(checkpoint.state);
  checkpoint.state.tensors.clear();  // and the file is closed
  report.epochs = checkpoint.epochs;
  for (const auto& epoch : report.epochs) output.add(epoch);
  report.restart = {restart.path, checkpoint.state.cursor.epoch, checkpoint.state.cursor.step,
                    checkpoint.ranks};
  log::info("{}", restart_in_words(job, restart));
  for (const auto& words : missing) log::warning("{} has {}", restart.path, words);
  if (checkpoint.graph.content.datasets.empty() || !job.graph.content.complete)
    log::info("        whether its graph is this one is judged by counts: {} has no digests",
              checkpoint.graph.content.datasets.empty() ? "the checkpoint" : "the graph file");
}

// What it means for a run in steps that it ends at once.
const char* where_to_go_on(const Job& job) {
  return job.config.run.restart == "auto"
             ? "the same command goes on from its last checkpoint, if it saved one"
             : "run.restart = \"auto\" goes on from its last checkpoint, if it saved one";
}

void say_where_the_loss_went(const Job& job, const RunReport& report) {
  if (report.epochs.empty() || report.diverged) return;
  const auto& first = report.epochs.front();
  const auto& last = report.epochs.back();
  if (*last.loss <= *first.loss || job.grid->world().rank() != 0) return;
  log::warning("the loss of epoch {}, {:.4f}, is above that of epoch {}, {:.4f}; {}", last.epoch, *last.loss,
               first.epoch, *first.loss, remedy_for_divergence(job.config));
}

// Collective. The best weights of a run that stops here, if there are any.
void write_weights_so_far(const Job& job, RunOutput& output, const TrainingState& state,
                          const JobCheckpoints& checkpoints) {
  if (state.best_epoch == 0) return;
  const auto missing = output.write_weights(weights_of(job.grid->world(), state));
  if (!missing.empty()) log::warning("{}; {}", missing, checkpoints.holder(state.best_epoch));
}

// What ends a training with an error, on all ranks together, takes no weights along.
template <class Space>
TrainingResult train_or_leave_weights(const Job& job, RunOutput& output, TrainerOn<Space>& trainer,
                                      const TrainingProgress& progress, const JobCheckpoints& checkpoints) {
  constexpr double kPatienceSeconds = 5;
  try {
    return trainer.train(progress);
  } catch (const UserError&) {
    if (all_arrive_within(job.grid->world(), kPatienceSeconds))
      write_weights_so_far(job, output, trainer.best(), checkpoints);
    throw;
  }
}

// Trains on a space with what was set up there, and reports.
template <class Space>
void train(Job& job, RunOutput& output, std::optional<Restart>& restart, const Space& space,
           const TrainingJobOn<Space>& training) {
  const auto& kind = task_kind_of(job.config.train.task);
  const auto& metric = metric_of(job.config.train);
  output.start(job);
  if (!restart || !restart->in_output) output.remove_weights();
  TrainerOn<Space> trainer(space, training);
  const auto& schedules = training.sampler.schedules();
  auto report = start_report(job, "train", schedules);
  describe(job, report, schedules, trainer.network().parameter_count());
  if (restart) go_on_from(*restart, job, output, trainer, report);
  note_activity("training");
  note_consequence(where_to_go_on(job));
  const StepsUnderWay steps_under_way;  // a signal to stop waits for the end of a step
  JobCheckpoints checkpoints(job, restart);
  checkpoints.describe();
  WeightsOnTheWay on_the_way(job, output);
  const TrainingProgress progress = {.on_step = show_step,
                                     .on_epoch =
                                         [&](const EpochReport& epoch) {
                                           report.epochs.push_back(epoch);
                                           show_epoch(epoch, metric);
                                           output.add(epoch);
                                           on_the_way.offer(trainer.best_epoch(), [&] {
                                             return weights_of(job.grid->world(), trainer.best());
                                           });
                                         },
                                     .next =
                                         [&](const Cursor& cursor, std::int64_t steps, bool last) {
                                           note_progress();
                                           return checkpoints.next(cursor, steps, last);
                                         },
                                     .save =
                                         [&](const TrainingState& state) {
                                           checkpoints.save(state, report.epochs);
                                           if (checkpoints.stopping())
                                             write_weights_so_far(job, output, state, checkpoints);
                                         },
                                     .goes_on =
                                         [&] {
                                           note_progress();
                                           return checkpoints.goes_on();
                                         }};
  const auto result = train_or_leave_weights(job, output, trainer, progress, checkpoints);
  if (result.interrupted) checkpoints.leave_interrupted(*result.interrupted);

  checkpoints.report(report);
  report.test = result.test;
  report.confusion = result.confusion;
  report.best_epoch = result.best_epoch;
  report.diverged = result.diverged;
  for (const auto& epoch : report.epochs)
    if (epoch.epoch == result.best_epoch) report.train = epoch.train;
  const bool has_weights = result.best_epoch > 0 || !result.diverged;
  if (has_weights) report.weights_digest = hex(trainer.weights_digest());
  measure_peak_memory(job, report);
  if (result.stopped_early)
    log::info("stopped early: no better validation {} in {}", metric.words,
              counted(job.config.train.early_stop, "evaluation"));
  if (!report.epochs.empty())
    log::info("\n{}\n{}{}", stage_table(report.epochs), volume_table(report.epochs, report.ranks),
              work_balance_line(report.epochs) + lines_of_parts(report.epochs));
  if (report.train)
    log::info("train {}, with the weights of epoch {}", scores_in_words(kind, *report.train),
              result.best_epoch);
  if (result.test)
    log::info("test {}, with the weights of epoch {}", scores_in_words(kind, *result.test),
              result.best_epoch);
  say_where_the_loss_went(job, report);
  std::string missing;
  if (has_weights) {
    auto weights = trainer.trained();
    weights.epoch = result.best_epoch;
    missing = output.write_weights(std::move(weights));
  } else {
    output.remove_weights();
  }
  if (!missing.empty()) add_problem(missing, checkpoints.holder(result.best_epoch));
  output.write(report, missing, print_report);
}

}  // namespace

void train_command(const Communicator& world, const JobArguments& arguments) {
  const auto config = load_job_config(world, arguments.config, arguments.overrides, !arguments.dry_run);
  if (arguments.dry_run) {
    log::info("{}", to_toml(config));
    return;
  }
  RunOutput output(world, config, arguments.overwrite);
  const auto& earlier_run = output.earlier();
  const Watchdog watchdog(config.run.stall_minutes);
  note_consequence("nothing is lost; the same command starts again");
  note_activity("looking for a checkpoint");
  auto restart = find_restart(world, config, earlier_run, log::write);
  if (!restart || !restart->in_output) output.refuse_to_replace();
  if (restart) note_consequence("nothing is lost; the same command goes on from its checkpoint");
  EarlierRun earlier;
  if (restart) earlier.batches_per_step = restart->config.train.batches_per_step;
  auto job = open_job(world, config, JobKind::kTrain, earlier, {.listener = log::write});
  job.begins_anew = config.run.restart == "never" || (earlier_run.replaced && !restart);
  if (restart) check_restart(job, *restart);
  if (restart && restart->in_output && earlier_run.whole && !earlier_run.replaced && is_done(job, *restart)) {
    log::info("{}", restart_in_words(job, *restart));
    return;
  }
  if (restart) check_epochs(job, *restart);
  const auto check = [&] {
    if (restart) check_same_content(job, job.file->content(), *restart);
  };
  const auto training = open_training(job, check);
  std::visit([&](const auto& set) { train(job, output, restart, set->space(), set->lent()); }, training);
}

}  // namespace espalier
