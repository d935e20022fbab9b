// espalier sample CONFIG: the samples of one or more epochs, without a network.
#include <optional>

#include "espalier/base/log.hpp"
#include "espalier/sample/epoch_sampler.hpp"
#include "job.hpp"

namespace espalier {

namespace {

EpochReport sample_epoch(const Job& job, Sampler& sampler, const Buffer<std::int64_t>& training,
                         std::int64_t epoch) {
  StageTimers timers;
  job.grid->traffic().clear();
  EpochReport report;
  report.epoch = epoch;
  {
    const StageTimers::Scope whole(timers, "total");
    const EpochPlan plan(training, job.config.sampler.batch_size, job.batches_per_step(), job.grid->ranks(),
                         static_cast<std::uint64_t>(job.config.train.seed),
                         static_cast<std::uint64_t>(epoch));
    const StageTimers::Scope time(timers, "sample");
    EpochSampler epoch_sampler(*job.grid, sampler, plan, job.bulk());
    for (std::int64_t step = 0; step < plan.steps(); ++step) {
      epoch_sampler.sample_until(job.cpu, plan.step_end(step));
      epoch_sampler.take(plan.step_begin(step), plan.step_end(step));
    }
    report.counts = total(epoch_sampler.counts(), job.grid->world());
  }
  finish_epoch_report(*job.grid, timers, kSampleStages, report);
  return report;
}

void print_epoch(const EpochReport& epoch) {
  const double seconds = epoch.seconds.at("sample").max;
  log::info(
      "epoch {:>3}  digest {}  {} batches  {} edges  {} input rows  {:.3f} s  {:.2f} M edges/s  {} bytes "
      "between ranks",
      epoch.epoch, hex(epoch.counts.digest), epoch.counts.batches, epoch.counts.sampled_edges,
      epoch.counts.input_rows, seconds,
      static_cast<double>(epoch.counts.sampled_edges) / 1e6 / std::max(seconds, 1e-9),
      epoch.bytes.at("sample").total);
}

template <class Index>
void run(Job& job, std::int64_t epochs) {
  const auto training = job.file->read_split(Split::kTrain);
  const auto a = read_model_matrix<Index>(job);
  const auto sampler = make_sampler(job.config.sampler.kind, a, sampler_shape(job.config, job.grid->ranks()));
  start_output(job);

  auto report = start_report(job, "sample", *sampler);
  log::info(
      "{}: {} nodes, {} edges; {} ranks as a {} x {} grid, {} topology, {} threads per rank; {}, {} batches "
      "of "
      "{}, {} in bulk; {}",
      job.config.graph.file, report.graph.nodes, report.graph.edges, report.ranks, job.grid->rows(),
      report.replication, job.config.grid.topology, report.threads, sampler_in_words(job.config),
      count_batches(std::ssize(training), job.config.sampler.batch_size), job.config.sampler.batch_size,
      job.bulk(), schedules_in_words(job, *sampler));
  warn_of_surprises(job);
  for (std::int64_t epoch = 1; epoch <= epochs; ++epoch) {
    report.epochs.push_back(sample_epoch(job, *sampler, training, epoch));
    print_epoch(report.epochs.back());
    append_metrics(job, report.epochs.back());
  }
  measure_peak_memory(job.grid->world(), report);
  write_report(job, report);
  log::info("\n{}", volume_table(report.epochs, report.ranks));
  log::info("report: {}", output_path(job, "report.json"));
}

}  // namespace

void sample_command(const Communicator& world, const JobArguments& arguments) {
  const auto config = load_job_config(world, arguments);
  if (arguments.dry_run) {
    log::info("{}", to_toml(config));
    return;
  }
  auto job = open_job(world, config, false);
  with_index_type(job.graph.nodes, [&](auto index) {
    run<decltype(index)>(job, std::max<std::int64_t>(1, arguments.epochs));
  });
}

}  // namespace espalier
