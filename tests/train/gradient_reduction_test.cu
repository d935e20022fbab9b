// ranks: 1 2 3 4
// Laws: the reproducible sums have the CPU's bits, whoever contributes what, NaN included; the
// others have them within the order of the ranks' sums, also where the last contribution stays in
// the one array of all tensors; a number that is not finite is noted.
#include "comm/device_transports.hpp"
#include "dense/device_matrices.hpp"
#include "espalier/base/philox.hpp"
#include "espalier/dense/device_matrix.hpp"
#include "espalier/train/gradient_reduction.hpp"

namespace espalier {
namespace {

class GradientReductionCuda : public CudaTest {};

constexpr std::int64_t kBatches = 5;

/// Shapes of more tensors than one kernel takes, of several blocks, of nothing.
std::vector<Matrix<float>> shapes() {
  std::vector<Matrix<float>> tensors;
  tensors.emplace_back(3, 5);
  tensors.emplace_back(70, 9);
  tensors.emplace_back(0, 4);
  for (int k = 0; k < 31; ++k) tensors.emplace_back(1, 1 + k % 3);
  return tensors;
}

// Tensors that are far apart in magnitude, as are their entries: the least are rounded to few bits.
std::vector<Matrix<float>> contribution(std::int64_t batch) {
  auto tensors = shapes();
  std::uint64_t draw = 0;
  const RandomStream stream = {.seed = 8, .row = static_cast<std::uint64_t>(batch)};
  for (std::size_t t = 0; t < tensors.size(); ++t)
    for (std::size_t k = 0; k < tensors[t].data.size(); ++k) {
      const double u = to_unit_double(random64(stream, draw++));
      tensors[t].data[k] = static_cast<float>((u - 0.5) * std::pow(10.0, -2.0 * static_cast<double>(k % 9)) *
                                              std::pow(10.0, static_cast<double>(t % 6) * 8 - 20));
    }
  return tensors;
}

template <class Pointer, class Matrices>
std::vector<Pointer> pointers_to(Matrices& matrices) {
  std::vector<Pointer> pointers;
  for (auto& matrix : matrices) pointers.push_back(&matrix);
  return pointers;
}

/// Sums of the CPU and of GPUs of what `spoil` makes of the contributions.
struct Sums {
  std::vector<Matrix<float>> expected = shapes(), found;

  // Contributions of this rank, whose last one is left where the sums will be, if those lie
  // `together`.
  template <class Spoil>
  Sums(bool reproducible, bool by_nccl, std::int64_t rotation, const Spoil& spoil, bool together = false) {
    const auto& world = test_world();
    const DeviceCommunicator comm(own_gpu(), world, by_nccl);
    GradientReduction cpu(Cpu{}, world, reproducible);
    GradientReductionOn<Cuda> gpu(own_gpu(), comm, reproducible);
    auto sums = together ? in_one_array() : all_to_device(own_gpu(), expected);
    for (int step = 0; step < 2; ++step) {  // the second finds nothing of the first
      std::vector<std::int64_t> mine;
      for (std::int64_t b = 0; b < kBatches; ++b)
        if ((b + rotation) % world.size() == world.rank() && (rotation != 2 || b == 0)) mine.push_back(b);
      for (const auto b : mine) {
        auto tensors = contribution(b + step);
        spoil(tensors, b);
        const auto on_device = all_to_device(own_gpu(), tensors);
        cpu.add(pointers_to<const Matrix<float>*>(std::as_const(tensors)), 0.3f);
        if (!together || b != mine.back()) {
          gpu.add(pointers_to<const Matrix<float, Cuda>*>(on_device), 0.3f);
          continue;
        }
        for (std::size_t t = 0; t < tensors.size(); ++t) {
          for (auto& x : tensors[t].data) x *= 0.3f;
          upload(own_gpu(), tensors[t], sums[t]);
        }
        gpu.leave_last();
      }
      cpu.finish(kBatches, pointers_to<Matrix<float>*>(expected));
      gpu.finish(kBatches, pointers_to<Matrix<float, Cuda>*>(sums));
    }
    for (const auto& sum : sums) found.push_back(to_host(own_gpu(), sum));
  }

  static std::vector<Matrix<float, Cuda>> in_one_array() {
    std::vector<MatrixPlace> places;
    for (const auto& tensor : shapes()) places.push_back({tensor.rows, tensor.columns});
    return matrices_together<float, Cuda>(places, /*apart=*/false);
  }
};

const auto as_they_are = [](std::vector<Matrix<float>>&, std::int64_t) {};

TEST_F(GradientReductionCuda, ReproducibleSumsHaveTheBitsOfTheCpu) {
  for (const bool by_nccl : transports())
    for (std::int64_t rotation = 0; rotation < 3; ++rotation) {  // the last: one contribution alone
      const Sums sums(true, by_nccl, rotation, as_they_are);
      for (std::size_t t = 0; t < sums.expected.size(); ++t)
        EXPECT_TRUE(same_bits(sums.found[t], sums.expected[t])) << t << " rotation " << rotation;
    }
}

TEST_F(GradientReductionCuda, ATensorThatIsNotFiniteIsNotANumberAlone) {
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    const Sums sums(true, false, 0, [&](std::vector<Matrix<float>>& tensors, std::int64_t batch) {
      if (batch == 3) tensors[1].data[100] = bad;
      std::ranges::fill(tensors[5].data, 0.0f);
    });
    for (std::size_t t = 0; t < sums.expected.size(); ++t)
      if (t == 1)
        for (const float x : sums.found[t].data) EXPECT_TRUE(std::isnan(x));
      else
        EXPECT_TRUE(same_bits(sums.found[t], sums.expected[t])) << t;
  }
}

TEST_F(GradientReductionCuda, OtherSumsAreWithinTheirOrder) {
  for (const bool by_nccl : transports())
    for (std::int64_t at = 0; at < 6; ++at) {
      const auto rotation = at % 3;
      const Sums sums(false, by_nccl, rotation, as_they_are, /*together=*/at >= 3);
      for (std::size_t t = 0; t < sums.expected.size(); ++t) {
        if (test_world().size() == 1) EXPECT_TRUE(same_bits(sums.found[t], sums.expected[t]));
        const double largest = std::pow(10.0, static_cast<double>(t % 6) * 8 - 20);
        EXPECT_LE(largest_difference(sums.found[t], sums.expected[t]), 2 * kBatches * 0x1p-24 * largest);
      }
    }
}

int flag_after(const std::vector<Matrix<float>>& tensors, int before) {
  const auto on_device = all_to_device(own_gpu(), tensors);
  auto flag = upload(own_gpu(), Buffer<int>{before});
  note_not_finite(own_gpu(), pointers_to<const Matrix<float, Cuda>*>(on_device), flag.data());
  return download(own_gpu(), flag)[0];
}

TEST_F(GradientReductionCuda, NotesWhatIsNotFinite) {
  EXPECT_EQ(flag_after(contribution(0), 0), 0);
  EXPECT_EQ(flag_after(contribution(0), 1), 1);
  for (const float bad : {INFINITY, -INFINITY, NAN})
    for (const std::size_t t : {0u, 1u, 33u}) {
      auto tensors = contribution(1);
      tensors[t].data.back() = bad;
      EXPECT_EQ(flag_after(tensors, 0), 1) << bad << " in tensor " << t;
    }
}

}  // namespace
}  // namespace espalier
