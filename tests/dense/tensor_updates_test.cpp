// Laws: those of tensor_updates_cases.hpp.
#include "dense/random_matrices.hpp"
#include "dense/tensor_updates_cases.hpp"

namespace espalier {
namespace {

TEST(ClipToNorm, ScalesWhatIsTooLong) {
  check_clipping([](double most, std::vector<Matrix<float>> matrices) {
    Array<Cpu, double> scratch;
    clip_to_norm(Cpu{1}, most, matrices, scratch);
    return matrices;
  });
}

TEST(Blend, IsAStepOfAnExponentialAverage) {
  check_blending([](double share, const Matrix<float>& from, Matrix<float> to) {
    blend(Cpu{1}, share, from, to);
    return to;
  });
}

TEST(Weigh, SumsAreBlendedByWhatTheyWereMultipliedBy) {
  check_weighted_means(
      [](double divisor, const Matrix<float>& mean, std::int64_t at) {
        Weighed weighed = {{}, filled_matrix(1, 3, 0.0f)};
        weigh(Cpu{1}, divisor, mean, weighed.sum, weighed.divisors, at);
        return weighed;
      },
      [](double share, const Matrix<float>& sum, const Matrix<float>& divisors, std::int64_t at,
         Matrix<float> to) {
        blend_mean(Cpu{1}, share, sum, divisors, at, to);
        return to;
      });
}

}  // namespace
}  // namespace espalier
