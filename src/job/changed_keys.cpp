#include "espalier/job/changed_keys.hpp"

#include <algorithm>
#include <tuple>

#include "espalier/base/error.hpp"
#include "espalier/job/job.hpp"
#include "espalier/plan/model_matrix.hpp"

namespace espalier {

namespace {

// What tells one matrix of evaluation from another, on the same edges.
struct EvaluationMatrix {
  MatrixForm form;
  bool weighted;
  std::vector<bool> left_out;  // of each relation

  bool operator==(const EvaluationMatrix&) const = default;
};

EvaluationMatrix evaluation_matrix(const Config& config, const Schema& schema) {
  const auto rows = whole_rows_shape(sampler_shape(config, schema, 1), "");
  EvaluationMatrix matrix{matrix_form(config), config.sampler.weighted,
                          std::vector<bool>(schema.relations().size())};
  if (!rows.relation_fanout.empty())
    for (std::size_t r = 0; r < matrix.left_out.size(); ++r)
      matrix.left_out[r] = rows.relation_fanout[0][r] == 0;
  return matrix;
}

// Does the value that the key has here change the matrix of a job as it is there?
bool changes_matrix(const std::string& key, const Config& there, const Config& here, const Schema& schema) {
  try {
    return evaluation_matrix(with_key_of(there, key, here), schema) != evaluation_matrix(there, schema);
  } catch (const UserError&) {
    return true;  // it does not go together with the others there
  }
}

}  // namespace

void name_target(const GraphInfo& graph, Config& config) {
  const auto labelled = std::ranges::count_if(graph.types, &VertexInfo::has_labels);
  if (!graph.typed || !config.graph.target.empty() || labelled != 1) return;
  const auto type = std::ranges::find_if(graph.types, &VertexInfo::has_labels) - graph.types.begin();
  config.graph.target = graph.schema.types()[static_cast<std::size_t>(type)].name;
}

std::vector<KeyDifference> changed_keys(Config there, const Config& here, const GraphInfo& graph) {
  name_target(graph, there);
  if (there.graph.target.empty()) there.graph.target = here.graph.target;  // of an earlier version
  auto keys = differing_keys(there, here);
  for (auto& key : keys)
    if (key.effect == KeyEffect::kDraw)
      key.effect =
          changes_matrix(key.name, there, here, graph.schema) ? KeyEffect::kMeaning : KeyEffect::kTrajectory;
  std::ranges::stable_sort(keys, {}, &KeyDifference::effect);
  return keys;
}

std::string in_words(const KeyDifference& key) {
  return fmt::format("{} = {} there and {} here", key.name, key.first, key.second);
}

}  // namespace espalier
