// ranks: 1 2 4
// Laws of an inference in a program of one's own: the rows that it gives are equal on every grid;
// several sets may be open at once. (Scores, files and layers that are kept:
// tests/app/infer_test.py and infer_resume_test.py.)
#include <gtest/gtest.h>

#include "espalier/job/inference_on_gpu.hpp"
#include "open_job.hpp"

namespace espalier {
namespace {

Config config_to_infer(std::int64_t copies) {
  return small_config(copies, {"train.epochs=3"});
}

TrainedWeights train_once(hdf5::WrittenBytes& graph) {
  const InMemory memory = {graph};
  auto job = open_job(test_world(), config_to_infer(1), JobKind::kTrain, {}, {}, &memory);
  const auto training = open_training(job, [] {});
  TrainerOn trainer(std::get<0>(training)->space(), std::get<0>(training)->lent());
  trainer.train({});
  auto weights = trainer.trained();
  weights.config = to_toml(job.config);
  weights.graph = job.graph;
  return weights;
}

struct OpenInference {
  Job job;
  TrainedModel model;
  InferenceSet set;
  OpenInference(std::int64_t copies, hdf5::WrittenBytes& graph, const TrainedWeights& weights)
      : job(open(copies, graph, weights)),
        model(trained_model(job, weights, "a test")),
        set(open_inference(job, model, {}, [] {})) {}
  InferenceSetOn<Cpu>& on_cpu() { return *std::get<0>(set); }

  static Job open(std::int64_t copies, hdf5::WrittenBytes& graph, const TrainedWeights& weights) {
    const InMemory memory = {graph};
    const auto config = config_to_infer(copies);
    return open_job(test_world(), config, JobKind::kInfer, earlier_run(weights, "a test", config),
                    {.evaluates = true}, &memory);
  }

  // Collective. The bits of a layer's rows, summed over the ranks: a vertex is one rank's.
  std::vector<std::uint64_t> rows_of(int layer) {
    const auto width = model.network.output_width(layer);
    std::vector<std::uint64_t> bits(static_cast<std::size_t>(job.graph.nodes * width), 0);
    RowsByVertexOn<Cpu> sink(
        on_cpu().shares(), test_world().rank(), [&](std::int64_t vertex, const Matrix<float>& rows) {
          for (std::size_t k = 0; k < rows.data.size(); ++k)
            bits[static_cast<std::size_t>(vertex * width) + k] += bit_cast<std::uint32_t>(rows.data[k]);
        });
    std::vector<RowSink*> sinks(static_cast<std::size_t>(layer), nullptr);
    sinks.back() = &sink;
    on_cpu().compute(sinks);
    test_world().all_reduce(std::span<std::uint64_t>(bits), Reduction::kSum, "test");
    return bits;
  }
};

TEST(Inference, RowsAreTheSameOnEveryGrid) {
  auto graph = small_graph();
  const auto trained = train_once(graph);
  for (const int layer : {1, 2}) {
    const auto expected = OpenInference(1, graph, trained).rows_of(layer);
    EXPECT_GT(std::ranges::count_if(expected, [](auto bits) { return bits != 0; }), 300);
    for (const int copies : divisors(test_world().size())) {
      OpenInference one(copies, graph, trained), other(copies, graph, trained);
      EXPECT_EQ(other.rows_of(layer), expected) << copies;
      EXPECT_EQ(one.rows_of(layer), expected) << copies;
    }
  }
}

}  // namespace
}  // namespace espalier
