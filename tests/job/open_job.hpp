// A small graph in memory, and jobs of it with all that they train with.
#pragma once

#include <memory>
#include <variant>

#include "espalier/comm/session.hpp"
#include "espalier/file/hdf5_memory.hpp"
#include "espalier/graph/generate.hpp"
#include "espalier/job/batch_loader.hpp"
#include "espalier/job/training_on_gpu.hpp"
#include "espalier/train/trainer.hpp"
#include "mpi_test.hpp"

namespace espalier {

/// The same on every rank.
inline hdf5::WrittenBytes small_graph() {
  hdf5::WrittenBytes graph;
  const auto self = test_world().split(test_world().rank(), 0);
  generate_planted(self, {.nodes = 300, .degree = 6, .homophily = 0.8},
                   {.features = 5, .classes = 3, .seed = 2}, graph);
  return graph;
}

struct OpenJob {
  Job job;
  TrainingSet training;
  WorkQueue queue;

  OpenJob(const Config& config, hdf5::WrittenBytes& graph)
      : job(open(config, graph)), training(open_training(job, [] {})), queue(threads_may_communicate()) {}
  static Job open(const Config& config, hdf5::WrittenBytes& graph) {
    const InMemory memory = {graph};
    return open_job(test_world(), config, JobKind::kTrain, {}, {}, &memory);
  }

  const TrainingSetOn<Cpu>& set() const { return *std::get<std::unique_ptr<TrainingSetOn<Cpu>>>(training); }
  /// The digest of the weights.
  std::uint64_t train() const {
    Trainer trainer(set().space(), set().lent());
    trainer.train({});
    return trainer.weights_digest();
  }
  std::unique_ptr<BatchLoader> load(const LoaderOptions& options = {}) {
    return open_loader(job, set(), queue, options);
  }
};

}  // namespace espalier
