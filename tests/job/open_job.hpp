// A small graph in memory, and jobs of it with all that they train with, opened as the library
// opens them: by a queue.
#pragma once

#include <memory>
#include <variant>

#include "espalier/comm/session.hpp"
#include "espalier/file/hdf5_output.hpp"
#include "espalier/graph/generate.hpp"
#include "espalier/job/batch_loader.hpp"
#include "espalier/job/training_on_gpu.hpp"
#include "espalier/train/trainer.hpp"
#include "mpi_test.hpp"

namespace espalier {

/// To a file, or to memory.
template <class Output>
void generate_small(const Communicator& ranks, Output&& output) {
  generate_planted(ranks, {.nodes = 300, .degree = 6, .homophily = 0.8},
                   {.features = 5, .classes = 3, .seed = 2}, std::forward<Output>(output));
}

/// The same on every rank.
inline hdf5::WrittenBytes small_graph() {
  hdf5::WrittenBytes graph;
  generate_small(test_world().split(test_world().rank(), 0), graph);
  return graph;
}

template <class Space>
struct OpenJobOn {
  WorkQueue queue;
  Job job;
  TrainingSet training;

  OpenJobOn(const Config& config, hdf5::WrittenBytes& graph)
      : queue(threads_may_communicate()),
        job(queue.run([&] { return open(config, graph); })),
        training(queue.run([&] { return open_training(job, [] {}); })) {}
  ~OpenJobOn() {
    queue.run([&] { std::visit([](auto& of) { of.reset(); }, training); });
  }
  static Job open(const Config& config, hdf5::WrittenBytes& graph) {
    const InMemory memory = {graph};
    return open_job(test_world(), config, JobKind::kTrain, {}, {}, &memory);
  }

  const TrainingSetOn<Space>& set() const {
    return *std::get<std::unique_ptr<TrainingSetOn<Space>>>(training);
  }
  /// The digest of the weights.
  std::uint64_t train() {
    return queue.run([&] {
      TrainerOn<Space> trainer(set().space(), set().lent());
      trainer.train({});
      return trainer.weights_digest();
    });
  }
  template <class To = Space>
  std::unique_ptr<BatchLoaderOn<To>> load(const LoaderOptions& options = {}) {
    return queue.run([&] { return open_loader<To>(job, set(), queue, options); });
  }
};
using OpenJob = OpenJobOn<Cpu>;

/// Two layers of few numbers, steps of 4 batches; of two keys of one name the later counts.
inline Config small_config(std::int64_t copies, const std::vector<std::string>& more = {}) {
  std::vector<std::string> keys = {"graph.file=in-memory",
                                   "run.device=\"cpu\"",
                                   "run.threads=1",
                                   "model.hidden=8",
                                   "model.layers=2",
                                   "sampler.fanout=[4, 3]",
                                   "sampler.batch_size=20",
                                   "train.epochs=2",
                                   "train.batches_per_step=4",
                                   "train.reproducible=true",
                                   fmt::format("grid.replication={}", copies)};
  keys.insert(keys.end(), more.begin(), more.end());
  return parse_config("", "a test", keys);
}

/// Of tests of loaders. S = 5 batches a step: 2 and 4 ranks share them unevenly, and so does the
/// last step.
inline Config loader_config(std::int64_t copies, const std::string& sampler,
                            const std::string& more = "train.seed=3", const std::string& device = "cpu") {
  return parse_config(
      "", "a test",
      {"graph.file=in-memory", "run.device=" + device, "run.threads=1", "model.hidden=8", "model.layers=2",
       "sampler.fanout=[4, 3]", "sampler.batch_size=14", "train.epochs=2", "train.batches_per_step=5",
       "train.reproducible=true", "sampler.bulk=7", fmt::format("sampler.kind={}", sampler),
       fmt::format("grid.replication={}", copies), more});
}

template <class Space>
std::vector<std::shared_ptr<const LoadedBatchOn<Space>>> all_of(BatchLoaderOn<Space>& loader) {
  std::vector<std::shared_ptr<const LoadedBatchOn<Space>>> all;
  while (auto batch = loader.next()) all.push_back(std::move(batch));
  return all;
}

}  // namespace espalier
