// What an inference answers: the rows of a layer in a file (infer/row_file.hpp), with what they
// predict and how well; scores of links.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "espalier/base/output_file.hpp"
#include "espalier/infer/prediction_list.hpp"
#include "espalier/infer/row_file.hpp"
#include "espalier/job/inference_on_gpu.hpp"
#include "espalier/train/evaluator.hpp"
#include "espalier/train/links.hpp"
#include "espalier/train/on_host.hpp"
#include "espalier/train/task.hpp"

namespace espalier {

struct RowsWanted {
  OutputFile output;
  int layer;                     ///< whose rows, from 1
  std::vector<RowTable> tables;  ///< row_tables()
  bool half = false;             ///< as float16
  bool predictions = false;      ///< those of the tables, too
  bool list = false;             ///< what is predicted for the target's, for PredictionList::write
  const Targets* targets = {};   ///< to evaluate by, or null
};

struct RowsWritten {
  std::optional<PredictionList> list;
  std::optional<Evaluation> found;
  std::int64_t bytes;  ///< that all ranks received
};

/// What the file will hold.
RowFileShape shape_of(const Job& job, const TrainedModel& model, const RowsWanted& wanted);

/// Those of the target, of which a list is.
const RowTable& table_of_target(const Job& job, const RowsWanted& wanted);

/// Attributes that say what made the file.
void describe_rows(ArchiveWriter& archive, const Job& job, const TrainedModel& model,
                   const RowsWanted& wanted, bool sampled, std::uint64_t digest,
                   const std::optional<Evaluation>& found);

/// Collective, once for a set. Computes the layers; the file is there afterwards. Throws UserError
/// as InferenceSetOn::compute and RowFile do.
template <class Space>
RowsWritten write_rows(InferenceSetOn<Space>& set, const RowsWanted& wanted) {
  const auto& job = set.job();
  const auto& model = set.model();
  const auto& world = job.grid->world();
  const auto& task_kind = task_kind_of(job.config.train.task);
  const auto digest = set.weights_digest();
  RowsWritten written = {};
  RowFile file(world, wanted.output, shape_of(job, model, wanted));
  const auto by_vertex = [&](auto take) { return RowsByVertexOn<Space>(set.shares(), world.rank(), take); };
  auto rows = by_vertex([&](auto vertex, const auto&values) { file.write_rows(vertex, values); }),
       predictions =
           by_vertex([&](auto vertex, const auto&logits) { file.write_predictions(vertex, logits); }),
       listing = by_vertex([&](auto vertex, const auto&logits) { written.list->add(vertex, logits); });

  const bool needs_logits = wanted.predictions || wanted.list || wanted.targets != nullptr;
  std::vector<SeveralSinksOn<Space>> layers(needs_logits ? model.layers() : wanted.layer);
  layers[wanted.layer - 1].add(rows);
  if (wanted.predictions) layers.back().add(predictions);
  if (wanted.list) {
    written.list.emplace(table_of_target(job, wanted), task_kind.several_labels);
    written.list->reserve(set.rows());
    layers.back().add(listing);
  }
  std::unique_ptr<TaskOn<Space>> task;
  std::unique_ptr<RowEvaluatorOn<Space>> evaluator;
  if (wanted.targets != nullptr) {
    task = make_task(set.space(), *job.grid, *wanted.targets, job.config.train);
    evaluator = task->evaluator();
    layers.back().add(*evaluator);  // the last of them: it may take the memory
  }
  std::vector<RowSinkOn<Space>*> sinks;
  for (auto& layer : layers) sinks.push_back(layer.or_null());
  set.compute(sinks, [&] { file.check(); });

  note_activity("finishing the file");
  const auto bytes = job.grid->traffic().of_stage(kInferLabel).bytes_received;
  if (evaluator) written.found = evaluator->finish(set.space(), set.network().task_tensors());
  file.commit([&](ArchiveWriter& archive) {
    describe_rows(archive, job, model, wanted, set.options().sampled, digest, written.found);
  });
  written.bytes = world.all_reduce(bytes, Reduction::kSum, "report");
  return written;
}

// Scores of links that are asked about (job/named_vertices.hpp), or the best tails of heads.

struct LinkAnswers {
  std::vector<LinkTriple> links;
  std::vector<float> scores;
  Buffer<std::uint8_t> known;  ///< 1: the file has the link
};

/// Collective, once for a set. The scores of links, which every rank has all of, the same on every
/// grid; with `top` the links of the so many best tails of each head (best_tails). Throws UserError
/// as InferenceSetOn::compute does, and kDiverged where a score is not finite.
template <class Space>
LinkAnswers answer_links(InferenceSetOn<Space>& set, const LinkTargets& targets,
                         std::vector<LinkTriple> links, std::int64_t top = 0) {
  const auto& job = set.job();
  const auto& network = set.network();
  KeptRowsOn<Space> last(set.rows(), network.output_width(network.stages()));
  std::vector<RowSinkOn<Space>*> sinks(static_cast<std::size_t>(network.stages()), nullptr);
  sinks.back() = &last;
  set.compute(sinks);

  note_activity("scoring links");
  Buffer<float> copy;
  const auto rows = last.release();
  const ConstMatrixView<float> own(rows.rows, rows.columns, rows_on_host(set.space(), rows, copy));
  const TensorsOnHost<Space> tensors(set.space(), network.task_tensors());
  const auto& train = job.config.train;
  LinkAnswers answers;
  if (top == 0) {
    answers.scores = score_links(job.cpu, *job.grid, targets, train, own, tensors.views(), links);
    answers.links = std::move(links);
  } else {
    const auto most = std::min(top, job.graph.nodes);
    const auto best = best_tails(job.cpu, *job.grid, targets, train, own, tensors.views(), links, most);
    for (std::size_t k = 0; k < best.size(); ++k) {
      const auto& of = links[k / static_cast<std::size_t>(most)];
      if (best[k].vertex < 0) continue;
      answers.links.push_back({of.head, best[k].vertex, of.relation});
      answers.scores.push_back(best[k].score);
    }
  }
  answers.known = links_of_file(*job.grid, targets).are_known(job.grid->world(), answers.links);
  return answers;
}

}  // namespace espalier
