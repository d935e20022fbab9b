// espalier infer CONFIG --checkpoint FILE -o FILE: a trained network over the whole graph, and the
// rows of a layer in a file (infer/row_file.hpp), or answers about links.
#include <filesystem>

#include "commands.hpp"
#include "espalier/base/clock.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/output_file.hpp"
#include "espalier/base/signals.hpp"
#include "espalier/base/text.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/job/inference_on_gpu.hpp"
#include "espalier/job/job.hpp"
#include "espalier/job/named_vertices.hpp"
#include "job_in_words.hpp"

namespace espalier {

namespace {

// An input is never an output, whatever --overwrite says.
void check_place(const InferArguments& arguments, const Config& config) {
  namespace fs = std::filesystem;
  std::error_code error;
  const auto check = [&](const char* option, const std::string& path) {
    check_output({path, arguments.overwrite});
    for (const auto& input :
         {arguments.job.config, config.graph.file, arguments.checkpoint, arguments.nodes, arguments.links})
      if (!input.empty() && fs::equivalent(input, path, error))
        usage_error("{} {}: is an input of this command; give another name", option, path);
  };
  check("-o", arguments.output);
  if (arguments.csv.empty()) return;
  check("--csv", arguments.csv);
  if (fs::weakly_canonical(arguments.csv, error) == fs::weakly_canonical(arguments.output, error))
    usage_error("--csv {}: is the file of -o; give another name", arguments.csv);
}

int layer_of(const InferArguments& arguments, int layers) {
  if (arguments.layer > layers)
    usage_error("--layer {}: the network has {}", arguments.layer, counted(layers, "layer"));
  return arguments.layer == 0 ? layers : static_cast<int>(arguments.layer);
}

void warn_of_another_graph(const Job& job, const TrainedModel& model) {
  const auto difference = difference_of_inputs(model.weights.graph, job.graph, job.file->content(),
                                               job.config.model.edge_features);
  if (!difference.empty() && job.grid->world().rank() == 0)
    log::info("        {} is not the graph that the network was trained on: {}", job.config.graph.file,
              difference);
  if (job.config.graph.feature_norm == "standard" && model.weights.standardization.mean.empty() &&
      job.grid->world().rank() == 0)
    log::warning(
        "{} does not say by which mean and deviation features were standardised; those of {} are "
        "taken",
        model.path, job.config.graph.file);
}

void introduce(const Job& job, const TrainedModel& model, const RowsWanted& wanted, bool sampled) {
  const auto& weights = model.weights;
  log::info("graph   {}: {}, {}, {}{}", job.config.graph.file, counted(job.graph.nodes, "node"),
            counted(job.graph.edges, "edge"), inputs_in_words(job.graph), types_in_words(job));
  log::info("grid    {}", grid_in_words(job));
  if (job.owners.order) log::info("order   {}", order_in_words(job));
  if (job.owners.cut) log::info("cut     {}", cut_in_words(job));
  log::info("weights {}: {} epoch {}, {} numbers; layer {} of {}", model.path,
            weights.best ? "the best, of" : "saved before any evaluation, after", weights.epoch,
            model.network.parameter_count(), wanted.layer, model.layers());
  say_how_disks_are_read(job);
  if (sampled) log::info("sampled {}, seed {}", sampler_in_words(job.config), job.config.train.seed);
  note_ignored_types(job);
  warn_of_untrained(shape_of(job, model, wanted), job);
}

void show(const Job& job, const char* split, const Metrics& metrics) {
  if (metrics.vertices > 0)
    log::info("{} {}, of {}{}", split, scores_in_words(task_kind_of(job.config.train.task), metrics),
              counted(metrics.vertices, task_kind_of(job.config.train.task).example),
              split_in_words(job.graph, job.config));
}

template <class Space>
void write_and_say(InferenceSetOn<Space>& set, const RowsWanted& wanted, const OutputFile& csv) {
  const auto& job = set.job();
  const double start = now();
  auto written = write_rows(set, wanted);
  log::info("wrote   {}: {} in {:.1f} s, {:.1f} MB between ranks", wanted.output.path,
            shape_of(job, set.model(), wanted).in_words(), now() - start,
            static_cast<double>(written.bytes) / 1e6);
  if (written.list) {
    note_activity("writing the predictions as CSV");
    const auto lines =
        written.list->write(job.grid->world(), *job.file, job.graph.typed ? job.graph.target : 0, csv);
    log::info("wrote   {}: {}", csv.path, counted(lines, "prediction"));
  }
  if (!written.found) return;
  show(job, "train", written.found->train);
  show(job, "valid", written.found->valid);
  show(job, "test", written.found->test);
}

template <class Space>
void answer_and_say(InferenceSetOn<Space>& set, const InferArguments& arguments, const LinkTargets& known,
                    std::vector<LinkTriple> links) {
  const auto answers = answer_links(set, known, std::move(links), arguments.top);
  write_link_answers(set.job(), arguments.output, answers.links, answers.scores, answers.known,
                     arguments.named_by);
  log::info("wrote   {}: {}", arguments.output, counted(std::ssize(answers.links), "link"));
}

// What it means for rows and scores that they are not finite.
template <class Work>
void with_remedy(const std::string& weights, Work work) {
  try {
    work();
  } catch (const UserError& error) {
    if (error.code() != ExitCode::kDiverged) throw;
    throw UserError(
        ExitCode::kDiverged,
        fmt::format("{} with the weights of {}, which is not finite, and nothing was written; are the "
                    "features those that they were trained on? Or train with a lower "
                    "train.learning_rate, or graph.feature_norm",
                    error.what(), weights));
  }
}

// Reads what is wanted, computes and writes it.
void infer(const Job& job, const TrainedModel& model, const InferArguments& arguments, RowsWanted wanted) {
  std::unique_ptr<Targets> targets;
  std::unique_ptr<LinkTargets> known;
  std::vector<LinkTriple> links;
  const auto set = open_inference(job, model, {arguments.sampled, arguments.resume}, [&] {
    if (arguments.metrics) targets = targets_of(job, model);
    if (!arguments.links.empty()) {
      known = read_links_to_ask(*job.grid, *job.file, job.graph, job.owners.blocks, job.config);
      links = read_link_queries(job, arguments.links, arguments.top > 0, arguments.named_by);
    }
    warn_of_another_graph(job, model);
  });
  wanted.targets = targets.get();
  std::visit(
      [&](const auto& on_space) {
        if (known)
          answer_and_say(*on_space, arguments, *known, std::move(links));
        else
          write_and_say(*on_space, wanted, {arguments.csv, arguments.overwrite});
        on_space->forget_kept();
      },
      set);
}

}  // namespace

void infer_command(const Communicator& world, const InferArguments& arguments) {
  const auto config = load_job_config(world, arguments.job.config, arguments.job.overrides);
  agree(world, [&] {
    if (world.rank() == 0) check_place(arguments, config);
  });
  if (!arguments.named_by.empty() && arguments.nodes.empty() && arguments.links.empty())
    usage_error("--named-by {}: says how --nodes or --links name vertices; leave it out", arguments.named_by);
  const Watchdog watchdog(config.run.stall_minutes);
  note_consequence("nothing was written; the same command starts again");
  auto weights = read_named_weights(world, arguments.checkpoint);
  const auto earlier = earlier_run(weights, arguments.checkpoint, config);
  if (!arguments.links.empty() && config.train.task != "links")
    usage_error("--links {}: train.task = {} has learnt no links", arguments.links, config.train.task);
  if (arguments.sampled) check_sampled(config);
  auto job = open_job(world, config, JobKind::kInfer, earlier,
                      {.evaluates = arguments.metrics,
                       .answers = !arguments.links.empty(),
                       .lists = !arguments.csv.empty(),
                       .listener = log::write});
  set_memory_advice("use more ranks, a smaller grid.replication or run.memory_limit");
  check_resumed(job, arguments.resume);
  const auto model = trained_model(job, std::move(weights), arguments.checkpoint);
  RowsWanted wanted{.output = {arguments.output, arguments.overwrite},
                    .layer = layer_of(arguments, model.layers()),
                    .tables = {},
                    .half = arguments.half,
                    .predictions = arguments.predictions,
                    .list = !arguments.csv.empty()};
  wanted.tables =
      row_tables({arguments.types, arguments.nodes, arguments.named_by, arguments.predictions, arguments.csv},
                 job, wanted.layer);
  introduce(job, model, wanted, arguments.sampled);
  with_remedy(arguments.checkpoint, [&] { infer(job, model, arguments, std::move(wanted)); });
}

}  // namespace espalier
