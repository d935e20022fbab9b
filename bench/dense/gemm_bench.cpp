// The GEMMs of a training step, float32, against OpenBLAS; Eigen's beside them, and ours in
// bfloat16.
//
//   forward          Z  = X W        [m, k] [k, n]
//   weight gradient  dW = X^T dZ     [m, k]^T [m, n]
//   input gradient   dX = dZ W^T     [m, n] [k, n]^T
//
// with m = 65536 rows of a minibatch; k and n are 256 (hidden), 128 (a narrow input), 47 (classes
// of ogbn-products).
//
// Derivation: a product is 2 m k n operations. It reads and writes 4 (m k + k n + m n) bytes, 20
// operations (n = 47) to 64 for each, so it is bound by arithmetic. The bound is what OpenBLAS's
// sgemm, which is close to the machine's peak, does with the same matrices in the same minute. The
// ratio may exceed 1, and is far above it where OpenBLAS takes its kernels for a lesser machine:
// the title names them, OPENBLAS_CORETYPE in the environment chooses, and bench.mk unsets it.
// OpenBLAS may round as it likes; our products may not (espalier/dense/gemm.hpp), and the ratio is
// what that law costs.
//
// Eigen multiplies the largest product of each kind, against the same bound: what a library that
// users have anyway would give (docs/decisions/003).
//
// In bfloat16 (train.precision = "bf16") the bound stays OpenBLAS's sgemm: the ratio is what the
// precision is worth. AMX could do far more: a tile product of 16 x 16 x 32 is 16,384 operations in
// 16 cycles, 2.15 TFLOP/s a core at 2.1 GHz. But operands and results are float32 in memory: at k =
// n = 256 that are 43 operations a byte where results are read before they are written, or 430
// GFLOP/s at the 10 GB/s of a core. PyTorch (oneDNN) reached 298 to 539 with two threads on such a
// processor. Without AMX it is below float32.
//
// Verification: every element against OpenBLAS's. Entries lie in [-1, 1), so the error of a sum of
// k products walks at random with a standard deviation near k 2^-26; farther apart than k 2^-22
// counts as wrong. A term left out is 0.25 in the mean. What is multiplied in bfloat16 are numbers
// of 8 bits, which nothing rounds.
#include <cblas.h>

#include <Eigen/Core>
#include <cmath>
#include <memory>
#include <random>

#include "espalier/base/half.hpp"
#include "espalier/dense/gemm.hpp"
#include "rates.hpp"

namespace espalier::bench {
namespace {

enum class Kind { kForward, kWeightGradient, kInputGradient };

struct Product {
  const char* name;
  Kind kind;
  std::int64_t m, k, n;
};

constexpr std::int64_t kRows = 65536;
constexpr Product kProducts[] = {
    {"X W         k=256 n=256", Kind::kForward, kRows, 256, 256},
    {"X W         k=128 n=256", Kind::kForward, kRows, 128, 256},
    {"X W         k=256 n=47 ", Kind::kForward, kRows, 256, 47},
    {"X^T dZ      k=256 n=256", Kind::kWeightGradient, kRows, 256, 256},
    {"X^T dZ      k=256 n=47 ", Kind::kWeightGradient, kRows, 256, 47},
    {"dZ W^T      k=256 n=256", Kind::kInputGradient, kRows, 256, 256},
};

/// The operands of one product, kept for all repetitions.
struct Operands {
  Product product;
  Matrix<float> a, b, ours, theirs;
  std::int64_t terms = 0;  // of one sum
  Precision precision;

  Operands(const Product& p, Precision of) : product(p), precision(of) {
    switch (p.kind) {
      case Kind::kForward:
        a.resize(p.m, p.k), b.resize(p.k, p.n), ours.resize(p.m, p.n), terms = p.k;
        break;
      case Kind::kWeightGradient:
        a.resize(p.m, p.k), b.resize(p.m, p.n), ours.resize(p.k, p.n), terms = p.m;
        break;
      case Kind::kInputGradient:
        a.resize(p.m, p.n), b.resize(p.k, p.n), ours.resize(p.m, p.k), terms = p.n;
        break;
    }
    std::minstd_rand random(7);
    for (auto* matrix : {&a, &b})
      for (float& x : matrix->data) {
        x = std::uniform_real_distribution<float>(-1, 1)(random);
        if (precision == Precision::kBf16) x = to_float(to_bfloat16(x));
      }
    theirs.resize(ours.rows, ours.columns);
  }
  double flops() const { return 2.0 * static_cast<double>(product.m * product.k * product.n); }

  void multiply(int threads) {
    const Cpu cpu{threads, precision};
    switch (product.kind) {
      case Kind::kForward:
        return gemm<float>(cpu, a, b, ours);
      case Kind::kWeightGradient:
        return gemm_tn<float>(cpu, a, b, ours);
      case Kind::kInputGradient:
        return gemm_nt<float>(cpu, a, b, ours);
    }
  }
  void multiply_by_blas(int threads) {
    openblas_set_num_threads(threads);
    cblas_sgemm(CblasRowMajor, product.kind == Kind::kWeightGradient ? CblasTrans : CblasNoTrans,
                product.kind == Kind::kInputGradient ? CblasTrans : CblasNoTrans, static_cast<int>(ours.rows),
                static_cast<int>(ours.columns), static_cast<int>(terms), 1.0f, a.data.data(),
                static_cast<int>(a.columns), b.data.data(), static_cast<int>(b.columns), 0.0f,
                theirs.data.data(), static_cast<int>(theirs.columns));
  }
  void multiply_by_eigen(int threads) {
    using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    const auto view = [](auto& matrix) {
      return Eigen::Map<RowMajor>(matrix.data.data(), matrix.rows, matrix.columns);
    };
    Eigen::setNbThreads(threads);
    if (product.kind == Kind::kForward)
      view(ours).noalias() = view(a) * view(b);
    else if (product.kind == Kind::kWeightGradient)
      view(ours).noalias() = view(a).transpose() * view(b);
    else
      view(ours).noalias() = view(a) * view(b).transpose();
  }
  /// Of what `multiply_them` leaves in `ours`.
  template <class Multiply>
  std::int64_t count_wrong(int threads, const Multiply& multiply_them) {
    std::fill(ours.data.begin(), ours.data.end(), NAN);
    multiply_them();
    multiply_by_blas(threads);
    const double tolerance = 0x1p-22 * static_cast<double>(terms);
    std::int64_t wrong = 0;
    for (std::size_t e = 0; e < ours.data.size(); ++e)
      wrong +=
          !(std::abs(static_cast<double>(ours.data[e]) - static_cast<double>(theirs.data[e])) <= tolerance);
    return wrong;
  }
};

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier::bench;
  std::vector<Comparison> comparisons;
  for (const auto& product : kProducts) {
    const auto operands = std::make_shared<Operands>(product, espalier::Precision::kFp32),
               rounded = std::make_shared<Operands>(product, espalier::Precision::kBf16);
    const double gflop = 1e-9 * operands->flops();
    const auto compare_with_blas = [&](const std::shared_ptr<Operands>& of, const char* how, int threads,
                                       const auto& multiply) {
      comparisons.push_back({fmt::format("{} {} thr{}", product.name, threads, how), gflop,
                             [=] { return seconds_of(multiply); },
                             [=] { return gflop / seconds_of([&] { of->multiply_by_blas(threads); }); },
                             of->count_wrong(threads, multiply), threads});
    };
    for (const int threads : thread_counts()) {
      compare_with_blas(operands, "", threads, [=] { operands->multiply(threads); });
      compare_with_blas(rounded, ", bf16", threads, [=] { rounded->multiply(threads); });
      if (product.k == 256 && product.n == 256)
        compare_with_blas(operands, ", Eigen", threads, [=] { operands->multiply_by_eigen(threads); });
    }
  }
  const auto title =
      fmt::format("GEMM, m = 65536; bound: OpenBLAS sgemm ({}); bf16 by {}", openblas_get_corename(),
                  espalier::has_fast_bf16() ? "AMX" : "float32's instructions");
  return compare(argc, argv, title, "GFLOP/s", comparisons);
}
