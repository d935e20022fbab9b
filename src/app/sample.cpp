// espalier sample CONFIG: the samples of one or more epochs, without a network.
#include <optional>

#include "commands.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/text.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/job/job.hpp"
#include "espalier/job/minibatch_folder.hpp"
#include "espalier/job/run_output.hpp"
#include "espalier/job/sampling_on_gpu.hpp"
#include "espalier/sample/copy_minibatch.hpp"
#include "espalier/train/task.hpp"
#include "job_in_words.hpp"

namespace espalier {

namespace {

void print_epoch(const EpochReport& epoch) {
  const double seconds = epoch.seconds.at("sample").max;
  log::info(
      "epoch {:>3}  digest {}  {}  {}  {}  {:.3f} s  {:.2f} M edges/s  {} bytes "
      "between ranks",
      epoch.epoch, hex(epoch.counts.digest), counted(epoch.counts.batches, "batch"),
      counted(epoch.counts.sampled_edges, "edge"), counted(epoch.counts.input_rows, "input row"), seconds,
      static_cast<double>(epoch.counts.sampled_edges) / 1e6 / std::max(seconds, 1e-9),
      epoch.bytes.at("sample").total);
}

/// Where minibatches go, with --write; or null.
struct Written {
  JobLabels* labels = nullptr;
  MinibatchFolder* folder = nullptr;
};

template <class Space>
MinibatchesWanted<Space> wanted_by(Written to, const Space& space, std::int64_t epoch) {
  if (to.folder == nullptr) return {};
  return {[=, &space](const SeedBatch& batch, const MinibatchOn<Space>& minibatch) {
            to.folder->add(epoch, on_host(space, minibatch), to.labels->of(batch));
          },
          [=] { to.folder->check(); }};
}

template <class Space>
void sample(Job& job, RunOutput& output, const Space& space, SamplerOn<Space>& sampler,
            const ExampleSource& examples, std::int64_t epochs, Written to) {
  output.start(job);
  if (to.folder != nullptr) to.folder->begin();
  auto report = start_report(job, "sample", sampler.schedules());
  log::info("{}: {}, {}; {}; {}, {} of {}{}, {} in bulk; {}", job.config.graph.file,
            counted(report.graph.nodes, "node"), counted(report.graph.edges, "edge"), grid_in_words(job),
            sampler_in_words(job.config), counted(batches_of_epoch(job.graph, job.config), "batch"),
            job.config.sampler.batch_size, split_in_words(job.graph, job.config), job.bulk(),
            schedules_in_words(job, sampler.schedules()));
  if (job.owners.order) log::info("order   {}", order_in_words(job));
  if (job.owners.cut) log::info("cut     {}", cut_in_words(job));
  warn_of_surprises(job);
  note_activity("sampling");
  for (std::int64_t epoch = 1; epoch <= epochs; ++epoch) {
    report.epochs.push_back(sample_epoch(job, space, sampler, examples, epoch, wanted_by(to, space, epoch)));
    print_epoch(report.epochs.back());
    output.add(report.epochs.back());
  }
  measure_peak_memory(job, report);
  log::info("\n{}", volume_table(report.epochs, report.ranks));
  if (to.folder != nullptr) to.folder->commit(job, report, *to.labels);
  output.write(report, {}, print_report);
}

}  // namespace

void sample_command(const Communicator& world, const JobArguments& arguments) {
  const auto config = load_job_config(world, arguments.config, arguments.overrides, !arguments.dry_run);
  if (arguments.dry_run) {
    log::info("{}", to_toml(config));
    return;
  }
  if (arguments.write && arguments.write->empty())
    usage_error("--write: name the folder that minibatches go to");
  RunOutput output(world, config, arguments.overwrite);
  output.refuse_to_replace();
  std::unique_ptr<MinibatchFolder> folder;
  if (arguments.write)
    folder =
        std::make_unique<MinibatchFolder>(world, *arguments.write, config.output.dir, arguments.overwrite);
  const Watchdog watchdog(config.run.stall_minutes);
  auto job = open_job(world, config, arguments.write ? JobKind::kWrite : JobKind::kSample, {},
                      {.listener = log::write});
  note_activity("reading the training examples");
  const auto labels = folder ? std::make_unique<JobLabels>(job) : nullptr;
  const auto examples = labels ? nullptr
                               : task_kind_of(job.config.train.task)
                                     .read_examples(world, *job.file, job.config, job.owners.groups.get());
  with_matrix(job, [&](const auto& space, const auto& matrix) {
    const auto sampler = make_job_sampler(job, space, matrix);
    sample(job, output, space, *sampler, labels ? labels->examples() : *examples, arguments.epochs,
           {labels.get(), folder.get()});
  });
}

}  // namespace espalier
