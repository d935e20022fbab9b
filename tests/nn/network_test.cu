// ranks: 1
// Laws: logits, loss, gradients, statistics and evaluation on a GPU are the CPU's in double within
// what float32 rounds; weights begin the same and survive the way there and back; two runs give the
// same bits.
#include "espalier/nn/network.hpp"

#include "espalier/dense/spmm.hpp"
#include "mpi_test.hpp"
#include "nn/device_case.hpp"

namespace espalier {
namespace {

class NetworkCuda : public CudaTest {};

/// Relative to the norm of a result. A product of depth k rounds each of its terms k times at most,
/// each by 2^-24 of the terms' sizes; roundings add up like random ones, some sqrt(k) of them: 9
/// for the 80 terms of the widest layer, and each of up to 3 layers there and 3 back passes its
/// errors on, through normalisations that magnify them by about their inverse deviation (up to 4
/// here). 9 * 6 * 4 * 2^-24 = 1.3e-5.
constexpr double kTolerance = 1.3e-5;

struct Widths {
  std::int64_t inputs, hidden, classes;
};

void expect_near_the_cpu(DeviceCase& c) {
  const auto result = c.on_gpu();
  const auto expected = c.on_cpu();
  EXPECT_LT(relative_difference(result.logits, expected.logits, 1), kTolerance);
  EXPECT_NEAR(result.loss, expected.loss, kTolerance * expected.loss);
  ASSERT_EQ(result.gradients.size(), expected.gradients.size());
  // A bias in front of batch normalisation has no influence: its gradient is compared with the
  // scale of the others.
  for (std::size_t k = 0; k < expected.gradients.size(); ++k)
    EXPECT_LT(relative_difference(result.gradients[k], expected.gradients[k], 1), kTolerance)
        << c.exact.parameters()[k].name;
  for (std::size_t k = 0; k < result.statistics.size(); ++k)
    EXPECT_LT(relative_difference(result.statistics[k], c.exact.batch_statistics()[k], 1), kTolerance);
}

TEST_F(NetworkCuda, AgreesWithTheCpu) {
  const std::uint64_t seed = test_seed(5);
  int multiply_first = 0, aggregate_first = 0;
  for (const std::string kind : {"sage", "gcn"})
    for (const std::string normalize : {"none", "batch", "layer"})
      for (const int layers : {1, 3})
        // Widths shrinking and growing, frontiers growing little and much: both orders of
        // multiplication.
        for (const Widths w : {Widths{80, 12, 3}, Widths{5, 32, 33}})
          for (const double dropout : {0.0, 0.4})
            for (const std::vector<std::int64_t>& sizes :
                 {std::vector<std::int64_t>{13, 12, 11, 9}, {200, 90, 34, 8}}) {
              // The last layer does not normalise.
              if (layers == 1 && normalize != "none") continue;
              SCOPED_TRACE(testing::Message()
                           << kind << " " << normalize << " layers " << layers << " inputs " << w.inputs
                           << " dropout " << dropout << " seed " << seed);
              const NetworkShape shape{kind,      layers,  w.inputs,      w.hidden,
                                       w.classes, dropout, dropout * 0.7, normalize};
              DeviceCase c(gpu(), shape, {sizes.end() - layers - 1, sizes.end()}, seed);
              for (int l = 1; l <= layers; ++l)
                ++(cheaper_order(c.device_blocks[static_cast<std::size_t>(l - 1)], c.network.input_width(l),
                                 c.network.output_width(l), l > 1) == ProductOrder::kMultiplyFirst
                       ? multiply_first
                       : aggregate_first);
              expect_near_the_cpu(c);
            }
  EXPECT_GT(multiply_first, 10) << "both orders must have been tried";
  EXPECT_GT(aggregate_first, 10);
}

TEST_F(NetworkCuda, TwoRunsHaveTheSameBits) {
  for (const std::string kind : {"sage", "gcn"})
    for (const std::string normalize : {"none", "batch", "layer"}) {
      const NetworkShape shape{kind, 2, 50, 33, 9, 0.5, 0.2, normalize};
      DeviceCase c(gpu(), shape, {800, 640, 520}, 3), other(gpu(), shape, {800, 640, 520}, 3);
      const auto first = c.on_gpu();
      expect_same_bits(c.on_gpu(), first);
      expect_same_bits(other.on_gpu(), first);
    }
}

TEST_F(NetworkCuda, DropoutIsAFunctionOfThePass) {
  DeviceCase c(gpu(), {"sage", 2, 8, 16, 5, 0.5, 0.5, "none"}, {40, 20, 10}, 6);
  const double loss = c.on_gpu().loss;
  for (const auto key : {&Pass::seed, &Pass::epoch, &Pass::batch}) {
    ++(c.pass.*key);
    EXPECT_NE(c.on_gpu().loss, loss);
    --(c.pass.*key);
  }
  EXPECT_EQ(c.on_gpu().loss, loss);
}

TEST_F(NetworkCuda, EvaluationAgreesWithTheCpu) {
  for (const std::string kind : {"sage", "gcn"})
    for (const std::string normalize : {"none", "batch", "layer"})
      for (const Widths w : {Widths{37, 21, 5}, Widths{10, 48, 50}}) {
        SCOPED_TRACE(kind + " " + normalize);
        DeviceCase c(gpu(), {kind, 2, w.inputs, w.hidden, w.classes, 0.5, 0, normalize}, {150, 100, 90}, 4);
        c.on_gpu();
        c.on_cpu();
        c.network.update_running_statistics(gpu(), c.network.batch_statistics());
        c.exact.update_running_statistics(c.exact.batch_statistics());
        Matrix<double> at = in_double(c.input), next;
        Matrix<float, Cuda> device_at = to_device(gpu(), c.input), device_next;
        LayerScratch<double> scratch;
        LayerScratch<float, Cuda> device_scratch;
        for (int layer = 1; layer <= 2; ++layer) {
          const auto l = static_cast<std::size_t>(layer - 1);
          std::as_const(c.exact).evaluate_layer(Cpu{1}, layer, c.blocks[l], at, scratch, next);
          std::as_const(c.network).evaluate_layer(gpu(), layer, c.device_blocks[l], device_at, device_scratch,
                                                  device_next);
          std::swap(at, next);
          std::swap(device_at, device_next);
          EXPECT_LT(relative_difference(to_host(gpu(), device_at), at, 1), kTolerance);
        }
      }
}

TEST_F(NetworkCuda, AnEmptyMinibatchHasNoLossAndNoGradient) {
  for (const std::string kind : {"sage", "gcn"})
    for (const std::string normalize : {"none", "batch", "layer"}) {
      DeviceCase c(gpu(), {kind, 2, 6, 5, 4, 0.5, 0.1, normalize}, {0, 0, 0}, 2);
      const auto result = c.on_gpu();
      EXPECT_EQ(result.loss, 0.0);
      for (const auto& gradient : result.gradients)
        for (const float x : gradient.data) EXPECT_EQ(x, 0.0f);
    }
}

TEST_F(NetworkCuda, WeightsBeginAsOnTheCpuAndAreCopiedThere) {
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
