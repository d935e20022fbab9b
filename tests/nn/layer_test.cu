// ranks: 1
// Laws: every kind of layer with all that may stand around it has, on a GPU, the logits, loss,
// gradients (of the input too), statistics and evaluation of the CPU in double within what float32
// rounds; two runs give the same bits; what begins with the product of block and input takes it
// from outside.
#include "espalier/nn/layer.hpp"

#include "../../src/nn/segment_products.hpp"

#include "espalier/dense/spmm.hpp"
#include "mpi_test.hpp"
#include "nn/device_case.hpp"
#include "nn/layer_shapes.hpp"

namespace espalier {
namespace {

class LayerCuda : public CudaTest {};

/// As in network_test.cu: sums of up to 40 terms round like sqrt(40) = 6.3, in up to 3 layers there
/// and 3 back, two products in each (GIN's inner layer, attention's scores), magnified by
/// normalisations up to 4 times. 6.3 * 12 * 4 * 2^-24 = 1.8e-5.
constexpr double kTolerance = 1.8e-5;

/// Of a step.
void expect_near_the_cpu(DeviceCase& c) {
  const auto result = c.on_gpu();
  const auto expected = c.on_cpu();
  EXPECT_LT(relative_difference(result.logits, expected.logits, 1), kTolerance);
  EXPECT_NEAR(result.loss, expected.loss, kTolerance * expected.loss);
  ASSERT_EQ(result.gradients.size(), expected.gradients.size());
  for (std::size_t k = 0; k < expected.gradients.size(); ++k)
    EXPECT_LT(relative_difference(result.gradients[k], expected.gradients[k], 1), kTolerance)
        << c.exact.parameters()[k].name;
  EXPECT_LT(relative_difference(result.dinput, expected.dinput, 1), kTolerance);
  for (std::size_t k = 0; k < result.statistics.size(); ++k)
    EXPECT_LT(relative_difference(result.statistics[k], c.exact.batch_statistics()[k], 1), kTolerance);
}

/// Layer by layer, each from what the layer before gave in its space.
void expect_evaluation_near_the_cpu(DeviceCase& c) {
  c.network.update_running_statistics(c.gpu, c.network.batch_statistics());
  c.exact.update_running_statistics(c.exact.batch_statistics());
  Matrix<double> at = in_double(c.input), next, jumped, logits;
  Matrix<float, Cuda> device_at = to_device(c.gpu, c.input), device_next, device_jumped, device_logits;
  if (c.network.jumps()) {
    jumped.resize(c.blocks.back().rows, c.network.input_width(c.network.stages()));
    device_jumped.resize(jumped.rows, jumped.columns);
  }
  LayerScratch<double> scratch;
  LayerScratch<float, Cuda> device_scratch;
  Buffer<std::int32_t> winners;
  DeviceArray<std::int32_t> device_winners;
  const std::int64_t seeds = c.blocks.back().rows;
  for (int layer = 1; layer <= c.exact.shape().layers; ++layer) {
    const auto l = static_cast<std::size_t>(layer - 1);
    c.exact.evaluate_layer(Cpu{1}, layer, c.blocks[l], at, scratch, next);
    c.network.evaluate_layer(c.gpu, layer, c.device_blocks[l], device_at, device_scratch, device_next);
    std::swap(at, next);
    std::swap(device_at, device_next);
    EXPECT_LT(relative_difference(to_host(c.gpu, device_at), at, 1), kTolerance) << "layer " << layer;
    if (!c.exact.jumps()) continue;
    c.exact.take_up_layer(Cpu{1}, layer, MatrixView<double>(at).first_rows(seeds), winners, jumped);
    c.network.take_up_layer(c.gpu, layer, MatrixView<float, Cuda>(device_at).first_rows(seeds),
                            device_winners, device_jumped);
  }
  if (!c.exact.jumps()) return;
  c.exact.evaluate_output(Cpu{1}, jumped, logits);
  c.network.evaluate_output(c.gpu, device_jumped, device_logits);
  EXPECT_LT(relative_difference(to_host(c.gpu, device_logits), logits, 1), kTolerance);
}

TEST_F(LayerCuda, AgreesWithTheCpu) {
  const std::uint64_t seed = test_seed(5);
  for (const auto& shape : layer_shapes({0, 0.4}))
    for (const std::vector<std::int64_t>& sizes :
         {std::vector<std::int64_t>{13, 12, 11, 9}, std::vector<std::int64_t>{200, 90, 34, 8}}) {
      SCOPED_TRACE(testing::Message() << in_words(shape) << " from " << sizes.front() << " seed " << seed);
      DeviceCase c(gpu(), shape, frontiers_of(shape, sizes), seed);
      expect_near_the_cpu(c);
      expect_evaluation_near_the_cpu(c);
    }
}

TEST_F(LayerCuda, TwoRunsHaveTheSameBits) {
  for (auto shape : layer_shapes({0.5})) {
    shape.inputs = 20;
    shape.hidden = 18;
    SCOPED_TRACE(in_words(shape));
    const auto frontiers = frontiers_of(shape, {300, 250, 200, 150});
    DeviceCase c(gpu(), shape, frontiers, 3), other(gpu(), shape, frontiers, 3);
    const auto first = c.on_gpu();
    expect_same_bits(c.on_gpu(), first);
    expect_same_bits(other.on_gpu(), first);
  }
}

// More than are stacked at once.
TEST_F(LayerCuda, RelationsOfManyRowsAreEvaluatedAStackAtATime) {
  for (const char* kind : {"rgat", "hgt"}) {
    const NetworkShape shape{
        .kind = kind, .layers = 1, .inputs = 5, .hidden = 1, .classes = 3, .output_heads = 2};
    const std::int64_t rows = 4 * kStackedSegments<Cuda> / 3;  // four in five have entries
    DeviceCase c(gpu(), shape, {rows + 20, rows}, 4);
    Matrix<float> expected;
    Matrix<float, Cuda> result;
    LayerScratch<float> scratch;
    LayerScratch<float, Cuda> device_scratch;
    c.weights.evaluate_layer(Cpu{1}, 1, c.blocks[0], c.input, scratch, expected);
    c.network.evaluate_layer(gpu(), 1, c.device_blocks[0], c.device_input, device_scratch, result);
    EXPECT_LT(largest_difference(to_host(gpu(), result), expected), 1e-4) << kind;
  }
}

TEST_F(LayerCuda, AnEmptyMinibatchHasNoLossAndNoGradient) {
  for (const auto& shape : layer_shapes({0.4})) {
    SCOPED_TRACE(in_words(shape));
    DeviceCase c(gpu(), shape, frontiers_of(shape, {0, 0, 0, 0}), 2);
    const auto result = c.on_gpu();
    EXPECT_EQ(result.loss, 0.0);
    for (const auto& gradient : result.gradients)
      for (const float x : gradient.data) EXPECT_EQ(x, 0.0f);
  }
}

}  // namespace
}  // namespace espalier
