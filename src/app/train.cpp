// espalier train CONFIG: minibatch training with exact evaluation, a report at the end.
#include "espalier/train/trainer.hpp"

#include <bit>
#include <cstdio>

#include "espalier/base/log.hpp"
#include "job.hpp"
#include "terminal.hpp"

namespace espalier {

namespace {

// A line that rewrites itself on a terminal; nothing in a batch log, where the epochs' lines tell enough.
void show_step(std::int64_t epoch, std::int64_t step, std::int64_t steps) {
  static const bool watched = log::enabled(log::Level::kInfo) && output_is_watched();
  if (!watched) return;
  std::printf("\repoch %ld: step %ld of %ld \x1b[K%s", epoch, step, steps, step == steps ? "\r\x1b[K" : "");
  std::fflush(stdout);
}

void show_epoch(const EpochReport& epoch) {
  std::string line = fmt::format("epoch {:>4}  loss {:.4f}", epoch.epoch, *epoch.loss);
  if (epoch.valid) line += fmt::format("  valid {:.4f}", epoch.valid->accuracy);
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

std::string digest_of_weights(const Network<float>& network) {
  std::uint64_t digest = 0xcbf29ce484222325u;  // FNV-1a over the bits of all parameters in order
  for (const auto& parameter : network.parameters())
    for (const float x : parameter.value.data)
      digest = (digest ^ std::bit_cast<std::uint32_t>(x)) * 0x100000001b3u;
  return hex(digest);
}

void describe(const Job& job, const RunReport& report, const Sampler& sampler, std::int64_t parameters) {
  const auto& config = job.config;
  log::info(
      "graph   {}: {} nodes, {} edges, {} features, {} classes; {} / {} / {} vertices to train / validate / "
      "test",
      config.graph.file, report.graph.nodes, report.graph.edges, report.graph.features, report.graph.classes,
      report.graph.train, report.graph.valid, report.graph.test);
  log::info("grid    {} rank{} as {} block rows x {} copies, {} topology, {} thread{} per rank, on the CPU",
            report.ranks, report.ranks == 1 ? "" : "s", job.grid->rows(), report.replication,
            config.grid.topology, report.threads, report.threads == 1 ? "" : "s");
  log::info(
      "job     {} layers of {}, hidden {}, {} parameters; {}, batch {}, {} per step, {} in bulk; "
      "{}",
      config.model.layers, config.model.kind, config.model.hidden, parameters, sampler_in_words(config),
      config.sampler.batch_size, job.batches_per_step(), job.bulk(), schedules_in_words(job, sampler));
  warn_of_surprises(job);
}

template <class Index>
void run(Job& job) {
  // 1. The matrix on the grid, and what is learnt from it.
  const auto a = read_model_matrix<Index>(job);
  const auto targets = read_targets(*job.grid, *job.file);
  const auto features = read_feature_store(*job.grid, *job.file, job.config.graph.feature_norm);

  // 2. Samplers: minibatches for training, whole rows for evaluation.
  const auto shape = sampler_shape(job.config, job.grid->ranks());
  const auto sampler = make_sampler(job.config.sampler.kind, a, shape);
  const auto whole_rows = make_sampler("graphsage", a,
                                       {.fanout = {-1},
                                        .weighted = shape.weighted,
                                        .aggregation = shape.aggregation,
                                        .label = "evaluate",
                                        .schedule = Schedule::kPull});
  const Evaluator evaluator(*job.grid, *whole_rows, features, targets, job.graph.edges, job.memory_limit / 8);
  start_output(job);

  // 3. Train.
  Trainer trainer(job.cpu, {*job.grid, job.config, *sampler, features, targets, evaluator, job.bulk(),
                            job.batches_per_step(), job.sampling_grid.get()});
  auto report = start_report(job, "train", *sampler);
  describe(job, report, *sampler, trainer.network().parameter_count());
  const auto result = trainer.train({show_step, [&](const EpochReport& epoch) {
                                       report.epochs.push_back(epoch);
                                       show_epoch(epoch);
                                       append_metrics(job, epoch);
                                     }});

  // 4. Report.
  report.test = result.test;
  report.best_epoch = result.best_epoch;
  report.weights_digest = digest_of_weights(trainer.network());
  measure_peak_memory(job.grid->world(), report);
  write_report(job, report);
  if (result.stopped_early)
    log::info("stopped early: no better validation accuracy in {} evaluations", job.config.train.early_stop);
  log::info("\n{}\n{}", stage_table(report.epochs), volume_table(report.epochs, report.ranks));
  if (result.test)
    log::info("test accuracy {:.4f}, macro-F1 {:.4f}, with the weights of epoch {}", result.test->accuracy,
              result.test->macro_f1, result.best_epoch);
  log::info("report: {}", output_path(job, "report.json"));
}

}  // namespace

void train_command(const Communicator& world, const JobArguments& arguments) {
  const auto config = load_job_config(world, arguments);
  if (arguments.dry_run) {
    log::info("{}", to_toml(config));
    return;
  }
  auto job = open_job(world, config, true);
  with_index_type(job.graph.nodes, [&](auto index) { run<decltype(index)>(job); });
}

}  // namespace espalier
