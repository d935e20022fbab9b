// espalier infer CONFIG --checkpoint FILE -o FILE: a trained network over the whole graph, and the
// rows of a layer in a file (infer/row_file.hpp).
#include <filesystem>
#include <optional>

#include "commands.hpp"
#include "espalier/base/clock.hpp"
#include "espalier/base/counted.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/output_file.hpp"
#include "espalier/base/progress.hpp"
#include "espalier/base/signals.hpp"
#include "espalier/base/version.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/comm/agree.hpp"
#include "espalier/comm/session.hpp"
#include "espalier/infer/layerwise_pass.hpp"
#include "espalier/infer/prediction_list.hpp"
#include "espalier/infer/row_file.hpp"
#include "espalier/job/changed_keys.hpp"
#include "espalier/job/job.hpp"
#include "espalier/job/job_config.hpp"
#include "espalier/job/job_on_gpu.hpp"
#include "espalier/job/kept_layers.hpp"
#include "espalier/job/link_queries.hpp"
#include "espalier/job/named_vertices.hpp"
#include "espalier/job/row_tables.hpp"
#include "espalier/job/trained_network.hpp"
#include "espalier/nn/network_shape.hpp"
#include "espalier/train/evaluator.hpp"
#include "espalier/train/network_tensors.hpp"
#include "espalier/train/on_host.hpp"
#include "espalier/train/task.hpp"
#include "espalier/train/weights_file.hpp"
#include "job_in_words.hpp"

namespace espalier {

namespace {

/// What the command works with, apart from the job.
struct Inference {
  const InferArguments& arguments;
  TrainedWeights weights;
  Network<float> network;
  int layer = 1;                                  ///< whose rows are written
  std::vector<RowTable> tables = {};              ///< of the file
  std::unique_ptr<Targets> targets = {};          ///< with --metrics
  std::unique_ptr<LinkTargets> known_links = {};  ///< with --links
  std::vector<LinkTriple> links = {};             ///< of --links

  int layers() const { return network.stages(); }
  /// Of the layers, is the last one asked for?
  bool needs_logits() const {
    return layer == layers() || arguments.predictions || arguments.metrics || !arguments.csv.empty();
  }
};

// ---- before the work ----

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

// Collective.
TrainedWeights read_named_weights(const Communicator& world, const std::string& path) {
  note_activity("reading the weights");
  agree(world, [&] {
    if (world.rank() == 0 && other_than_file(path) == "folder")
      input_error("{}: is a folder; name a weights.h5 or a checkpoint (checkpoints/latest)", path);
  });
  return read_weights(world, path);
}

// The table of embeddings that the network was trained with, or null.
template <class Space>
std::unique_ptr<EmbeddingStoreOn<Space>> trained_embeddings(const Job& job, const Inference& inference,
                                                            const Space& space, const GridOn<Space>& grid) {
  auto store = make_embeddings(job, space, grid);
  if (store == nullptr) return store;
  note_activity("reading the embeddings");
  const auto find = [&](const std::string& name, std::int64_t rows,
                        std::int64_t columns) -> const StateTensor& {
    const auto& path = inference.arguments.checkpoint;
    const auto& tensors = inference.weights.embeddings;
    const auto found = std::ranges::find(tensors, name, &StateTensor::name);
    if (tensors.empty() && !inference.weights.no_embeddings.empty())
      input_error("{}: {}; put the one beside it that was written with it", path,
                  inference.weights.no_embeddings);
    if (found == tensors.end())
      input_error("{} has no {}, which this network has; its weights are of another network", path, name);
    if (found->rows != rows || found->columns != columns)
      input_error("{} is {} x {} in {} and {} x {} for {}; embeddings are of the graph they were trained on",
                  name, found->rows, found->columns, path, rows, columns, job.config.graph.file);
    return *found;
  };
  agree(job.grid->world(), [&] { store->restore(space, find, /*with_state=*/false); });
  return store;
}

int layer_of(const InferArguments& arguments, int layers) {
  if (arguments.layer > layers)
    usage_error("--layer {}: the network has {}", arguments.layer, counted(layers, "layer"));
  return arguments.layer == 0 ? layers : static_cast<int>(arguments.layer);
}

// Collective. Classes are those of the network.
std::unique_ptr<Targets> targets_of(const Job& job, const Inference& inference) {
  const auto& checkpoint = inference.arguments.checkpoint;
  auto targets = read_targets(*job.grid, *job.file, job.owners.blocks, job.config);
  if (!task_kind_of(job.config.train.task).of_labels) return targets;
  if (targets->outputs > job.graph.classes)
    input_error("{}: /nodes/labels has {}, and the network of {} knows {}", job.config.graph.file,
                counted(targets->outputs, task_kind_of(job.config.train.task).noun), checkpoint,
                job.graph.classes);
  targets->outputs = job.graph.classes;
  return targets;
}

void warn_of_another_graph(const Job& job, const Inference& inference) {
  const auto difference = difference_of_inputs(inference.weights.graph, job.graph, job.file->content(),
                                               job.config.model.edge_features);
  if (!difference.empty() && job.grid->world().rank() == 0)
    log::info("        {} is not the graph that the network was trained on: {}", job.config.graph.file,
              difference);
  if (job.config.graph.feature_norm == "standard" && inference.weights.standardization.mean.empty() &&
      job.grid->world().rank() == 0)
    log::warning(
        "{} does not say by which mean and deviation features were standardised; those of {} are "
        "taken",
        inference.arguments.checkpoint, job.config.graph.file);
}

// ---- the work ----

/// Gives the rows of a layer to several sinks, of which only the last may take their memory.
template <class Space>
class SeveralSinks final : public RowSinkOn<Space> {
 public:
  void add(RowSinkOn<Space>& sink) { sinks_.push_back(&sink); }
  RowSinkOn<Space>* or_null() { return sinks_.empty() ? nullptr : this; }
  void take(const Space& space, std::int64_t first, Matrix<float, Space>& rows) override {
    for (auto* sink : sinks_) sink->take(space, first, rows);
  }

 private:
  std::vector<RowSinkOn<Space>*> sinks_;
};

void write_metrics(const hdf5::Handle& root, const char* split, const Metrics& metrics, bool& good) {
  const auto name = [&](const char* what) { return std::string(split) + "_" + what; };
  for (const auto& score : metrics.scores)  // none of a split without vertices
    if (metrics.vertices > 0 && metrics.find(score.name))
      good = hdf5::write_number_attribute(root, name(score.name.c_str()).c_str(), score.value) && good;
  good = hdf5::write_integer_attribute(root, name("vertices").c_str(), metrics.vertices) && good;
}

// What made the file.
bool describe(const hdf5::Handle& root, const Job& job, const Inference& inference, std::uint64_t digest,
              const std::optional<Evaluation>& found) {
  const auto& weights = inference.weights;
  bool good = true;
  const auto text = [&](const char* name, const std::string& value) {
    good = hdf5::write_text_attribute(root, name, value) && good;
  };
  const auto number = [&](const char* name, std::int64_t value) {
    good = hdf5::write_integer_attribute(root, name, value) && good;
  };
  text("espalier", kVersion);
  text("checkpoint", inference.arguments.checkpoint);
  number("epoch", weights.epoch);
  text("weights_digest", hex(digest));
  text("config", weights.config);
  text("config_digest", hex(content_digest(std::span<const char>(weights.config), 0)));
  number("layer", inference.layer);
  number("layers", inference.layers());
  text("graph", job.config.graph.file);
  if (inference.arguments.sampled) {
    text("sampled", sampler_in_words(job.config));
    number("seed", job.config.train.seed);
  }
  if (job.graph.typed) text("types", types_of(inference.tables, job.graph));
  if (job.graph.typed && job.graph.target >= 0)
    text("target", job.graph.schema.types()[job.graph.target].name);
  if (const auto split = job.graph.split_name(); !split.empty()) text("split", split);
  if (const auto of_graph = job.file->content().file) text("graph_digest", hex(*of_graph));
  if (!found) return good;
  write_metrics(root, "train", found->train, good);
  write_metrics(root, "valid", found->valid, good);
  write_metrics(root, "test", found->test, good);
  return good;
}

void show(const Job& job, const char* split, const Metrics& metrics) {
  if (metrics.vertices > 0)
    log::info("{} {}, of {}{}", split, scores_in_words(task_kind_of(job.config.train.task), metrics),
              counted(metrics.vertices, task_kind_of(job.config.train.task).example),
              split_in_words(job.graph, job.config));
}

RowFileShape shape_of(const Job& job, const Inference& inference) {
  const auto& task = task_kind_of(job.config.train.task);
  const bool logits = task.of_labels && inference.layer == inference.layers();
  return {.rows = logits ? "/logits" : "/embeddings",
          .width = inference.network.output_width(inference.layer),
          .half = inference.arguments.half,
          .labels = task.several_labels ? job.graph.classes : 0,
          .tables = inference.tables};
}

// Those of the target, of which --csv is.
const RowTable& table_of_target(const Job& job, const Inference& inference) {
  const auto& tables = inference.tables;
  if (tables.size() == 1) return tables[0];
  return *std::ranges::find(tables, job.graph.schema.types()[job.graph.target].name, &RowTable::type);
}

// What a pass is given: all neighbours, or with --sampled what training's sampler draws.
std::string sampler_name(const Job& job, const Inference& inference) {
  return inference.arguments.sampled ? job.config.sampler.kind : "graphsage";
}
SamplerShape rows_to_read(const Job& job, const Inference& inference) {
  auto shape = sampler_shape(job.config, job.graph, job.grid->ranks());
  if (!inference.arguments.sampled) return whole_rows_shape(shape, kInferLabel);
  shape.label = kInferLabel;
  return shape;
}

template <class Space>
LayerwisePassOn<Space> pass_over(const Job& job, const Inference& inference, const GridOn<Space>& grid,
                                 SamplerOn<Space>& sampler, const EntriesOfRows& entries) {
  LayerwisePassOn<Space> pass(grid, sampler, job.owners.blocks, entries, pass_memory(job), kInferLabel);
  if (inference.arguments.sampled) pass.draw_by(static_cast<std::uint64_t>(job.config.train.seed));
  return pass;
}

// What the rows of a layer depend on.
std::string made_of(const Job& job, const Inference& inference, std::uint64_t digest) {
  const auto& weights = inference.weights;
  const auto there = parse_saved_config(weights.config, inference.arguments.checkpoint).config;
  auto words = fmt::format("{} {} {}", kVersion, hex(digest), weights.config);
  for (const auto& key : changed_keys(there, job.config, job.graph))
    if (key.effect != KeyEffect::kCost) words += fmt::format(" {} = {}", key.name, key.second);
  for (const auto& tensor : weights.tensors)
    words += tensor.name + hex(content_digest(std::span<const float>(tensor.values), 0));
  for (const auto* numbers : {&weights.standardization.mean, &weights.standardization.deviation})
    for (const auto number : *numbers) words += fmt::format(" {}", number);
  if (inference.arguments.sampled) words += " sampled";
  words += fmt::format(" {} {} {}", job.graph.nodes, job.graph.edges, job.graph.features);
  if (const auto of_graph = job.file->content().file) words += hex(*of_graph);
  return words;
}

// Collective. With --resume; none where no layer is hidden.
template <class Space>
std::unique_ptr<KeptLayers> kept_layers(const Job& job, const Inference& inference, const Space& space,
                                        const InputStoresOn<Space>& input,
                                        const Network<float, Space>& network, std::size_t layers) {
  const auto& folder = inference.arguments.resume;
  if (folder.empty() || layers < 2) return nullptr;
  const auto digest = weights_digest(job.grid->world(), trained_weights(space, network, input));
  return std::make_unique<KeptLayers>(job, folder, made_of(job, inference, digest),
                                      static_cast<int>(layers) - 1);
}

// The pass over layers whose rows go to `sinks`; `check` is asked when a chunk is done.
template <class Space>
void compute(const Space& space, LayerwisePassOn<Space>& pass, InputStoresOn<Space>&& input,
             const Network<float, Space>& network, const std::vector<RowSinkOn<Space>*>& sinks,
             const std::function<void()>& check) {
  pass.run(space, network, std::move(input), sinks, [&] {
    note_progress();
    if (check) check();
    return true;
  });
}

// The same of layers that are kept: it begins after those that are done.
void compute_and_keep(const Job& job, KeptLayers& kept, LayerwisePass& pass, InputStores&& input,
                      const Network<float>& network, std::vector<RowSink*> sinks,
                      const std::function<void()>& check) {
  const int done = kept.done(), hidden = static_cast<int>(sinks.size()) - 1;
  RowsByVertexOn<Cpu> rows_here(
      pass.shares(), job.grid->world().rank(),
      [&](std::int64_t vertex, const Matrix<float>& rows) { kept.take(vertex, rows); });
  std::vector<SeveralSinks<Cpu>> several(static_cast<std::size_t>(hidden));
  for (int l = done; l < hidden; ++l) {
    auto& sink = several[static_cast<std::size_t>(l)];
    sink.add(rows_here);
    if (sinks[l] != nullptr) sink.add(*sinks[l]);
    sinks[l] = &sink;
  }
  const auto begin = [&](int layer) {
    if (layer <= hidden) kept.begin(layer, network.output_width(layer));
  };
  pass.begin_after(done, [&](int layer) {
    kept.end();
    begin(layer + 1);
  });
  auto rows = std::move(input);
  if (done > 0) {
    log::info("layers  {} of {} were computed before; going on", done, hidden + 1);
    std::vector<RowStore> of_layer;
    of_layer.push_back(kept.read(network.output_width(done)));
    rows = InputStores(std::move(of_layer), nullptr, rows.edges());
  }
  begin(done + 1);
  compute(Cpu(job.cpu), pass, std::move(rows), network, sinks, [&] {
    kept.check();
    if (check) check();
  });
}

// One or the other.
template <class Space>
void compute(const Job& job, KeptLayers* kept, const Space& space, LayerwisePassOn<Space>& pass,
             InputStoresOn<Space>&& input, const Network<float, Space>& network,
             const std::vector<RowSinkOn<Space>*>& sinks, const std::function<void()>& check = {}) {
  note_activity("computing the layers");
  if constexpr (std::is_same_v<Space, Cpu>)
    if (kept != nullptr) return compute_and_keep(job, *kept, pass, std::move(input), network, sinks, check);
  compute(space, pass, std::move(input), network, sinks, check);
}

// The scores of --links, or the best tails.
template <class Space>
void answer_links(const Job& job, const Inference& inference, const Space& space, const GridOn<Space>& grid,
                  SamplerOn<Space>& sampler, const EntriesOfRows& entries, InputStoresOn<Space>&& input,
                  const Network<float, Space>& network) {
  const auto& arguments = inference.arguments;
  auto pass = pass_over(job, inference, grid, sampler, entries);
  KeptRowsOn<Space> last(pass.rows(), network.output_width(network.stages()));
  std::vector<RowSinkOn<Space>*> sinks(inference.layers(), nullptr);
  sinks.back() = &last;
  const auto kept = kept_layers(job, inference, space, input, network, sinks.size());
  compute(job, kept.get(), space, pass, std::move(input), network, sinks);

  note_activity("scoring links");
  Buffer<float> copy;
  const auto rows = last.release();
  const ConstMatrixView<float> own(rows.rows, rows.columns, rows_on_host(space, rows, copy));
  const TensorsOnHost<Space> on_host(space, network.task_tensors());
  const auto& targets = *inference.known_links;
  auto links = inference.links;
  std::vector<float> scores;
  if (arguments.top == 0) {
    scores = score_links(job.cpu, *job.grid, targets, job.config.train, own, on_host.views(), links);
  } else {
    const auto top = std::min(arguments.top, job.graph.nodes);
    const auto best =
        best_tails(job.cpu, *job.grid, targets, job.config.train, own, on_host.views(), links, top);
    links.clear();
    for (std::size_t k = 0; k < best.size(); ++k) {
      const auto& of = inference.links[k / static_cast<std::size_t>(top)];
      if (best[k].vertex < 0) continue;
      links.push_back({of.head, best[k].vertex, of.relation});
      scores.push_back(best[k].score);
    }
  }
  write_link_answers(job, arguments.output, links, scores,
                     links_of_file(*job.grid, targets).are_known(job.grid->world(), links),
                     arguments.named_by);
  if (kept) kept->remove();
  log::info("wrote   {}: {}", arguments.output, counted(std::ssize(links), "link"));
}

// On a space, with what was set up there.
template <class Space>
void infer(const Job& job, const Inference& inference, const Space& space, const GridOn<Space>& grid,
           SamplerOn<Space>& sampler, const EntriesOfRows& entries, InputStoresOn<Space>&& input,
           const Network<float, Space>& network) {
  const auto& arguments = inference.arguments;
  if (!arguments.links.empty())
    return answer_links(job, inference, space, grid, sampler, entries, std::move(input), network);
  const auto& world = job.grid->world();
  const double start = now();
  const auto digest = weights_digest(world, trained_weights(space, network, input));
  auto pass = pass_over(job, inference, grid, sampler, entries);
  const auto shape = shape_of(job, inference);
  RowFile file(world, {arguments.output, arguments.overwrite}, shape);
  RowsByVertexOn<Space> rows(
      pass.shares(), world.rank(),
      [&](std::int64_t vertex, const Matrix<float>& values) { file.write_rows(vertex, values); });
  RowsByVertexOn<Space> predictions(
      pass.shares(), world.rank(),
      [&](std::int64_t vertex, const Matrix<float>& logits) { file.write_predictions(vertex, logits); });
  std::vector<SeveralSinks<Space>> layers(inference.needs_logits() ? inference.layers() : inference.layer);
  layers[inference.layer - 1].add(rows);
  if (arguments.predictions) layers.back().add(predictions);
  std::optional<PredictionList> listed;
  RowsByVertexOn<Space> listing(
      pass.shares(), world.rank(),
      [&](std::int64_t vertex, const Matrix<float>& logits) { listed->add(vertex, logits); });
  if (!arguments.csv.empty()) {
    listed.emplace(table_of_target(job, inference), task_kind_of(job.config.train.task).several_labels);
    listed->reserve(pass.rows());
    layers.back().add(listing);
  }
  std::unique_ptr<TaskOn<Space>> task;
  std::unique_ptr<RowEvaluatorOn<Space>> evaluator;
  if (inference.targets) {
    task = make_task(space, *job.grid, *inference.targets, job.config.train);
    evaluator = task->evaluator();
    layers.back().add(*evaluator);  // the last of them: it may take the memory
  }
  std::vector<RowSinkOn<Space>*> sinks;
  for (auto& layer : layers) sinks.push_back(layer.or_null());
  const auto kept = kept_layers(job, inference, space, input, network, sinks.size());
  compute(job, kept.get(), space, pass, std::move(input), network, sinks, [&] { file.check(); });

  note_activity("finishing the file");
  const auto bytes = job.grid->traffic().of_stage(kInferLabel).bytes_received;
  std::optional<Evaluation> found;
  if (evaluator) found = evaluator->finish(space, network.task_tensors());
  file.commit([&](const hdf5::Handle& root) { return describe(root, job, inference, digest, found); });
  const auto moved = world.all_reduce(bytes, Reduction::kSum, "report");
  log::info("wrote   {}: {} in {:.1f} s, {:.1f} MB between ranks", arguments.output, shape.in_words(),
            now() - start, static_cast<double>(moved) / 1e6);
  if (listed) {
    note_activity("writing the predictions as CSV");
    const auto lines = listed->write(world, *job.file, job.graph.typed ? job.graph.target : 0,
                                     {arguments.csv, arguments.overwrite});
    log::info("wrote   {}: {}", arguments.csv, counted(lines, "prediction"));
  }
  if (kept) kept->remove();
  if (!found) return;
  show(job, "train", found->train);
  show(job, "valid", found->valid);
  show(job, "test", found->test);
}

#ifdef ESPALIER_WITH_CUDA
// The same on GPUs: matrix, features and weights move to where kernels read them.
template <class Index>
void infer_on_gpu(const Job& job, const Inference& inference, const DistCsr<Index>& a,
                  std::vector<RowStore> host_features, std::shared_ptr<const EdgeStore> host_edges,
                  const SamplerShape& shape) {
  const Cuda& gpu = *job.device.gpu;
  const DeviceGrid grid(gpu, *job.grid);
  const auto matrix = place_matrix(job, grid, a);
  InputStoresOn<Cuda> input(place_features(job, grid, std::move(host_features)),
                            trained_embeddings(job, inference, gpu, grid),
                            place_edges(job, grid, host_edges));
  host_edges.reset();
  const auto sampler = make_sampler(gpu, sampler_name(job, inference), matrix, shape);
  Network<float, Cuda> network(gpu, inference.network.shape(), 0);
  copy_weights(gpu, inference.network, network);
  infer(job, inference, gpu, grid, *sampler, EntriesOfRows(a), std::move(input), network);
}
#endif

template <class Index>
void run(Job& job, Inference& inference) {
  // 1. The matrix on the grid, features as the network was trained on them, what to evaluate by.
  const auto a = read_model_matrix<Index>(job);
  auto features = read_job_features(job, inference.weights.standardization);
  auto edges = read_job_edges(job);
  const auto& arguments = inference.arguments;
  if (arguments.metrics) inference.targets = targets_of(job, inference);
  if (!arguments.links.empty()) {
    inference.known_links = read_links_to_ask(*job.grid, *job.file, job.graph, job.owners.blocks, job.config);
    inference.links = read_link_queries(job, arguments.links, arguments.top > 0, arguments.named_by);
  }
  warn_of_another_graph(job, inference);
  const auto shape = rows_to_read(job, inference);

  // 2. The layers, on the space of the job.
#ifdef ESPALIER_WITH_CUDA
  if (job.device.gpu)
    return infer_on_gpu(job, inference, a, std::move(features.stores), std::move(edges), shape);
#endif
  const auto sampler = make_sampler(sampler_name(job, inference), a, shape);
  InputStores input(std::move(features.stores), trained_embeddings(job, inference, job.cpu, *job.grid),
                    std::move(edges));
  infer(job, inference, job.cpu, *job.grid, *sampler, EntriesOfRows(a), std::move(input), inference.network);
}

void check_sampled(const Config& config) {
  if (config.model.layers == 0)
    usage_error("--sampled: with model.layers = 0 no neighbours are read; leave it out");
  if (sampler_kind_of(config.sampler.kind).layer_wise)
    usage_error(
        "--sampled: sampler.kind = {} draws for many vertices together; use graphsage or labor, or leave it "
        "out",
        config.sampler.kind);
}

void introduce(const Job& job, const Inference& inference) {
  const auto& weights = inference.weights;
  log::info("graph   {}: {}, {}, {}{}", job.config.graph.file, counted(job.graph.nodes, "node"),
            counted(job.graph.edges, "edge"), inputs_in_words(job.graph), types_in_words(job));
  log::info("grid    {}", grid_in_words(job));
  if (job.owners.order) log::info("order   {}", order_in_words(job));
  if (job.owners.cut) log::info("cut     {}", cut_in_words(job));
  log::info("weights {}: {} epoch {}, {} numbers; layer {} of {}", inference.arguments.checkpoint,
            weights.best ? "the best, of" : "saved before any evaluation, after", weights.epoch,
            inference.network.parameter_count(), inference.layer, inference.layers());
  say_how_disks_are_read(job);
  if (inference.arguments.sampled)
    log::info("sampled {}, seed {}", sampler_in_words(job.config), job.config.train.seed);
  note_ignored_types(job);
  warn_of_untrained(shape_of(job, inference), job);
}

// What it means for rows and scores that they are not finite.
template <class Work>
void with_remedy(const Inference& inference, Work work) {
  try {
    work();
  } catch (const UserError& error) {
    if (error.code() != ExitCode::kDiverged) throw;
    throw UserError(
        ExitCode::kDiverged,
        fmt::format("{} with the weights of {}, which is not finite, and nothing was written; are the "
                    "features those that they were trained on? Or train with a lower "
                    "train.learning_rate, or graph.feature_norm",
                    error.what(), inference.arguments.checkpoint));
  }
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
  // A graph without labels does not say which type the network was trained for; its weights do.
  EarlierRun earlier{.path = arguments.checkpoint, .classes = weights.graph.classes};
  if (config.graph.target.empty())
    earlier.target = parse_saved_config(weights.config, arguments.checkpoint).config.graph.target;
  if (!arguments.links.empty() && config.train.task != "links")
    usage_error("--links {}: train.task = {} has learnt no links", arguments.links, config.train.task);
  if (arguments.sampled) check_sampled(config);
  auto job = open_job(
      world, config, JobKind::kInfer, earlier,
      {.evaluates = arguments.metrics, .answers = !arguments.links.empty(), .lists = !arguments.csv.empty()});
  set_memory_advice("use more ranks, a smaller grid.replication or run.memory_limit");
  if (!arguments.resume.empty() && job.device.gpu)
    usage_error("--resume {}: is for CPUs; use run.device = \"cpu\", or leave it out", arguments.resume);
  if (!arguments.resume.empty() && config.model.jumping != "none")
    usage_error("--resume {}: with model.jumping = {} the output needs all layers; leave it out",
                arguments.resume, config.model.jumping);
  check_trained_columns(job, weights.graph.feature_columns, arguments.checkpoint);
  auto network = trained_network(job, weights, arguments.checkpoint);
  if (job.command.answers || (job.command.evaluates && !task_kind_of(config.train.task).of_labels))
    settle_relations(job, weights, arguments.checkpoint);
  const auto layer = layer_of(arguments, network.stages());
  Inference inference{arguments, std::move(weights), std::move(network), layer};
  inference.tables =
      row_tables({arguments.types, arguments.nodes, arguments.named_by, arguments.predictions, arguments.csv},
                 job, layer);
  introduce(job, inference);
  with_remedy(inference, [&] {
    with_index_type(job.graph.columns, [&](auto index) { run<decltype(index)>(job, inference); });
  });
}

}  // namespace espalier
