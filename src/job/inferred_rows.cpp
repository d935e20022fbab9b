#include "espalier/job/inferred_rows_on_gpu.hpp"

#include "espalier/base/version.hpp"
#include "espalier/file/content_digest.hpp"
#include "espalier/job/named_vertices.hpp"

namespace espalier {

static void write_metrics(const hdf5::Handle& root, const char* split, const Metrics& metrics, bool& good) {
  const auto name = [&](const char* what) { return std::string(split) + "_" + what; };
  for (const auto& score : metrics.scores)  // none of a split without vertices
    if (metrics.vertices > 0 && metrics.find(score.name))
      good = hdf5::write_number_attribute(root, name(score.name.c_str()).c_str(), score.value) && good;
  good = hdf5::write_integer_attribute(root, name("vertices").c_str(), metrics.vertices) && good;
}

bool describe_rows(const hdf5::Handle& root, const Job& job, const TrainedModel& model,
                   const RowsWanted& wanted, bool sampled, std::uint64_t digest,
                   const std::optional<Evaluation>& found) {
  const auto& weights = model.weights;
  bool good = true;
  const auto text = [&](const char* name, const std::string& value) {
    good = hdf5::write_text_attribute(root, name, value) && good;
  };
  const auto number = [&](const char* name, std::int64_t value) {
    good = hdf5::write_integer_attribute(root, name, value) && good;
  };
  text("espalier", kVersion);
  text("checkpoint", model.path);
  number("epoch", weights.epoch);
  text("weights_digest", hex(digest));
  text("config", weights.config);
  text("config_digest", hex(content_digest(std::span<const char>(weights.config), 0)));
  number("layer", wanted.layer);
  number("layers", model.layers());
  text("graph", job.config.graph.file);
  if (sampled) {
    text("sampled", sampler_in_words(job.config));
    number("seed", job.config.train.seed);
  }
  if (job.graph.typed) text("types", types_of(wanted.tables, job.graph));
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
