// ranks: 1
// Laws: attention on a GPU has the CPU's weights but for the rounding of exp, the same of them
// dropped; of given weights, sums and gradients are the CPU's bit for bit, wherever in common
// arrays the block lies.
#include "espalier/nn/edge_softmax.hpp"

#include "dense/device_matrices.hpp"
#include "mpi_test.hpp"
#include "nn/edge_softmax_cases.hpp"

namespace espalier {
namespace {

class EdgeSoftmaxCuda : public CudaTest {
 protected:
  Matrix<float, Cuda> up(const Matrix<float>& m) { return to_device(gpu(), m); }
  /// Which of its NaNs a machine gives is its own affair.
  void expect_bits(const Matrix<float, Cuda>& m, const Matrix<float>& expected, const char* what) {
    EXPECT_TRUE(same_numbers(to_host(gpu(), m), expected)) << what;
  }

  /// exp rounds by 2 ulp on each side, of a row's weight and of those in its sum; then a division.
  /// A weight below the normal numbers may be 0.
  void expect_near(const Matrix<float, Cuda>& weights, const Matrix<float>& expected) {
    const auto found = to_host(gpu(), weights);
    ASSERT_TRUE(found.rows == expected.rows && found.columns == expected.columns);
    for (std::size_t e = 0; e < expected.data.size(); ++e) {
      EXPECT_EQ(std::isnan(found.data[e]), std::isnan(expected.data[e]));
      if (std::isnan(expected.data[e])) continue;
      EXPECT_EQ(std::signbit(found.data[e]), std::signbit(expected.data[e])) << "dropped or not";
      EXPECT_NEAR(found.data[e], expected.data[e], 10 * 0x1p-24 * std::abs(expected.data[e]) + 0x1p-126);
    }
  }

  void expect_cpu(AttentionCase<float>& c) {
    c.run();
    const SharedDeviceBlock shared(gpu(), c.block, 13);
    const auto& block = shared.block;
    const auto p = up(c.p), dz = up(c.dz), a_source = up(c.a_source), a_target = up(c.a_target);
    Matrix<float, Cuda> source(c.block.columns, c.heads), target(c.block.rows, c.heads), weights;
    head_scores<float>(gpu(), p, a_source, source);
    head_scores<float>(gpu(), ConstMatrixView<float, Cuda>(p).first_rows(c.block.rows), a_target, target);
    expect_bits(source, c.source, "scores of sources");
    expect_bits(target, c.target, "scores of targets");
    edge_softmax<float>(gpu(), block, source, target, nullptr, c.mask, c.rate, weights);
    expect_near(weights, c.weights);

    weights = up(c.weights);
    Matrix<float, Cuda> z(c.block.rows, c.heads * c.width), dweights, dtarget, dsource, dp,
        da(c.heads, c.width);
    attend<float>(gpu(), block, weights, c.rate, p, z);
    expect_bits(z, c.z, "Z");
    attend<float>(gpu(), block, weights, c.rate, p, z, Update::kAccumulate);
    attend<float>(Cpu{1}, c.block, c.weights, c.rate, c.p, c.z, Update::kAccumulate);
    expect_bits(z, c.z, "Z, twice");
    edge_softmax_backward<float>(gpu(), block, weights, c.rate, source, target, nullptr, p, dz, dweights,
                                 dtarget);
    expect_bits(dweights, c.dweights, "gradient of the weights");
    expect_bits(dtarget, c.dtarget, "gradient of the targets");
    Csr<std::int32_t, Cuda> transposed;
    DeviceArray<std::int32_t> positions;
    transpose(gpu(), block, transposed, &positions);
    attend_backward<float>(gpu(), transposed, positions, weights, c.rate, dweights, dtarget, block, dz,
                           a_source, a_target, dsource, dp);
    expect_bits(dsource, c.dsource, "gradient of the sources");
    expect_bits(dp, c.dp, "gradient of P");
    head_scores_backward<float>(gpu(), p, dsource, da);
    expect_bits(da, c.da, "gradient of a");
  }
};

TEST_F(EdgeSoftmaxCuda, AgreesWithTheCpu) {
  const auto seed = test_seed(6);
  std::mt19937_64 random(seed);
  for (const std::int64_t rows : {0, 1, 30})
    for (const std::int64_t heads : {1, 3, 16})
      for (const std::int64_t width : {1, 7, 8, 17})
        for (const double rate : {0.0, 0.5}) {
          SCOPED_TRACE(testing::Message() << rows << " rows, " << heads << " x " << width << ", rate " << rate
                                          << ", seed " << seed);
          AttentionCase<float> c(attention_block(rows, 45, 6, random), heads, width, rate, random);
          expect_cpu(c);
        }
}

TEST_F(EdgeSoftmaxCuda, AgreesOnBlocksOfManyThreadBlocks) {
  std::mt19937_64 random(test_seed(7));
  AttentionCase<float> c(attention_block(1300, 2000, 8, random), 4, 5, 0.4, random);
  expect_cpu(c);
}

TEST_F(EdgeSoftmaxCuda, NaNAndLargeScoresAreTheCpus) {
  std::mt19937_64 random(test_seed(8));
  for (const double rate : {0.0, 0.9}) {
    AttentionCase<float> c(attention_block(80, 120, 5, random), 3, 5, rate, random);
    for (float& x : c.p.data) x *= 1e5f;
    c.p(31, 7) = NAN;
    expect_cpu(c);
  }
}

TEST_F(EdgeSoftmaxCuda, HeadsAreAveragedAsOnTheCpu) {
  std::mt19937_64 random(test_seed(9));
  const auto average = [](const auto& space, const auto& all, const auto& bias, const auto& dz, auto& z,
                          auto& dall) {
    average_heads<float>(space, all, bias, z);
    average_heads_backward<float>(space, dz, dall);
  };
  for (const std::int64_t heads : {1, 3, 8})
    for (const std::int64_t width : {1, 5, 40})
      expect_cpu_bits(gpu(), average, random_matrix<float>(70, heads * width, random),
                      random_matrix<float>(1, width, random), random_matrix<float>(70, width, random),
                      Matrix<float>(70, width), Matrix<float>(70, heads * width));
}

}  // namespace
}  // namespace espalier
