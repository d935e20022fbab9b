// The dense products of a training step on a GPU, in float32, TF32 and bfloat16, against what
// cuBLAS reaches on one large square product in the same precision and what a copy of the
// operands takes.
//
// Shapes of a step of 3-layer SAGE, GraphSAGE 15,10,5, 1024 seeds, 100 features, hidden 256, 47
// classes: layer l has m = 2^17, 2^14, 2^10 destinations (up to 1024 * 16 * 11, fewer where
// neighbours repeat). Forward b + X W, weight gradient X^T dZ, where X is [own rows | means of
// neighbours] and so twice as wide; input gradient dZ W^T of one of both weights.
//
// Derivation: 2 m k n operations; each operand read once and the result written once: 4 (m k + k
// n + m n) bytes. With n = 47 or k = 200 a product in TF32 or bfloat16 is bound by bytes.
//
// Verification: kChecked elements at random places against sums in double; an element may be off by
// the rounding of the factors (2^-24, 2^-11 or 2^-8 each) and of k sums, times the sum of |a b|.
#include "espalier/dense/gemm.hpp"

#include "gpu_rates.hpp"

namespace espalier::bench {
namespace {

enum class Kind { kForward, kWeights, kInput };

struct Shape {
  Kind kind;
  std::int64_t m, k, n;  ///< of X [m, k], W [k, n]
};

const char* formula(Kind kind) {
  return kind == Kind::kForward ? "b + X W" : kind == Kind::kWeights ? "X^T dZ" : "dZ W^T";
}
double rounding_of(Precision precision) {
  return precision == Precision::kFp32 ? 0x1p-24 : precision == Precision::kTf32 ? 0x1p-11 : 0x1p-8;
}
const char* name_of(Precision precision) {
  return precision == Precision::kFp32 ? "fp32" : precision == Precision::kTf32 ? "tf32" : "bf16";
}

// a [.., ..] and b are the operands as they are stored; returns the wrong ones of kChecked
// elements of c.
std::int64_t count_wrong(const Shape& s, const Matrix<float>& a, const Matrix<float>& b,
                         const Matrix<float>& bias, const Matrix<float>& c, Precision precision) {
  constexpr int kChecked = 500;
  const auto length = s.kind == Kind::kWeights ? s.m : s.kind == Kind::kForward ? s.k : s.n;
  std::minstd_rand random(4);
  std::int64_t wrong = 0;
  for (int check = 0; check < kChecked; ++check) {
    const auto i = static_cast<std::int64_t>(random()) % c.rows,
               j = static_cast<std::int64_t>(random()) % c.columns;
    double sum = s.kind == Kind::kForward ? bias(0, j) : 0, magnitude = std::abs(sum);
    for (std::int64_t t = 0; t < length; ++t) {
      const double left = s.kind == Kind::kWeights ? a(t, i) : a(i, t);
      const double right = s.kind == Kind::kInput ? b(j, t) : b(t, j);
      sum += left * right;
      magnitude += std::abs(left * right);
    }
    const double allowed =
        magnitude * (2.1 * rounding_of(precision) + 0x1p-24 * static_cast<double>(length)) + 1e-30;
    wrong += !(std::abs(c(i, j) - sum) <= allowed);
  }
  return wrong;
}

void measure_shape(GpuBench& bench, const Cuda& cuda, const Shape& s) {
  const auto x = random_matrix(s.m, s.k, 1), w = random_matrix(s.k, s.n, 2), dz = random_matrix(s.m, s.n, 3);
  const Matrix<float>& a = s.kind == Kind::kInput ? dz : x;
  const Matrix<float>& b = s.kind == Kind::kWeights ? dz : w;
  const auto bias = random_matrix(1, s.n, 4);
  const auto device_a = on_gpu(cuda, a), device_b = on_gpu(cuda, b), device_bias = on_gpu(cuda, bias);
  Matrix<float, Cuda> c(s.kind == Kind::kWeights ? s.k : s.m, s.kind == Kind::kInput ? s.k : s.n);
  const auto run = [&] {
    if (s.kind == Kind::kForward)
      gemm_plus_row<float>(cuda, device_bias, device_a, device_b, c);
    else if (s.kind == Kind::kWeights)
      gemm_tn<float>(cuda, device_a, device_b, c);
    else
      gemm_nt<float>(cuda, device_a, device_b, c);
  };
  run();
  const double operations = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.k * s.n);
  const double bytes = 4.0 * static_cast<double>(s.m * s.k + s.k * s.n + s.m * s.n);
  bench.measure(
      cuda, {fmt::format("{} {} m={} k={} n={}", name_of(cuda.precision()), formula(s.kind), s.m, s.k, s.n),
             "GFLOP/s", 1e-9 * operations, bytes, operations,
             count_wrong(s, a, b, bias, download(cuda, c), cuda.precision()), run});
}

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier;
  using namespace espalier::bench;
  GpuBench bench(argc, argv, "GEMM; bound: cuBLAS 8192^3 in the same precision, or a copy of the operands");
  if (!bench.has_gpu()) return 0;
  const std::int64_t layers[3] = {bench.size<std::int64_t>(1 << 17, 300),
                                  bench.size<std::int64_t>(1 << 14, 65),
                                  bench.size<std::int64_t>(1 << 10, 33)};
  for (const auto precision : {Precision::kFp32, Precision::kTf32, Precision::kBf16}) {
    const Cuda cuda(0, precision);
    for (const auto kind : {Kind::kForward, Kind::kWeights}) {
      measure_shape(bench, cuda, {kind, layers[0], 200, 256});
      measure_shape(bench, cuda, {kind, layers[1], 512, 256});
      measure_shape(bench, cuda, {kind, layers[2], 512, 47});
    }
    measure_shape(bench, cuda, {Kind::kInput, layers[1], 256, 256});
    measure_shape(bench, cuda, {Kind::kInput, layers[2], 256, 47});
  }
  return bench.finish();
}
