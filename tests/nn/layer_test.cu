// ranks: 1
// Laws: every kind of layer with all that may stand around it has, on a GPU, the logits, loss,
// gradients (of the input too), statistics and evaluation of the CPU in double within what float32
// rounds; two runs give the same bits; weights begin the same and survive the way there and back.
#include "espalier/nn/layer.hpp"

#include "../../src/nn/segment_products.hpp"

#include "espalier/dense/spmm.hpp"
#include "espalier/nn/network_work.hpp"
#include "espalier/sparse/transpose.hpp"
#include "mpi_test.hpp"
#include "nn/device_case.hpp"
#include "nn/layer_shapes.hpp"

namespace espalier {
namespace {

class LayerCuda : public CudaTest {};

/// Relative to the norm of a result. A product of depth k rounds each of its terms k times at most,
/// each by 2^-24 of the terms' sizes; roundings add up like random ones, some sqrt(k) of them: 6.3
/// for the 40 terms of a layer, and each of up to 3 layers there and 3 back, two products in each
/// (GIN's inner layer, attention's scores), passes its errors on, through normalisations that
/// magnify them by about their inverse deviation (up to 4 here). 6.3 * 12 * 4 * 2^-24 = 1.8e-5.
constexpr double kTolerance = 1.8e-5;
/// Of convolutions: 9 for the 80 terms of the widest layer, one product in each.
/// 9 * 6 * 4 * 2^-24 = 1.3e-5.
constexpr double kConvolutionTolerance = 1.3e-5;

/// Of a step.
void expect_near_the_cpu(DeviceCase& c, double tolerance) {
  const auto result = c.on_gpu();
  const auto expected = c.on_cpu();
  EXPECT_LT(relative_difference(result.logits, expected.logits, 1), tolerance);
  EXPECT_NEAR(result.loss, expected.loss, tolerance * expected.loss);
  ASSERT_EQ(result.gradients.size(), expected.gradients.size());
  for (std::size_t k = 0; k < expected.gradients.size(); ++k)
    EXPECT_LT(relative_difference(result.gradients[k], expected.gradients[k], 1), tolerance)
        << c.exact.parameters()[k].name;
  EXPECT_LT(relative_difference(result.dinput, expected.dinput, 1), tolerance);
  for (std::size_t k = 0; k < result.statistics.size(); ++k)
    EXPECT_LT(relative_difference(result.statistics[k], c.exact.batch_statistics()[k], 1), tolerance);
}

/// Layer by layer, each from what the layer before gave in its space.
void expect_evaluation_near_the_cpu(DeviceCase& c, double tolerance) {
  update_running_statistics(c.gpu, c.network);
  update_running_statistics(Cpu{1}, c.exact);
  Matrix<double> at = in_double(c.host.input), next, jumped, logits;
  Matrix<float, Cuda> device_at = to_device(c.gpu, c.host.input), device_next, device_jumped, device_logits;
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
    EXPECT_LT(relative_difference(to_host(c.gpu, device_at), at, 1), tolerance) << "layer " << layer;
    if (!c.exact.jumps()) continue;
    c.exact.take_up_layer(Cpu{1}, layer, MatrixView<double>(at).first_rows(seeds), winners, jumped);
    c.network.take_up_layer(c.gpu, layer, MatrixView<float, Cuda>(device_at).first_rows(seeds),
                            device_winners, device_jumped);
  }
  if (!c.exact.jumps()) return;
  c.exact.evaluate_output(Cpu{1}, jumped, logits);
  c.network.evaluate_output(c.gpu, device_jumped, device_logits);
  EXPECT_LT(relative_difference(to_host(c.gpu, device_logits), logits, 1), tolerance);
}

TEST_F(LayerCuda, AgreesWithTheCpu) {
  const std::uint64_t seed = test_seed(5);
  for (const auto& shape : layer_shapes({0, 0.4}))
    for (const std::vector<std::int64_t>& sizes :
         {std::vector<std::int64_t>{13, 12, 11, 9}, std::vector<std::int64_t>{200, 90, 34, 8}}) {
      SCOPED_TRACE(testing::Message() << in_words(shape) << " from " << sizes.front() << " seed " << seed);
      DeviceCase c(gpu(), shape, frontiers_of(shape, sizes), seed);
      expect_near_the_cpu(c, kTolerance);
      expect_evaluation_near_the_cpu(c, kTolerance);
    }
}

TEST_F(LayerCuda, ConvolutionsAgreeWithTheCpuInBothOrders) {
  const std::uint64_t seed = test_seed(5);
  int multiply_first = 0, aggregate_first = 0;
  for (const double dropout : {0.0, 0.4})
    for (const auto& shape : convolution_shapes({1, 3}, {{80, 12, 3}, {5, 32, 33}}, dropout, dropout * 0.7))
      for (const std::vector<std::int64_t>& sizes :
           {std::vector<std::int64_t>{13, 12, 11, 9}, {200, 90, 34, 8}}) {
        // The last layer does not normalise.
        if (shape.layers == 1 && shape.normalize != "none") continue;
        SCOPED_TRACE(testing::Message() << in_words(shape) << " from " << sizes.front() << " seed " << seed);
        DeviceCase c(gpu(), shape, frontiers_of(shape, sizes), seed);
        for (int l = 1; l <= shape.layers; ++l)
          ++(cheaper_order(c.device_blocks[static_cast<std::size_t>(l - 1)], c.network.input_width(l),
                           c.network.output_width(l), l > 1) == ProductOrder::kMultiplyFirst
                 ? multiply_first
                 : aggregate_first);
        expect_near_the_cpu(c, kConvolutionTolerance);
      }
  EXPECT_GT(multiply_first, 10) << "both orders must have been tried";
  EXPECT_GT(aggregate_first, 10);
  for (const auto& shape : convolution_shapes({2}, {{37, 21, 5}, {10, 48, 50}}, 0.5, 0)) {
    SCOPED_TRACE(in_words(shape));
    DeviceCase c(gpu(), shape, {150, 100, 90}, 4);
    c.on_gpu();
    c.on_cpu();
    expect_evaluation_near_the_cpu(c, kConvolutionTolerance);
  }
}

TEST_F(LayerCuda, TwoRunsHaveTheSameBits) {
  auto shapes = layer_shapes({0.5});
  for (auto& shape : shapes) shape.inputs = 20, shape.hidden = 18;
  std::ranges::move(convolution_shapes({2}, {{50, 33, 9}}, 0.5, 0.2), std::back_inserter(shapes));
  for (const auto& shape : shapes) {
    SCOPED_TRACE(in_words(shape));
    const auto frontiers = frontiers_of(shape, {300, 240, 190, 70});
    DeviceCase c(gpu(), shape, frontiers, 3), other(gpu(), shape, frontiers, 3);
    const auto first = c.on_gpu();
    expect_same_bits(c.on_gpu(), first);
    expect_same_bits(other.on_gpu(), first);
  }
}

// Of layers for which it may be made; and there it is what they read.
TEST_F(LayerCuda, TransposesBesideBlocksGiveTheSameBits) {
  for (auto shape : layer_shapes({0.5})) {
    shape.input_gradient = true;
    SCOPED_TRACE(in_words(shape));
    DeviceCase c(gpu(), shape, frontiers_of(shape, {300, 240, 190, 70}), 3);
    const auto expected = c.on_gpu();
    std::vector<BlockView<Cuda>*> blocks;
    for (const auto layer : transposed_layers(shape)) blocks.push_back(&c.device_blocks[layer]);
    const auto memory = transpose_all(gpu(), blocks);
    expect_same_bits(c.on_gpu(), expected);
    if (blocks.empty()) continue;
    auto& values = blocks.front()->transposed.values;
    DeviceArray<float> zeros(static_cast<std::size_t>(1 << 16));
    fill_zero(gpu(), zeros);
    values = zeros.data();
    EXPECT_FALSE(same_bits(c.on_gpu().dinput, expected.dinput));
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
    c.host.network.evaluate_layer(Cpu{1}, 1, c.blocks[0], c.host.input, scratch, expected);
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

TEST_F(LayerCuda, WeightsBeginAsOnTheCpuAndAreCopiedThere) {
  const NetworkShape shape{"sage", 3, 30, 17, 7, 0.5, 0, "batch"};
  const Network<float> on_cpu(shape, 5);
  const Network<float, Cuda> on_gpu(gpu(), shape, 5);
  ASSERT_EQ(on_gpu.parameters().size(), on_cpu.parameters().size());
  EXPECT_EQ(on_gpu.parameter_count(), on_cpu.parameter_count());
  for (std::size_t k = 0; k < on_cpu.parameters().size(); ++k) {
    EXPECT_EQ(on_gpu.parameters()[k].name, on_cpu.parameters()[k].name);
    EXPECT_EQ(on_gpu.parameters()[k].decays, on_cpu.parameters()[k].decays);
    EXPECT_TRUE(same_bits(to_host(gpu(), on_gpu.parameters()[k].value), on_cpu.parameters()[k].value));
  }
  Network<float> changed(shape, 6);
  for (auto& statistic : changed.running_statistics())
    for (float& x : statistic.data) x += 3;
  Network<float, Cuda> other(gpu(), shape, 7);
  copy_weights(gpu(), changed, other);
  ASSERT_EQ(other.running_statistics().size(), 4u);
  for (std::size_t k = 0; k < 4; ++k)
    EXPECT_TRUE(same_bits(to_host(gpu(), other.running_statistics()[k]), changed.running_statistics()[k]));
  EXPECT_TRUE(same_bits(to_host(gpu(), other.parameters()[0].value), changed.parameters()[0].value));
}

}  // namespace
}  // namespace espalier
