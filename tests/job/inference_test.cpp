// ranks: 1 2 4
// Laws of an inference in a program of one's own: the rows that it gives are those of exact
// evaluation, so they are equal on every grid, and their scores are what training found with the
// same weights; layers that were kept give the same rows; several sets may be open at once.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "espalier/comm/communicator.hpp"
#include "espalier/file/hdf5_output.hpp"
#include "espalier/graph/generate.hpp"
#include "espalier/job/inference_on_gpu.hpp"
#include "espalier/job/training_on_gpu.hpp"
#include "espalier/train/trainer.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

hdf5::WrittenBytes graph_to_infer() {
  hdf5::WrittenBytes graph;
  const auto self = test_world().split(test_world().rank(), 0);
  generate_planted(self, {.nodes = 300, .degree = 6, .homophily = 0.8},
                   {.features = 5, .classes = 3, .seed = 2}, graph);
  return graph;
}

Config config_to_infer(std::int64_t copies) {
  return parse_config(
      "", "a test",
      {"graph.file=in-memory", "run.device=\"cpu\"", "run.threads=1", "model.hidden=8", "model.layers=2",
       "sampler.fanout=[4, 3]", "sampler.batch_size=20", "train.epochs=3", "train.batches_per_step=4",
       "train.reproducible=true", fmt::format("grid.replication={}", copies)});
}

struct Trained {
  TrainedWeights weights;
  std::optional<Metrics> test;
};

Trained train_once(hdf5::WrittenBytes& graph) {
  const InMemory memory = {graph};
  auto job = open_job(test_world(), config_to_infer(1), JobKind::kTrain, {}, {}, &memory);
  const auto training = open_training(job, [] {});
  TrainerOn trainer(std::get<0>(training)->space(), std::get<0>(training)->lent());
  const auto result = trainer.train({});
  Trained trained = {trainer.trained(), result.test};
  trained.weights.config = to_toml(job.config);
  trained.weights.graph = job.graph;
  return trained;
}

struct OpenInference {
  Job job;
  TrainedModel model;
  InferenceSet set;
  OpenInference(std::int64_t copies, hdf5::WrittenBytes& graph, const TrainedWeights& weights,
                const LayerOptions& options = {})
      : job(open(copies, graph, weights)),
        model(trained_model(job, weights, "a test")),
        set(open_inference(job, model, options, [] {})) {}
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
  auto graph = graph_to_infer();
  const auto trained = train_once(graph);
  for (const int layer : {1, 2}) {
    const auto expected = OpenInference(1, graph, trained.weights).rows_of(layer);
    EXPECT_GT(std::ranges::count_if(expected, [](auto bits) { return bits != 0; }), 300);
    for (const int copies : divisors(test_world().size())) {
      OpenInference one(copies, graph, trained.weights), other(copies, graph, trained.weights);
      EXPECT_EQ(other.rows_of(layer), expected) << copies;
      EXPECT_EQ(one.rows_of(layer), expected) << copies;
    }
  }
}

TEST(Inference, ScoresAreThoseOfTraining) {
  auto graph = graph_to_infer();
  const auto trained = train_once(graph);
  const std::filesystem::path folder = test_folder("inference");
  for (const int copies : divisors(test_world().size())) {
    OpenInference open(copies, graph, trained.weights);
    const auto targets = targets_of(open.job, open.model);
    const auto output = (folder / fmt::format("rows-{}.h5", copies)).string();
    const auto written = write_rows(open.on_cpu(), {.output = {output},
                                                    .layer = 1,
                                                    .tables = {{.vertices = {0, 300}, .predictions = true}},
                                                    .predictions = true,
                                                    .list = true,
                                                    .targets = targets.get()});
    EXPECT_EQ(written.found->test.vertices, trained.test->vertices);
    EXPECT_EQ(written.found->test.find("accuracy"), trained.test->find("accuracy")) << copies;
    EXPECT_TRUE(written.list.has_value());
    const auto file = hdf5::open_file_unlocked(output);
    std::string digest;
    hdf5::read_text_attribute(file, "weights_digest", digest);
    EXPECT_EQ(digest, hex(weights_digest(trained.weights.tensors)));
    EXPECT_TRUE(hdf5::open_dataset(file, "/embeddings").exists());
    EXPECT_TRUE(hdf5::open_dataset(file, "/predictions").exists());
  }
}

TEST(Inference, KeptLayersGiveTheSameRows) {
  auto graph = graph_to_infer();
  const auto trained = train_once(graph);
  const std::filesystem::path folder = test_folder("inference");
  const auto expected = OpenInference(1, graph, trained.weights).rows_of(2);
  const LayerOptions keeps = {.resume = (folder / "kept").string()};
  const auto kept = folder / "kept" / "layer-1.h5";
  EXPECT_EQ(OpenInference(1, graph, trained.weights, keeps).rows_of(2), expected);
  test_world().barrier();
  EXPECT_TRUE(std::filesystem::exists(kept));
  OpenInference again(test_world().size(), graph, trained.weights, keeps);
  EXPECT_EQ(again.rows_of(2), expected);
  again.on_cpu().forget_kept();
  test_world().barrier();
  EXPECT_FALSE(std::filesystem::exists(kept));
}

}  // namespace
}  // namespace espalier
