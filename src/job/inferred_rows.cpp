#include "espalier/job/inferred_rows_on_gpu.hpp"

#include "espalier/base/version.hpp"
#include "espalier/file/content_digest.hpp"
#include "espalier/job/named_vertices.hpp"

namespace espalier {

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
