// ranks: 1
// Laws: training and evaluation speak of one matrix, that of docs/layers.md. For every sampler,
// mode, layer and matrix that a config can ask for, on a graph of 14 vertices, plain or of types,
// with weights of 0, mild, tiny and huge ones, with loops and without, with relations left out:
//
// - the whole rows that exact evaluation multiplies by are the page's matrix;
// - they are the mean of the blocks that training samples, entry by entry, over all outcomes
//   (block_laws.hpp); modes of layer-wise samplers other than debiased are not, and are known so;
// - where values are not read (attention, max): an entry is in evaluation if and only if its
//   probability in training is not 0;
// - blocks that are drawn follow that law: how often an entry is there, and its mean, lie within
//   what their variances allow (bernstein). Deterministic for a given test_seed.
#include "espalier/plan/model_matrix.hpp"

#include <gtest/gtest.h>

#include <set>

#include "espalier/sample/epoch_plan.hpp"
#include "law_jobs.hpp"
#include "mpi_test.hpp"
#include "sample/sampling_laws.hpp"

namespace espalier {
namespace {

template <class Visit>
void for_each_entry(const Minibatch& minibatch, const Schema& schema, const Visit& visit) {
  const auto& block = minibatch.blocks[0];
  for (std::int64_t r = 0; r < block.rows; ++r)
    for (auto k = block.row_begin(r); k < block.row_end(r); ++k) {
      const auto u = minibatch.vertices[static_cast<std::size_t>(block.indices[k])];
      const auto column = block.relations == nullptr ? u : schema.column(block.relations[k], u);
      visit(Place(minibatch.vertices[static_cast<std::size_t>(r)], column),
            static_cast<double>(block.values[k]));
    }
}

struct Seen {
  double count = 0, sum = 0;
};

// What so many blocks had, [vertices][columns].
std::vector<Seen> draw_blocks(Sampler& sampler, const LawInput& in, const Ids& seeds, std::int64_t draws,
                              std::uint64_t seed) {
  const auto columns = in.schema.columns();
  std::vector<Seen> seen(static_cast<std::size_t>(kVertices * columns));
  const auto add = [&](const Minibatch& minibatch) {
    for_each_entry(minibatch, in.schema, [&](const Place& at, double value) {
      auto& of = seen[static_cast<std::size_t>(at.first * columns + at.second)];
      ++of.count;
      of.sum += value;
    });
  };
  if (!in.kind.induces) {
    sample_batches(sampler, seeds, draws, seed, add);
    return seen;
  }
  EpochShape shape = {.batch_size = in.batch, .seed = seed, .population = kVertices};
  for (shape.epoch = 0; shape.epoch < static_cast<std::uint64_t>(draws); ++shape.epoch) {
    const EpochPlan plan(TrainingVertices{}, shape);
    std::vector<SeedBatch> batches;
    for (const auto b : plan.kept_by(0, 0, plan.batches())) batches.push_back(plan.batch(b));
    for (const auto& minibatch : sampler.sample({1}, batches, shape.seed, shape.epoch)) add(minibatch);
  }
  return seen;
}

// With probability 1 - 2e-13 the mean of so many independent numbers of that variance, none of
// them farther than `range` from their expectation, lies within that distance of it (Bernstein).
double bernstein(double variance, double range, double count) {
  constexpr double kLog = 30;
  return std::sqrt(2 * kLog * std::max(variance, 0.0) / count) + range * kLog / (3 * count);
}

// Of a share of integer weights (fixed_point_weight).
constexpr double kShareError = 0x1p-59 * kVertices * kVertices;

void expect_draws_to_follow(const BlockLaw& law, const std::vector<Seen>& seen, std::int64_t columns,
                            double draws) {
  for (std::size_t k = 0; k < seen.size(); ++k) {
    const Place at = {static_cast<std::int64_t>(k) / columns, static_cast<std::int64_t>(k) % columns};
    const auto found = law.find(at);
    const auto entry = found == law.end() ? EntryLaw() : found->second;
    const double p = entry.probability, mean = entry.mean, far = p > 0 ? 1 : 0;
    EXPECT_NEAR(seen[k].count / draws, p, far * bernstein(p * (1 - p), 1, draws) + 1e-9)
        << at.first << ", " << at.second;
    EXPECT_NEAR(seen[k].sum / draws, mean,
                bernstein(entry.square - mean * mean, entry.largest, draws) + 1e-5 * mean + kShareError)
        << at.first << ", " << at.second;
  }
}

// The laws of a job, with so many draws.
void expect_laws(const Job& job, const Schema& schema, const LawRows& weights, const SparseMatrix& m,
                 std::int64_t draws, std::uint64_t seed) {
  const auto shape = sampler_shape(job.config, schema, 1);
  const auto& kind = sampler_kind_of(job.config.sampler.kind);
  const auto page = matrix_of_page(job, schema, weights);
  const LawInput in = {kind, shape, schema, page, weights, job.config.sampler.batch_size};
  Ids all(kVertices), even, odd;
  std::iota(all.begin(), all.end(), std::int64_t{0});
  for (const auto v : all) (v % 2 == 0 ? even : odd).push_back(v);

  std::map<Place, double> exact;
  const auto whole_rows = make_sampler("graphsage", m, whole_rows_shape(shape, "evaluate"));
  sample_batches(*whole_rows, all, 1, seed, [&](const Minibatch& minibatch) {
    for_each_entry(minibatch, schema, [&](const Place& at, double value) { exact[at] += value; });
  });
  // Of a draw for a mean shares are those of integers.
  const double rounding = kind.layer_wise || job.own_weights() ? 0 : 1e-8;
  std::size_t entries = 0;
  for (std::size_t v = 0; v < page.size(); ++v)
    for (const auto& [u, value] : page[v]) {
      const auto found = exact.find({static_cast<std::int64_t>(v), u});
      EXPECT_NE(found, exact.end()) << v << ", " << u << " is not in evaluation";
      if (found == exact.end()) continue;
      EXPECT_NEAR(found->second, value, 2e-7 * value + rounding) << "evaluation of " << v << ", " << u;
      ++entries;
    }
  EXPECT_EQ(entries, exact.size()) << "entries of evaluation that the page has not";

  const auto sampler = make_sampler(kind.name, m, shape);
  double largest_bias = 0;
  for (const auto& seeds : kind.induces ? std::vector<Ids>{all} : std::vector<Ids>{even, odd}) {
    const auto law = law_of_block(in, seeds);
    for (const auto v : seeds)
      for (const auto& [u, value] : page[v]) {
        const auto found = law.find({v, u});
        const auto entry = found == law.end() ? EntryLaw() : found->second;
        EXPECT_TRUE(job.own_weights() || entry.probability > 0) << v << ", " << u << " is never in training";
        largest_bias = std::max(largest_bias, std::abs(entry.mean - value) - 2e-6 * value - rounding);
      }
    for (const auto& [at, entry] : law)
      EXPECT_TRUE(page[at.first].contains(at.second)) << at.first << ", " << at.second << " in training";
    expect_draws_to_follow(law, draw_blocks(*sampler, in, seeds, draws, seed), schema.columns(),
                           static_cast<double>(draws));
  }
  if (job.estimates())
    EXPECT_LE(largest_bias, 0);
  else
    EXPECT_GT(largest_bias, 1e-3) << "is said to be biased";
}

class OneMatrix : public testing::TestWithParam<std::tuple<const char*, std::string_view>> {
 protected:
  // All jobs of a pair, or those with loops; one of those that ask for the same matrix and shape.
  void expect_laws_of_jobs(std::int64_t draws, bool all, std::set<std::string>& known) {
    const auto seed = test_seed(4);
    SCOPED_TRACE(seed);
    const auto& [sampler, layer] = GetParam();
    const auto jobs = jobs_of(sampler_kind_of(sampler), layer_kind_of(layer));
    EXPECT_FALSE(jobs.empty());
    const Grid grid(test_world(), 1);
    for (const auto& job : jobs) {
      if (!all && !job.loops) continue;
      SCOPED_TRACE(job.words());
      const Schema schema = job.typed ? typed_schema(kVertices) : Schema(kVertices);
      const auto whole = graph_of(job, schema);
      const auto weights = weights_of(whole);
      const auto rows = row_ranges(grid, kVertices, Topology::kReplicated);
      const auto m = model_matrix(
          job.typed ? typed_matrix(grid, schema, whole, rows) : distribute(grid, whole, rows), job.config);
      const auto form = static_cast<int>(matrix_form(job.config));
      const auto& of = job.config.sampler;
      const auto key =
          fmt::format("{} {} {} {} {} {} {} {}", of.kind, of.mode, of.weighted, form, job.typed,
                      of.relation_fanout, fmt::join(m.local.indices, " "), fmt::join(m.local.values, " "));
      if (known.insert(key).second) expect_laws(job, schema, weights, m, draws, seed);
    }
  }
};

TEST_P(OneMatrix, EvaluationIsTheMeanOfTraining) {
  static std::set<std::string> known;
  expect_laws_of_jobs(1000, true, known);
}

// Of each half of the vertices, so 100,000 blocks.
TEST_P(OneMatrix, LongEvaluationIsTheMeanOfManyDraws) {
  static std::set<std::string> known;
  expect_laws_of_jobs(50000, false, known);
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
