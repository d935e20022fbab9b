// Inference: what is checked and computed, and what the file of rows says of it.
#include "espalier/job/inference_on_gpu.hpp"

#include "espalier/base/version.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/file/content_digest.hpp"
#include "espalier/job/changed_keys.hpp"
#include "espalier/job/named_vertices.hpp"
#include "espalier/plan/job_shapes.hpp"
#include "espalier/train/evaluator.hpp"

namespace espalier {

void check_sampled(const Config& config) {
  if (config.model.layers == 0)
    usage_error("--sampled: with model.layers = 0 no neighbours are read; leave it out");
  if (sampler_kind_of(config.sampler.kind).layer_wise)
    usage_error(
        "--sampled: sampler.kind = {} draws for many vertices together; use graphsage or labor, or leave it "
        "out",
        config.sampler.kind);
}

void check_resumed(const Job& job, const std::string& folder) {
  if (!folder.empty() && job.device.gpu)
    usage_error("--resume {}: is for CPUs; use run.device = \"cpu\", or leave it out", folder);
  if (!folder.empty() && job.config.model.jumping != "none")
    usage_error("--resume {}: with model.jumping = {} the output needs all layers; leave it out", folder,
                job.config.model.jumping);
}

SamplerShape rows_to_read(const Job& job, const LayerOptions& options) {
  auto shape = sampler_shape(job.config, job.graph, job.grid->ranks());
  if (!options.sampled) return whole_rows_shape(shape, kInferLabel);
  shape.label = kInferLabel;
  return shape;
}

std::string made_of(const Job& job, const TrainedModel& model, const LayerOptions& options,
                    std::uint64_t digest) {
  const auto& weights = model.weights;
  const auto there = parse_saved_config(weights.config, model.path).config;
  auto words = fmt::format("{} {} {}", kVersion, hex(digest), weights.config);
  for (const auto& key : changed_keys(there, job.config, job.graph))
    if (key.effect != KeyEffect::kCost) words += fmt::format(" {} = {}", key.name, key.second);
  for (const auto& tensor : weights.tensors) {
    const auto all = tensor.all();
    words += tensor.name + hex(content_digest(std::span<const float>(all), 0));
  }
  for (const auto* numbers : {&weights.standardization.mean, &weights.standardization.deviation})
    for (const auto number : *numbers) words += fmt::format(" {}", number);
  if (options.sampled) words += " sampled";
  words += fmt::format(" {} {} {}", job.graph.nodes, job.graph.edges, job.graph.features);
  if (const auto of_graph = job.file->content().file) words += hex(*of_graph);
  return words;
}

void compute_and_keep(const Job& job, KeptLayers& kept, LayerwisePass& pass, InputStores&& input,
                      const Network<float>& network, std::vector<RowSink*> sinks,
                      const std::function<void()>& check) {
  const int done = kept.done(), hidden = static_cast<int>(sinks.size()) - 1;
  RowsByVertexOn<Cpu> rows_here(
      pass.shares(), job.grid->world().rank(),
      [&](std::int64_t vertex, const Matrix<float>& rows) { kept.take(vertex, rows); });
  std::vector<SeveralSinksOn<Cpu>> several(static_cast<std::size_t>(hidden));
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
    job.tell(log::Level::kInfo, "layers  {} of {} were computed before; going on", done, hidden + 1);
    std::vector<RowStore> of_layer;
    of_layer.push_back(kept.read(network.output_width(done)));
    rows = InputStores(std::move(of_layer), nullptr, rows.edges());
  }
  begin(done + 1);
  pass.run(Cpu(job.cpu), network, std::move(rows), sinks, [&] {
    note_progress();
    kept.check();
    if (check) check();
    return true;
  });
}

// ---- the rows ----

static void write_metrics(ArchiveWriter& archive, const std::string& split, const Metrics& metrics) {
  for (const auto& score : metrics.scores)  // none of a split without vertices
    if (metrics.vertices > 0 && metrics.find(score.name)) archive(split + "_" + score.name, score.value);
  archive(split + "_vertices", metrics.vertices);
}

void describe_rows(ArchiveWriter& archive, const Job& job, const TrainedModel& model,
                   const RowsWanted& wanted, bool sampled, std::uint64_t digest,
                   const std::optional<Evaluation>& found) {
  const auto& weights = model.weights;
  archive("espalier", kVersion);
  archive("checkpoint", model.path);
  archive("epoch", weights.epoch);
  archive("weights_digest", digest);
  archive("config", weights.config);
  archive("config_digest", content_digest(std::span<const char>(weights.config), 0));
  archive("layer", wanted.layer);
  archive("layers", model.layers());
  archive("graph", job.config.graph.file);
  if (sampled) {
    archive("sampled", sampler_in_words(job.config));
    archive("seed", job.config.train.seed);
  }
  if (job.graph.typed) archive("types", types_of(wanted.tables, job.graph));
  if (job.graph.typed && job.graph.target >= 0)
    archive("target", job.graph.schema.types()[job.graph.target].name);
  if (const auto split = job.graph.split_name(); !split.empty()) archive("split", split);
  archive("graph_digest", job.file->content().file);
  if (!found) return;
  write_metrics(archive, "train", found->train);
  write_metrics(archive, "valid", found->valid);
  write_metrics(archive, "test", found->test);
}

RowFileShape shape_of(const Job& job, const TrainedModel& model, const RowsWanted& wanted) {
  const auto& task = task_kind_of(job.config.train.task);
  const bool logits = task.of_labels && wanted.layer == model.layers();
  return {.rows = logits ? "/logits" : "/embeddings",
          .width = model.network.output_width(wanted.layer),
          .half = wanted.half,
          .labels = task.several_labels ? job.graph.classes : 0,
          .tables = wanted.tables};
}

const RowTable& table_of_target(const Job& job, const RowsWanted& wanted) {
  const auto& tables = wanted.tables;
  if (tables.size() == 1) return tables[0];
  return *std::ranges::find(tables, job.graph.schema.types()[job.graph.target].name, &RowTable::type);
}

}  // namespace espalier
