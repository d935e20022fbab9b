// ranks: 1
// Law: training and evaluation speak of one matrix. For every sampler, mode, layer and matrix that
// a config can ask for, on a graph of 14 vertices, plain or of types: the whole rows that exact
// evaluation multiplies by are the mean of the blocks that training samples, entry by entry. Modes
// of layer-wise samplers other than debiased are not, and are known not to be.
//
// A mean of 20,000 blocks lies within 6 standard errors, of the order of once in 10^9 for an entry;
// there are some 20,000 of them. Deterministic for a given test_seed.
#include "espalier/plan/model_matrix.hpp"

#include <gtest/gtest.h>

#include <fmt/ranges.h>

#include "espalier/nn/layer.hpp"
#include "espalier/sample/epoch_plan.hpp"
#include "mpi_test.hpp"
#include "sample/sampling_laws.hpp"
#include "typed_graph.hpp"

namespace espalier {
namespace {

constexpr std::int64_t kVertices = 14, kBatches = 20000;

struct Job {
  Config config;
  bool typed = false, weighted_graph = false;

  std::string words() const {
    const auto& [sampler, model] = std::pair(config.sampler, config.model);
    return fmt::format("{} {} {}{}, {} {}, {}{}", sampler.kind, sampler.mode,
                       sampler.weighted ? "weighted " : "", sampler.fanout[0], model.kind, model.aggregator,
                       typed ? "typed " : "", weighted_graph ? "weights" : "no weights");
  }
  bool estimates() const {
    return !sampler_kind_of(config.sampler.kind).takes_mode || config.sampler.mode == "debiased";
  }
};

// Is it a job that the program takes?
bool is_allowed(const Job& job) {
  const auto& [sampler, model] = std::pair(job.config.sampler, job.config.model);
  const bool own = has_own_weights(model);
  if (sampler.weighted && !own && !job.weighted_graph) return false;
  try {
    check_sampler_keys(sampler, own);
    return matrix_form(job.config) != MatrixForm::kMeanOfSelf || !job.typed;
  } catch (const UserError&) {
    return false;
  }
}

std::vector<Job> jobs_of(const SamplerKind& sampler, const LayerKind& layer) {
  std::vector<Job> jobs;
  for (const char* mode : {"debiased", "paper", "reference"})
    for (const char* aggregator : {"mean", "max", "sum"})
      for (int bits = 0; bits < 8; ++bits) {
        Job job;
        job.typed = (bits & 4) != 0;
        job.weighted_graph = (bits & 2) != 0;
        if (!layer.takes_aggregator && aggregator != std::string("mean")) continue;
        if (!layer.takes_relations && job.typed) continue;
        job.config.model.kind = layer.name;
        job.config.model.aggregator = aggregator;
        job.config.sampler.kind = sampler.name;
        job.config.sampler.mode = mode;
        job.config.sampler.weighted = (bits & 1) != 0;
        job.config.sampler.fanout = {sampler.induces ? -1 : sampler.layer_wise ? 5 : 2};
        job.config.sampler.batch_size = 5;
        if (is_allowed(job)) jobs.push_back(job);
      }
  return jobs;
}

// A random_graph: a full row, one without entries, a lone loop; weights of 0, or between 1 and 4.9;
// those of row 3 all 0.
SparseMatrix graph_of(const Grid& grid, const Job& job, const Schema& schema) {
  const auto mild = [&](Csr<std::int32_t> a) {
    for (auto& value : a.values)
      if (value > 0) value = 1 + value;
    for (auto k = a.row_begin(3); job.weighted_graph && k < a.row_end(3); ++k)
      a.values[static_cast<std::size_t>(k)] = 0;
    return a;
  };
  const auto rows = row_ranges(grid, kVertices, Topology::kReplicated);
  if (job.typed)
    return typed_matrix(grid, schema, mild(typed_graph<std::int32_t>(schema, 6, job.weighted_graph, 3)),
                        rows);
  return distribute(grid, mild(random_graph<std::int32_t>(kVertices, 4, job.weighted_graph, 3)), rows);
}

// Entries by (row, column) where a column is a vertex, or (relation, source).
using Entries14 = std::map<std::pair<std::int64_t, std::int64_t>, double>;

template <class Visit>
void for_each_entry(const Minibatch& minibatch, const Schema& schema, const Visit& visit) {
  const auto& block = minibatch.blocks[0];
  for (std::int64_t r = 0; r < block.rows; ++r)
    for (auto k = block.row_begin(r); k < block.row_end(r); ++k) {
      const auto u = minibatch.vertices[static_cast<std::size_t>(block.indices[k])];
      const auto column = block.relations == nullptr ? u : schema.column(block.relations[k], u);
      visit(std::pair(minibatch.vertices[static_cast<std::size_t>(r)], column),
            static_cast<double>(block.values[k]));
    }
}

// The batches of kBatches epochs; each vertex is in one of each.
template <class Visit>
void sample_epochs(Sampler& sampler, EpochShape shape, const Visit& visit) {
  for (shape.epoch = 0; shape.epoch < kBatches; ++shape.epoch) {
    const EpochPlan plan(LearntVertices{}, shape);
    std::vector<SeedBatch> batches;
    for (const auto b : plan.kept_by(0, 0, plan.batches())) batches.push_back(plan.batch(b));
    for (const auto& minibatch : sampler.sample({1}, batches, shape.seed, shape.epoch)) visit(minibatch);
  }
}

// How many standard errors the mean of the blocks is off the whole rows, at most.
double largest_bias(const std::string& kind, const SparseMatrix& m, const Schema& schema,
                    const SamplerShape& shape, std::uint64_t seed) {
  const auto sampler = make_sampler(kind, m, shape),
             whole_rows = make_sampler("graphsage", m, whole_rows_shape(shape, "evaluate"));
  Ids seeds(kVertices);
  std::iota(seeds.begin(), seeds.end(), std::int64_t{0});

  Entries14 exact, sum, squares;
  sample_batches(*whole_rows, seeds, 1, seed, [&](const Minibatch& minibatch) {
    for_each_entry(minibatch, schema, [&](const auto& at, double value) { exact[at] += value; });
  });
  const auto add = [&](const Minibatch& minibatch) {
    for_each_entry(minibatch, schema, [&](const auto& at, double value) {
      sum[at] += value;
      squares[at] += value * value;
    });
  };
  if (const auto population = population_of(sampler_kind_of(kind), kVertices); population > 0)
    sample_epochs(*sampler, {.batch_size = shape.batch_size, .seed = seed, .population = population}, add);
  else
    sample_batches(*sampler, seeds, kBatches, seed, add);
  for (const auto& [at, total] : sum) exact[at] += 0;  // where evaluation has no entry
  double largest = 0;
  for (const auto& [at, value] : exact) {
    const double mean = sum[at] / kBatches,
                 error = std::sqrt(std::max(squares[at] / kBatches - mean * mean, 0.0) / kBatches);
    largest = std::max(largest, std::abs(mean - value) / (error + 1e-7));
  }
  return largest;
}

// The same of a job. Layers that ask for the same matrix and shape are measured once.
double largest_bias(const Job& job, std::uint64_t seed) {
  static std::map<std::string, double> known;
  const Grid grid(test_world(), 1);
  const Schema schema = job.typed ? typed_schema(kVertices) : Schema(kVertices);
  const auto m = model_matrix(graph_of(grid, job, schema), job.config);
  const auto shape = sampler_shape(job.config, schema, 1);
  const auto& kind = job.config.sampler.kind;
  const auto key = fmt::format("{} {} {} {} {} {} {} {}", kind, static_cast<int>(shape.mode), shape.weighted,
                               static_cast<int>(shape.aggregation), shape.fanout[0], job.typed,
                               fmt::join(m.local.indices, " "), fmt::join(m.local.values, " "));
  const auto [found, is_new] = known.try_emplace(key);
  if (is_new) found->second = largest_bias(kind, m, schema, shape, seed);
  return found->second;
}

class OneMatrix : public testing::TestWithParam<std::tuple<const char*, std::string_view>> {};

TEST_P(OneMatrix, WholeRowsAreTheMeanOfSampledBlocks) {
  const auto seed = test_seed(4);
  SCOPED_TRACE(seed);
  const auto& [sampler, layer] = GetParam();
  const auto jobs = jobs_of(sampler_kind_of(sampler), layer_kind_of(layer));
  EXPECT_FALSE(jobs.empty());
  for (const auto& job : jobs) {
    const auto bias = largest_bias(job, seed);
    if (job.estimates())
      EXPECT_LE(bias, 6) << job.words();
    else
      EXPECT_GT(bias, 6) << job.words() << ": is said to be biased";
  }
}

std::vector<const char*> all_samplers() {
  std::vector<const char*> names;
  for (const auto& kind : sampler_kinds()) names.push_back(kind.name);
  return names;
}
std::vector<std::string_view> all_layers() {
  std::vector<std::string_view> names;
  for (const auto& kind : layer_kinds()) names.push_back(kind.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(EveryPair, OneMatrix,
                         testing::Combine(testing::ValuesIn(all_samplers()), testing::ValuesIn(all_layers())),
                         [](const auto& pair) {
                           return fmt::format("{}_{}", std::get<0>(pair.param), std::get<1>(pair.param));
                         });

}  // namespace
}  // namespace espalier
