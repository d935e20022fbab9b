// Laws: those of tensor_updates_cases.hpp.
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

}  // namespace
}  // namespace espalier
