#include "espalier/job/job_check.hpp"

#include "espalier/base/text.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/feature/edge_store.hpp"
#include "espalier/feature/input_tables.hpp"
#include "espalier/job/job.hpp"
#include "espalier/plan/job_shapes.hpp"
#include "espalier/train/planned_hooks.hpp"
#include "espalier/train/task.hpp"

namespace espalier {

namespace {

// ---- the config ----

void config_keys(const JobFacts& job) {
  const auto& config = job.config;
  check_sampler_keys(config.sampler, has_own_weights(config.model));
  check_model_keys(config);
  check_parts(config);
  check_shape(network_shape(config.model, 1, 1));
  matrix_form(config);
  if (config.train.lr_warmup == 1)
    usage_error(
        "train.lr_warmup = 1 changes nothing: the first epoch has the whole rate, with it or without; write "
        "0, or 2 or more");
  if (const auto check = task_kind_of(config.train.task).check_keys) check(config);
  metric_of(config.train);
}

void local_batches(const JobFacts& job) {
  const auto& config = job.config;
  if (config.sampler.groups > 0 && config.graph.order.empty())
    usage_error(
        "{}: sampler.groups = {} takes neighbours of graph.order, which is missing; make one with `espalier "
        "partition`, or write 0",
        job.source, config.sampler.groups);
}

void vertex_cut(const JobFacts& job) {
  const auto& config = job.config;
  if (!config.grid.cuts()) return;
  if (config.graph.cut.empty())
    usage_error(
        "{}: grid.topology = \"vertex-cut\" needs graph.cut, which is missing; make one with `espalier "
        "partition GRAPH --edges`, or use \"partitioned\"",
        job.source);
  if (config.grid.schedule.starts_with("staged"))
    usage_error(
        "grid.schedule = \"{}\" brings whole rows from one rank, and with grid.topology = \"vertex-cut\" "
        "they lie with several; use \"pull\", \"push\" or \"auto\"",
        config.grid.schedule);
}

// ---- the graph ----

void copies(const JobFacts& job) {
  const auto& asked = job.config.grid.replication.value;
  if (asked && (*asked > job.ranks || job.ranks % *asked != 0))
    usage_error("grid.replication = {} does not divide the number of ranks, {}; choose a divisor of {}",
                *asked, job.ranks, job.ranks);
}

void target(const JobFacts& job) {
  const auto& graph = *job.graph;
  if (!task_kind_of(job.config.train.task).of_labels) return;
  const auto& config = job.config.graph;
  if (job.kind == JobKind::kTrain && std::ranges::none_of(graph.types, &VertexInfo::has_labels))
    check_labels(graph, config.file, job.config.train.task);
  if (graph.target < 0)
    input_error(
        "{}: several vertex types have labels, or none has; say with graph.target which one is meant ({})",
        config.file, graph.schema.type_names());
  if (!config.target.empty() && !graph.has_labels)
    input_error("graph.target = \"{}\": {} has no labels for this vertex type (/nodes/{}/labels)",
                config.target, config.file, config.target);
}

void split(const JobFacts& job) {
  const auto& graph = *job.graph;
  if (task_kind_of(job.config.train.task).of_labels && graph.split < 0 && !graph.splits.empty())
    usage_error("{}: all of its splits have names; say with graph.split which one is meant ({})",
                job.config.graph.file, graph.split_names());
}

void relation_fanout(const JobFacts& job) {
  if (!job.config.sampler.relation_fanout.empty() && !sees_relations(job.config))
    usage_error(
        "sampler.relation_fanout has no meaning with model.kind = {}, which ignores relations; leave it out",
        job.config.model.kind);
}

void embedding(const JobFacts& job) {
  if (job.config.model.embedding == 0) return;
  if (!input_tables(*job.graph, job.config).back().trainable)
    usage_error("model.embedding has no meaning for {}, {} features; leave it out", job.config.graph.file,
                job.graph->types.size() > 1 ? "whose types all have" : "which has");
}

void mean_of_self(const JobFacts& job) {
  if (matrix_form(job.config) == MatrixForm::kMeanOfSelf && sees_relations(job.config) &&
      !job.graph->schema.plain())
    usage_error(
        "sampler.mode = reference has no meaning with several relations, which have no self loops; use "
        "debiased or paper");
}

void examples(const JobFacts& job) {
  const auto& task = task_kind_of(job.config.train.task);
  if (task.examples(*job.graph) > 0) return;
  if (task.of_labels)
    input_error("{}: /split/train is empty or absent; import the graph with a split", job.config.graph.file);
  input_error(
      "{}: has no links to learn (/links/train); `espalier prepare --split-links` makes some of its edges",
      job.config.graph.file);
}

void weights(const JobFacts& job) {
  if (job.config.sampler.weighted && !has_own_weights(job.config.model) && !job.graph->weighted)
    input_error(
        "sampler.weighted = true, but {} has no edge weights; import it with --edge-weight, or use false",
        job.config.graph.file);
}

void inputs(const JobFacts& job) {
  const auto& graph = *job.graph;
  const auto& file = job.config.graph.file;
  if (input_tables(graph, job.config).empty()) {
    if (graph.types.size() > 1)
      input_error(
          "{}: no vertex type has features (/nodes/TYPE/features), so a network has no input; "
          "model.embedding = 64 learns rows for all of them",
          file);
    input_error(
        "{}: the graph has no features (/nodes/features), so a network has no input; model.embedding = 64 "
        "learns a row for each vertex",
        file);
  }
  const auto featured =
      std::ranges::count_if(graph.types, [](const auto& type) { return type.features > 0; });
  // Columns of several types, or of several tables, have nothing in common.
  if (job.config.graph.feature_norm == "standard" && graph.types.size() > 1 && featured != 1)
    usage_error(
        "graph.feature_norm = standard has no meaning for {} types with features, whose columns differ; use "
        "none or row",
        featured);
}

void sparse_features(const JobFacts& job) {
  if (job.config.graph.feature_norm != "standard") return;
  if (std::ranges::any_of(job.graph->types, [](const auto& type) { return type.pairs > 0; }))
    usage_error(
        "graph.feature_norm = standard has no meaning for {}, whose features are sparse: less their mean "
        "they would not be; use none or row",
        job.config.graph.file);
}

void fewer_bits(const JobFacts& job) {
  const auto& of = job.config.graph;
  if (kind_asked(of.feature_bits) == nullptr) return;
  if (std::ranges::none_of(job.graph->types, [](const auto& type) { return type.features > 0; }))
    usage_error("graph.feature_bits has no meaning for {}, which has no features; leave it out", of.file);
  if (std::ranges::any_of(job.graph->types, [](const auto& type) { return type.pairs > 0; }))
    usage_error(
        "graph.feature_bits = {} has no meaning for {}, whose features are sparse: of which numbers are not "
        "0 it keeps the places and numbers; write 32",
        of.feature_bits.text, of.file);
}

void features_on_disk(const JobFacts& job) {
  if (!job.config.graph.features_on_disk()) return;
  const auto tables = input_tables(*job.graph, job.config);
  if (std::ranges::any_of(tables, &InputTable::converted) && job.config.run.spill.empty())
    usage_error(
        "graph.feature_bits = {} with graph.features_on = \"disk\": rows in fewer bits than the file's need "
        "a folder for a file of them; set run.spill = a folder on a local disk, or write 32 bits",
        job.config.graph.feature_bits.text);
  const auto stays = [&](int type) {
    return std::ranges::any_of(
        tables, [&](const auto& table) { return !table.converted() && table.held.holds_type(type); });
  };
  const auto& types = job.graph->types;
  for (int t = 0; t < std::ssize(types); ++t)
    if (types[t].features > 0 && stays(t) && !job.file->plain_features(t))
      input_error(
          "{}: features{} cannot stay on disk: they are sparse, compressed, in pieces, or neither float32 "
          "nor float16 of this byte order; write them so, or leave graph.features_on = \"disk\" out",
          job.config.graph.file, types.size() > 1 ? " of " + job.graph->schema.types()[t].name : "");
}

void edge_features(const JobFacts& job) {
  const auto& config = job.config;
  if (!config.model.edge_features) return;
  if (edge_table(*job.graph).width > 0) {
    // Of weights that were trained so, it must be said again.
    bool read = job.kind == JobKind::kInfer || config.sampler.relation_fanout.empty();
    const auto shape = whole_rows_shape(sampler_shape(config, *job.graph, 1), "");
    for (std::size_t r = 0; r < job.graph->edge_features.size() && !read; ++r)
      read = job.graph->edge_features[r].has() && shape.relation_fanout[0][r] != 0;
    if (!read)
      usage_error(
          "model.edge_features = true: sampler.relation_fanout leaves all relations out whose edges have "
          "features in {}; use false, or give one of them a fanout",
          config.graph.file);
    return check_edge_features(job.world, *job.file);
  }
  if (job.graph->schema.relations().size() > 1 && !sees_relations(config))
    usage_error(
        "model.edge_features = true: model.kind = {} takes edges of several relations for one, which then "
        "have no features; use rgat or hgt for {}",
        config.model.kind, config.graph.file);
  input_error(
      "model.edge_features = true, but {} has no features of edges (/edges); import the graph with some, or "
      "use false",
      config.graph.file);
}

void written(const JobFacts& job) {
  if (job.config.model.layers == 0)
    usage_error("--write: with model.layers = 0 there is nothing drawn to write; leave --write out");
}

// Minibatches may be without labels.
void labels_to_write(const JobFacts& job) {
  if (!task_kind_of(job.config.train.task).of_labels || !job.graph->has_labels) return;
  check_labels(job.file->info(), job.config.graph.file, job.config.train.task);
  check_splits(job.world, *job.file);
}

void what_is_learnt(const JobFacts& job) {
  note_activity("checking what is learnt");
  const auto& task = task_kind_of(job.config.train.task);
  if (task.of_labels) {
    if (job.evaluates && !job.graph->has_labels)
      input_error("--metrics: {} has no labels (/nodes/labels) to judge by; leave --metrics out",
                  job.config.graph.file);
    check_labels(job.file->info(), job.config.graph.file, job.config.train.task);
    check_splits(job.world, *job.file);
  }
  if (task.check != nullptr) task.check(job.world, *job.file, job.config);
}

// ---- the grid ----

void groups(const JobFacts& job) {
  const auto& sampler = job.config.sampler;
  if (sampler.groups == 0) return;
  const auto& task = task_kind_of(job.config.train.task);
  if (sampler.groups > task.examples(*job.graph))
    usage_error("sampler.groups = {}: {} has {}; give fewer groups", sampler.groups, job.config.graph.file,
                counted(task.examples(*job.graph), fmt::format("training {}", task.example)));
  if (sampler.groups > job.order->clusters())
    usage_error(
        "sampler.groups = {}: {} has {}; give fewer groups, or make an order of more "
        "(`espalier partition --clusters`)",
        sampler.groups, job.config.graph.order, counted(job.order->clusters(), "cluster"));
}

void parts_of_edges(const JobFacts& job) {
  const auto& size = *job.size;
  if (!size.config.grid.cuts()) return;
  const auto parts = size.cut.parts(),
             rows = static_cast<int>(size.ranks / *size.config.grid.replication.value);
  if (rows > kMostHolders)
    usage_error(
        "grid.topology = \"vertex-cut\" on {} block rows; {} is the most: raise grid.replication, or use "
        "\"partitioned\"",
        rows, kMostHolders);
  if (parts < rows)
    usage_error(
        "graph.cut = {} has {} of edges for {} block rows; make more with `espalier partition --edges "
        "--parts {}`, or "
        "raise grid.replication",
        job.config.graph.cut, counted(parts, "part"), rows, 4 * rows);
  if (size.gpu && size.config.grid.schedule == "push")
    usage_error(
        "grid.schedule = \"push\" with grid.topology = \"vertex-cut\" draws from pieces of rows, which CPUs "
        "do, and this job computes {}; use grid.schedule=pull, or run.device = \"cpu\"",
        job.device);
}

void keys_of_gpus(const JobFacts& job) {
  const auto& train = job.config.train;
  if (job.size->gpu && job.config.graph.features_on_disk())
    usage_error("graph.features_on = disk is for CPUs, and this job computes {}; use host", job.device);
  if (job.size->gpu && !job.config.run.spill.empty())
    usage_error("run.spill = {} is for CPUs, and this job computes {}; leave it out", job.config.run.spill,
                job.device);
  if (job.size->gpu) return;
  if (train.precision == "tf32")
    usage_error("train.precision = tf32 needs GPUs, and this job computes {}; use fp32 or bf16", job.device);
  if (train.sparse_products != "own")
    usage_error("train.sparse_products = {} needs GPUs, and this job computes {}; use own",
                train.sparse_products, job.device);
}

void memory(const JobFacts& job) {
  const auto [misfit, binding] = judge_memory(*job.estimated, job.memory);
  if (misfit.empty()) return;
  if (binding && job.config.run.memory_check == "refuse") memory_error("{}", misfit);
  log::tell(job.listener, log::Level::kWarning, "{}", misfit);
}

// ---- all of them ----

// Bit k: jobs of the k-th kind; kEvaluate: those that evaluate.
enum Concerns : unsigned { kWrite = 2, kTrain = 4, kInfer = 8, kEvaluate = 16, kDraw = 7, kAll = 15 };

struct Check {
  Moment moment;
  unsigned concerns;
  void (*check)(const JobFacts& job);
};

// In the order in which they are made.
constexpr Check kChecks[] = {
    {Moment::kConfig, kAll, config_keys},
    {Moment::kConfig, kAll, local_batches},
    {Moment::kConfig, kAll, vertex_cut},
    {Moment::kGraph, kWrite, written},
    {Moment::kGraph, kAll, copies},
    {Moment::kGraph, kDraw, target},
    {Moment::kGraph, kDraw | kEvaluate, split},
    {Moment::kGraph, kDraw, relation_fanout},
    {Moment::kGraph, kDraw, embedding},
    {Moment::kGraph, kDraw, mean_of_self},
    {Moment::kGraph, kDraw, examples},
    {Moment::kGraph, kDraw, weights},
    {Moment::kGraph, kTrain | kInfer, inputs},
    {Moment::kGraph, kTrain | kInfer, sparse_features},
    {Moment::kGraph, kTrain | kInfer, fewer_bits},
    {Moment::kGraph, kTrain | kInfer, features_on_disk},
    {Moment::kGraph, kAll, edge_features},
    {Moment::kGraph, kWrite, labels_to_write},
    {Moment::kGraph, kTrain | kEvaluate, what_is_learnt},
    {Moment::kGraph, kEvaluate, examples},
    {Moment::kGrid, kDraw, groups},
    {Moment::kGrid, kAll, parts_of_edges},
    {Moment::kGrid, kAll, keys_of_gpus},
    {Moment::kMemory, kAll, memory},
};

}  // namespace

void check_job(Moment moment, const JobFacts& facts) {
  const unsigned concern = 1u << static_cast<int>(facts.kind) | (facts.evaluates ? kEvaluate : 0u);
  for (const auto& check : kChecks)
    if (check.moment == moment && (check.concerns & concern) != 0) check.check(facts);
}

}  // namespace espalier
