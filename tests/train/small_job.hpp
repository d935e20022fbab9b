// A small graph to learn on, whole on every rank, and its parts on a grid: what `espalier train`
// would read from a file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "espalier/train/evaluator.hpp"
#include "espalier/train/targets.hpp"
#include "partition/owned.hpp"
#include "random_graph.hpp"

namespace espalier {

struct SmallProblem {
  Csr<std::int32_t> graph;
  Matrix<float> features;
  std::vector<std::int32_t> labels;
  Matrix<std::uint8_t> several_labels;  // three of each vertex, some unknown
  std::int64_t classes = 0;
  Buffer<std::int64_t> train, valid, test;
  Owned owned = Owned::kInRanges;  // by the block rows of a grid

  Ownership ownership(int parts) const { return ownership_of(owned, features.rows, parts); }
};

/// n vertices with random features and labels, one and several; a vertex is, at random, for
/// training, validation or test, or for none.
inline SmallProblem small_problem(std::int64_t n, std::int64_t width, std::int64_t classes,
                                  std::uint64_t seed) {
  SmallProblem problem;
  problem.graph = random_graph<std::int32_t>(n, 3, true, seed);
  problem.features.resize(n, width);
  problem.classes = classes;
  problem.several_labels.resize(n, 3);
  for (std::int64_t v = 0; v < n; ++v) {
    const RandomStream stream = {.seed = seed + 1, .row = static_cast<std::uint64_t>(v)};
    for (std::int64_t j = 0; j < width; ++j)
      problem.features(v, j) =
          static_cast<float>(2 * to_unit_double(random64(stream, static_cast<std::uint64_t>(j))) - 1);
    problem.labels.push_back(
        static_cast<std::int32_t>(random_below(stream, 1000, static_cast<std::uint64_t>(classes))));
    for (std::int64_t k = 0; k < 3; ++k) {
      const auto drawn = random_below(stream, static_cast<std::uint64_t>(1002 + k), 7);
      problem.several_labels(v, k) = drawn == 0 ? kUnknownLabel : static_cast<std::uint8_t>(drawn % 2);
    }
    const auto split = random_below(stream, 1001, 10);
    if (split < 9) (split < 5 ? problem.train : split < 7 ? problem.valid : problem.test).push_back(v);
  }
  return problem;
}

inline DistCsr<std::int32_t> small_matrix(const Grid& grid, const SmallProblem& problem,
                                          const std::string& kind, Topology topology) {
  auto a = distribute(grid, problem.graph,
                      problem.ownership(topology == Topology::kPartitioned ? grid.rows() : 1));
  return kind == "gcn" ? normalize_with_self_loops(a) : a;
}

inline RowStore small_features(const Grid& grid, const SmallProblem& problem) {
  const auto ownership = problem.ownership(grid.rows());
  return RowStore(grid, ownership, rows_of_part(problem.features, ownership, grid.row()));
}

inline void set_splits(const Grid& grid, const SmallProblem& problem, Targets& targets) {
  place_targets(grid, problem.ownership(grid.rows()), {problem.train, problem.valid, problem.test}, targets);
}

inline std::unique_ptr<ClassTargets> small_classes(const Grid& grid, const SmallProblem& problem) {
  auto targets = std::make_unique<ClassTargets>();
  set_splits(grid, problem, *targets);
  targets->outputs = problem.classes;
  for (const auto v : problem.train)
    targets->train_labels.push_back(problem.labels[static_cast<std::size_t>(v)]);
  for (std::int64_t k = 0; k < targets->evaluated_rows(); ++k)
    targets->evaluated_labels.push_back(
        problem.labels[static_cast<std::size_t>(targets->evaluated_by.vertex(targets->rank, k))]);
  return targets;
}

inline std::unique_ptr<LabelTargets> small_labels(const Grid& grid, const SmallProblem& problem) {
  auto targets = std::make_unique<LabelTargets>();
  set_splits(grid, problem, *targets);
  const auto& labels = problem.several_labels;
  targets->outputs = labels.columns;
  targets->train_labels.resize(std::ssize(problem.train), labels.columns);
  for (std::size_t i = 0; i < problem.train.size(); ++i)
    std::copy_n(labels.row(problem.train[i]), labels.columns,
                targets->train_labels.row(static_cast<std::int64_t>(i)));
  targets->evaluated_labels.resize(targets->evaluated_rows(), labels.columns);
  for (std::int64_t k = 0; k < targets->evaluated_rows(); ++k)
    std::copy_n(labels.row(targets->evaluated_by.vertex(targets->rank, k)), labels.columns,
                targets->evaluated_labels.row(k));
  return targets;
}

inline std::unique_ptr<Targets> small_targets(const Grid& grid, const SmallProblem& problem,
                                              const std::string& task) {
  if (task == "labels") return small_labels(grid, problem);
  return small_classes(grid, problem);
}

/// What a sampler for `kind` puts into blocks.
inline SamplerShape small_shape(const std::string& kind, std::vector<std::int64_t> fanout,
                                const char* label) {
  return {.fanout = std::move(fanout),
          .aggregation = kind == "gcn" ? Aggregation::kMatrix : Aggregation::kMean,
          .label = label};
}

/// Everything that a trainer works with, on one grid. Its members refer to each other: it stays
/// where it is.
struct SmallJob {
  DistCsr<std::int32_t> a;
  InputStores input;
  std::unique_ptr<Targets> targets;
  std::unique_ptr<Task> task;
  std::unique_ptr<Sampler> sampler, whole_rows;
  Evaluator evaluator;

  SmallJob(const Grid& grid, const SmallProblem& problem, const std::string& kind,
           const std::vector<std::int64_t>& fanout, std::int64_t chunk_bytes,
           Topology topology = Topology::kPartitioned, const Grid* sampling_grid = nullptr,
           const TrainConfig& train = {})
      : a(small_matrix(sampling_grid != nullptr ? *sampling_grid : grid, problem, kind, topology)),
        input(small_features(grid, problem)),
        targets(small_targets(grid, problem, train.task)),
        task(make_task(Cpu{}, grid, *targets, train)),
        sampler(make_sampler("graphsage", a, small_shape(kind, fanout, "sample"))),
        whole_rows(make_sampler("graphsage", a, small_shape(kind, {-1}, "evaluate"))),
        evaluator(grid, *whole_rows, input, input.table(0).ownership(), *task, EntriesOfRows(a),
                  chunk_bytes) {}
  SmallJob(const SmallJob&) = delete;
};

}  // namespace espalier
