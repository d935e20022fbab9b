// ranks: 1
// Laws: the bits of both normalisations on a GPU, forward, backward and evaluated, are the CPU's;
// layer normalisation evaluated is its forward pass.
#include "dense/device_matrices.hpp"
#include "espalier/dense/blend.hpp"
#include "espalier/nn/batch_norm.hpp"
#include "espalier/nn/layer_norm.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

class NormalizationCuda : public CudaTest {};

/// Everything that both passes of one normalisation are given and leave, in one space.
template <class Space>
struct Normalization {
  const Space& space;
  bool batch;
  Matrix<float, Space> scale, shift, z, gradient, output, inverse, mean, variance, dscale, dshift, evaluated;

  std::vector<const Matrix<float, Space>*> results() const {
    return {&z, &output, &inverse, &mean, &variance, &gradient, &dscale, &dshift, &evaluated};
  }
  void run() {
    const std::int64_t f = z.columns;
    for (auto* row : {&mean, &variance, &dscale, &dshift}) row->resize(1, f);
    if (batch) {
      batch_norm_forward<float>(space, z, scale, shift, output, inverse, mean, variance);
      batch_norm_backward<float>(space, z, inverse, scale, gradient, dscale, dshift);
      batch_norm_evaluate<float>(space, mean, variance, scale, shift, evaluated);
      blend<float>(space, 0.1, scale, mean);
    } else {
      layer_norm_forward<float>(space, z, scale, shift, output, inverse);
      layer_norm_backward<float>(space, z, inverse, scale, gradient, dscale, dshift);
      layer_norm_evaluate<float>(space, scale, shift, evaluated);
    }
  }
};

void expect_cpu_bits(const Cuda& gpu, bool batch, std::int64_t rows, std::int64_t f,
                     std::mt19937_64& random) {
  SCOPED_TRACE(testing::Message() << (batch ? "batch, " : "layer, ") << rows << " x " << f);
  const Cpu cpu{1};
  Normalization<Cpu> on_cpu{cpu, batch, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
  Normalization<Cuda> on_gpu{gpu, batch, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
  const auto give = [&](auto member, Matrix<float> value) {
    on_gpu.*member.second = to_device(gpu, value);
    on_cpu.*member.first = std::move(value);
  };
  auto z = random_matrix<float>(rows, f, random);
  for (float& x : z.data) x = 100 + 5 * x;
  give(std::pair(&Normalization<Cpu>::scale, &Normalization<Cuda>::scale),
       random_matrix<float>(1, f, random));
  give(std::pair(&Normalization<Cpu>::shift, &Normalization<Cuda>::shift),
       random_matrix<float>(1, f, random));
  give(std::pair(&Normalization<Cpu>::gradient, &Normalization<Cuda>::gradient),
       random_matrix<float>(rows, f, random));
  give(std::pair(&Normalization<Cpu>::evaluated, &Normalization<Cuda>::evaluated), z);
  give(std::pair(&Normalization<Cpu>::z, &Normalization<Cuda>::z), std::move(z));
  on_cpu.run();
  on_gpu.run();
  for (std::size_t k = 0; k < on_cpu.results().size(); ++k) {
    if (!batch && (k == 3 || k == 4)) continue;  // it has no statistics of columns
    EXPECT_TRUE(same_bits(to_host(gpu, *on_gpu.results()[k]), *on_cpu.results()[k])) << "result " << k;
  }
  if (!batch) {
    EXPECT_TRUE(same_bits(to_host(gpu, on_gpu.evaluated), to_host(gpu, on_gpu.output)));
  }
}

TEST_F(NormalizationCuda, HasTheBitsOfTheCpu) {
  std::mt19937_64 random(test_seed(6));
  for (const bool batch : {true, false})
    for (const std::int64_t rows : {0, 1, 2, 33, 600})
      for (const std::int64_t f : {1, 3, 7, 8, 9, 31, 32, 33, 100, 256})
        expect_cpu_bits(gpu(), batch, rows, f, random);
}

TEST_F(NormalizationCuda, SumsOfManyChunksHaveTheBitsOfTheCpu) {
  std::mt19937_64 random(test_seed(7));
  for (const bool batch : {true, false}) expect_cpu_bits(gpu(), batch, 5000, 20, random);
}

}  // namespace
}  // namespace espalier
