// The jobs whose laws model_matrix_test.cpp asks for, their graph of 14 vertices, and the matrix
// that docs/layers.md says they multiply by.
#pragma once

#include <fmt/ranges.h>

#include <map>
#include <string>
#include <vector>

#include "block_laws.hpp"
#include "espalier/nn/layer.hpp"
#include "espalier/plan/memory.hpp"
#include "typed_graph.hpp"

namespace espalier {

inline constexpr std::int64_t kVertices = 14;

enum class Weights14 { kNone, kMild, kTinyAndHuge };

struct Job {
  Config config;
  Weights14 weights = Weights14::kNone;
  bool typed = false, loops = true;

  std::string words() const {
    const auto& [sampler, model] = std::pair(config.sampler, config.model);
    const char* const weighty[] = {"no weights", "weights", "tiny and huge weights"};
    return fmt::format("{} {} {}{} {}, {} {}, {}{}{}", sampler.kind, sampler.mode,
                       sampler.weighted ? "weighted " : "", sampler.fanout[0], sampler.relation_fanout,
                       model.kind, model.aggregator, typed ? "typed " : "", loops ? "loops " : "",
                       weighty[static_cast<int>(weights)]);
  }
  bool own_weights() const { return has_own_weights(config.model); }
  bool estimates() const {
    return !sampler_kind_of(config.sampler.kind).takes_mode || config.sampler.mode == "debiased";
  }
};

// Is it a job that the program takes?
inline bool is_allowed(const Job& job) {
  const auto& sampler = job.config.sampler;
  if (sampler.weighted && !job.own_weights() && job.weights == Weights14::kNone) return false;
  if (!job.loops && job.weights == Weights14::kMild) return false;  // enough with others
  try {
    check_sampler_keys(sampler, job.own_weights());
    return matrix_form(job.config) != MatrixForm::kMeanOfSelf || !job.typed;
  } catch (const UserError&) {
    return false;
  }
}

inline std::vector<Job> jobs_of(const SamplerKind& sampler, const LayerKind& layer) {
  std::vector<Job> jobs;
  const std::vector<std::vector<std::string>> fanouts = {
      {}, {"cites=0", "writes=1", "cited_by=-1"}, {"follows=0", "about=0", "reviews=1"}};
  for (const char* mode : {"debiased", "paper", "reference"})
    for (const char* aggregator : {"mean", "max", "sum"})
      for (const auto weights : {Weights14::kNone, Weights14::kMild, Weights14::kTinyAndHuge})
        for (int bits = 0; bits < 8; ++bits)
          for (const auto& of_relations : fanouts) {
            Job job = {{}, weights, (bits & 4) != 0, (bits & 2) != 0};
            if (!layer.takes_aggregator && aggregator != std::string("mean")) continue;
            if (!layer.takes_relations && job.typed) continue;
            if (!of_relations.empty() && !job.typed) continue;
            job.config.model.kind = layer.name;
            job.config.model.aggregator = aggregator;
            job.config.sampler.kind = sampler.name;
            job.config.sampler.mode = mode;
            job.config.sampler.weighted = (bits & 1) != 0;
            job.config.sampler.fanout = {sampler.induces ? -1 : sampler.layer_wise && !job.typed ? 3 : 2};
            job.config.sampler.relation_fanout = of_relations;
            job.config.sampler.batch_size = 5;
            if (is_allowed(job)) jobs.push_back(job);
          }
  return jobs;
}

// Weights of 0 stay. Mild: others are between 1 and 4.9. Tiny and huge: a third is 10^-30, an
// eighth 10^20, so that a share may be 0 in float32.
inline float weight_of(Weights14 kind, float value, std::int64_t k) {
  if (value == 0 || kind == Weights14::kMild) return value == 0 ? 0 : 1 + value;
  return k % 8 == 0 ? 1e20f : k % 3 == 0 ? 1e-30f : 1 + value;
}

// A random_graph: a full row, one without entries, a lone loop; the weights of row 3 are all 0.
inline Csr<std::int32_t> graph_of(const Job& job, const Schema& schema) {
  const bool weighted = job.weights != Weights14::kNone;
  const auto all = job.typed ? typed_graph<std::int32_t>(schema, 6, weighted, 3)
                             : random_graph<std::int32_t>(kVertices, 4, weighted, 3);
  Csr<std::int32_t> a;
  a.rows = all.rows;
  a.columns = all.columns;
  for (std::int64_t v = 0; v < all.rows; ++v) {
    for (auto k = all.row_begin(v); k < all.row_end(v); ++k) {
      if (!job.loops && schema.vertex_of(all.indices[k]) == v) continue;
      a.indices.push_back(all.indices[k]);
      if (weighted) a.values.push_back(v == 3 ? 0 : weight_of(job.weights, all.values[k], k));
    }
    a.indptr.push_back(std::ssize(a.indices));
  }
  return a;
}

inline LawRows weights_of(const Csr<std::int32_t>& a) {
  LawRows rows(static_cast<std::size_t>(a.rows));
  for (std::int64_t v = 0; v < a.rows; ++v)
    for (auto k = a.row_begin(v); k < a.row_end(v); ++k)
      rows[v][a.indices[k]] = a.has_values() ? static_cast<double>(a.values[k]) : 1.0;
  return rows;
}

// The matrix of docs/layers.md, in numbers of float32.
inline LawRows matrix_of_page(const Job& job, const Schema& schema, const LawRows& weights) {
  const auto form = matrix_form(job.config);
  const bool weighted = job.config.sampler.weighted, own = job.own_weights(),
             shares = form == MatrixForm::kMean || form == MatrixForm::kMeanOfSelf;
  const auto fanout = relation_fanouts(job.config.sampler.relation_fanout, {2}, schema);
  LawRows m(weights.size());
  std::vector<std::map<int, double>> sums(weights.size());  // of a row and relation
  for (std::size_t v = 0; v < m.size(); ++v) {
    for (const auto& [u, weight] : weights[v]) {
      const bool left_out = !fanout.empty() && fanout[0][schema.relation_of(u)] == 0;
      if (!left_out && (weight > 0 || !weighted)) m[v][u] = own || weighted ? weight : 1;
    }
    if (form == MatrixForm::kNormalized || form == MatrixForm::kMeanOfSelf)
      m[v][static_cast<std::int64_t>(v)] += 1;
    for (const auto& [u, value] : m[v]) sums[v][schema.relation_of(u)] += value;
  }
  for (std::size_t v = 0; v < m.size(); ++v)
    for (auto& [u, value] : m[v]) {
      const double by = shares                            ? sums[v][schema.relation_of(u)]
                        : form == MatrixForm::kNormalized ? std::sqrt(sums[v][0] * sums[u][0])
                                                          : 1;
      value = static_cast<double>(static_cast<float>(value / by));
    }
  // Edges of weight 0 are not there, those that a normalised matrix has no number for neither.
  if (weighted && (own || sampler_kind_of(job.config.sampler.kind).layer_wise))
    for (auto& row : m) std::erase_if(row, [](const auto& of) { return of.second == 0; });
  return m;
}

}  // namespace espalier
