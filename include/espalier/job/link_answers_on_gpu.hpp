// Scores of links that are asked about (job/link_queries.hpp), or the best tails of heads.
#pragma once

#include <algorithm>
#include <vector>

#include "espalier/job/inference_on_gpu.hpp"
#include "espalier/train/links.hpp"
#include "espalier/train/on_host.hpp"

namespace espalier {

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
