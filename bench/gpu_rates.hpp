// What the benches of the GPU share: rates of the GPU that bounds are made of, timing by events,
// and the table. For bench/ROOM/OP_bench.cu only.
//
//     OP_bench [--out FILE.json] [--quick] [--scale N]    quick: sizes for the emulation, seconds
//
// A bench verifies its results against the CPU twin first. A case says what one call moves and
// computes, derived on paper: bytes between the chip and its memory, and floating-point operations.
// The least time for them is
//
//     bound = max(bytes / copy rate, operations / matrix rate)
//
// copy rate:    a copy from device memory to device memory, bytes read + written, measured after
//               each case
// matrix rate:  cuBLAS, 8192 x 8192 x 8192 of random numbers in the same precision, measured once
//               for a precision
//
// Each case is warmed up, then timed kRepetitions times over enough calls for 20 ms, with nothing
// but events between. The table shows the median. Exit code 1 if anything was wrong.
//
//     case   rate   bound   ratio = rate / bound (lowest and highest)   #wrong
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "espalier/base/device_array.hpp"
#include "espalier/base/error.hpp"
#include "espalier/dense/device_matrix.hpp"
#include "espalier/sparse/csr.hpp"
#include "espalier/sparse/device_csr.hpp"

namespace espalier::bench {

/// One line of the table.
struct GpuCase {
  std::string name, unit;
  double amount = 0;                 ///< what one call does, in 1e9 of the unit
  double bytes = 0, operations = 0;  /// that the bound is derived from
  std::int64_t wrong = 0;            ///< elements that failed verification
  std::function<void()> operation;   ///< puts one call on the compute stream
};

class GpuBench {
 public:
  GpuBench(int argc, char** argv, std::string title) : title_(std::move(title)) {
    for (int i = 1; i < argc; ++i) {
      if (std::strcmp(argv[i], "--quick") == 0)
        quick_ = true;
      else if (std::strcmp(argv[i], "--out") == 0 && i + 1 < argc)
        out_ = argv[++i];
      else if (std::strcmp(argv[i], "--scale") == 0 && i + 1 < argc)
        scale_ = std::stoll(argv[++i]);
      else
        usage_error("{}: {} is no argument of a bench; use --out FILE, --quick, --scale N", argv[0], argv[i]);
    }
  }

  bool quick() const { return quick_; }
  /// `full`, or `small` in a quick run.
  template <class T>
  T size(T full, T small) const {
    return quick_ ? small : full;
  }
  std::int64_t scale(std::int64_t full, std::int64_t small) const {
    return scale_ > 0 ? scale_ : size(full, small);
  }

  /// Is there a GPU? Says so when not.
  bool has_gpu() const {
    std::string why;
    if (count_gpus(&why) > 0) return true;
    std::printf("no GPU: %s; nothing is measured\n", why.c_str());
    return false;
  }

  void measure(const Cuda& cuda, const GpuCase& one) {
    Line line{one, {}, 0, 0, 0};
    for (int k = 0; k < size(3, 1); ++k) one.operation();
    const double once = seconds_of(cuda, 1, one.operation);
    const int calls = quick_ ? 1 : static_cast<int>(std::clamp(0.02 / once, 1.0, 1000.0));
    for (int k = 0; k < size(kRepetitions, 1); ++k)
      line.seconds.push_back(seconds_of(cuda, calls, one.operation));
    std::sort(line.seconds.begin(), line.seconds.end());
    line.copy_rate = copy_rate(cuda);
    line.matrix_rate = one.operations > 0 ? matrix_rate(cuda) : 0;
    const double least =
        std::max(one.bytes / line.copy_rate, one.operations > 0 ? one.operations / line.matrix_rate : 0.0);
    line.bound = one.amount / least;
    gpu_ = cuda.name();
    print(line);
    lines_.push_back(std::move(line));
  }

  /// Writes the file; the exit code.
  int finish() const {
    if (!out_.empty()) write();
    std::int64_t wrong = 0;
    for (const auto& line : lines_) wrong += line.of.wrong;
    return wrong > 0 ? 1 : 0;
  }

 private:
  static constexpr int kRepetitions = 7;

  struct Line {
    GpuCase of;
    std::vector<double> seconds;  ///< of a call, ascending
    double copy_rate, matrix_rate, bound;
    double median() const { return seconds[seconds.size() / 2]; }
    double rate(double of_seconds) const { return of.amount / of_seconds; }
  };

  static double seconds_of(const Cuda& cuda, int calls, const std::function<void()>& operation) {
    CudaMoment begin(cuda), end(cuda);
    begin.record(cuda);
    for (int k = 0; k < calls; ++k) operation();
    end.record(cuda);
    return std::max(end.seconds_since(begin), 1e-9) / calls;
  }

  /// Bytes/s, read + written.
  double copy_rate(const Cuda& cuda) {
    const std::size_t bytes = size(std::size_t{1} << 30, std::size_t{1} << 16);
    if (from_.empty()) {
      from_ = DeviceArray<std::byte>(bytes);
      to_ = DeviceArray<std::byte>(bytes);
      fill_zero(cuda, from_);
      copy(cuda, from_, to_);
    }
    return 2.0 * static_cast<double>(bytes) / seconds_of(cuda, size(10, 1), [&] { copy(cuda, from_, to_); });
  }

  static cublasComputeType_t compute_type(Precision precision) {
    if (precision == Precision::kTf32) return CUBLAS_COMPUTE_32F_FAST_TF32;
    return precision == Precision::kBf16 ? CUBLAS_COMPUTE_32F_FAST_16BF : CUBLAS_COMPUTE_32F;
  }

  /// Operations/s of a large product of float32 numbers, computed in cuda.precision().
  double matrix_rate(const Cuda& cuda) {
    double& known = matrix_rates_[static_cast<int>(cuda.precision())];
    if (known > 0) return known;
    const int n = size(8192, 64);
    Buffer<float> numbers(static_cast<std::size_t>(n) * static_cast<std::size_t>(n));
    std::minstd_rand random(3);
    for (float& x : numbers) x = static_cast<float>(random() & 0xffff) * 0x1p-15f - 1.0f;
    const auto a = upload(cuda, numbers);
    DeviceArray<float> c(numbers.size());
    const float one = 1, zero = 0;
    const auto product = [&] {
      ESPALIER_CHECK(
          cublasGemmEx(cuda.blas(), CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a.data(), CUDA_R_32F, n,
                       a.data(), CUDA_R_32F, n, &zero, c.data(), CUDA_R_32F, n,
                       compute_type(cuda.precision()), CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS,
          "cuBLAS refuses a product of size {}", n);
    };
    seconds_of(cuda, 2, product);
    std::vector<double> seconds;
    for (int k = 0; k < 5; ++k) seconds.push_back(seconds_of(cuda, 1, product));
    std::nth_element(seconds.begin(), seconds.begin() + 2, seconds.end());
    return known = 2.0 * n * n * n / seconds[2];
  }

  void print(const Line& line) {
    if (lines_.empty())
      std::printf("\n# %s\n# %s%s\n%-46s%11s%11s %-9s%7s%16s%8s\n", title_.c_str(), gpu_.c_str(),
                  quick_ ? "; quick: sizes are small, rates mean nothing" : "", "", "rate", "bound", "",
                  "ratio", "(low..high)", "#wrong");
    const auto range = fmt::format("({:.2f}..{:.2f})", line.rate(line.seconds.back()) / line.bound,
                                   line.rate(line.seconds.front()) / line.bound);
    std::printf("%-46s%11.4g%11.4g %-9s%7.2f%16s%8ld\n", line.of.name.c_str(), line.rate(line.median()),
                line.bound, line.of.unit.c_str(), line.rate(line.median()) / line.bound, range.c_str(),
                static_cast<long>(line.of.wrong));
    std::fflush(stdout);
  }

  void write() const {
    std::string text = fmt::format("{{\"title\": \"{}\", \"gpu\": \"{}\", \"quick\": {}, \"cases\": [\n",
                                   title_, gpu_, quick_);
    for (const auto& line : lines_)
      text += fmt::format(
          "{}  {{\"name\": \"{}\", \"unit\": \"{}\", \"rate\": {:.6g}, \"bound\": {:.6g}, \"ratio\": {:.6g}, "
          "\"low\": {:.6g}, \"high\": {:.6g}, \"wrong\": {}, \"seconds\": {:.6g}, \"bytes\": {:.6g}, "
          "\"operations\": {:.6g}, \"copy_rate\": {:.6g}, \"matrix_rate\": {:.6g}}}",
          &line == &lines_.front() ? "" : ",\n", line.of.name, line.of.unit, line.rate(line.median()),
          line.bound, line.rate(line.median()) / line.bound, line.rate(line.seconds.back()) / line.bound,
          line.rate(line.seconds.front()) / line.bound, line.of.wrong, line.median(), line.of.bytes,
          line.of.operations, line.copy_rate, line.matrix_rate);
    text += "\n]}\n";
    std::FILE* file = std::fopen(out_.c_str(), "w");
    if (file == nullptr) usage_error("--out {}: cannot write", out_);
    std::fputs(text.c_str(), file);
    std::fclose(file);
  }

  std::string title_, out_, gpu_;
  bool quick_ = false;
  std::int64_t scale_ = 0;
  double matrix_rates_[3] = {};
  DeviceArray<std::byte> from_, to_;
  std::vector<Line> lines_;
};

/// All of this machine's cores, for the CPU twins that verify.
inline Cpu all_cores() {
  return Cpu{static_cast<int>(std::max(1u, std::thread::hardware_concurrency()))};
}

/// Entries in [-1, 1).
inline Matrix<float> random_matrix(std::int64_t rows, std::int64_t columns, unsigned seed) {
  Matrix<float> matrix(rows, columns);
  std::minstd_rand random(seed);
  for (float& x : matrix.data) x = static_cast<float>(random() & 0xffff) * 0x1p-15f - 1.0f;
  return matrix;
}

inline Matrix<float, Cuda> on_gpu(const Cuda& cuda, const Matrix<float>& matrix) {
  Matrix<float, Cuda> result;
  upload(cuda, matrix, result);
  return result;
}

inline Csr<std::int32_t, Cuda> on_gpu(const Cuda& cuda, const Block& block) {
  return upload(cuda, block);
}

/// Elements whose bits differ.
template <class T>
std::int64_t count_different(const Buffer<T>& left, const Buffer<T>& right) {
  if (left.size() != right.size()) return static_cast<std::int64_t>(std::max(left.size(), right.size()));
  std::int64_t different = 0;
  for (std::size_t k = 0; k < left.size(); ++k) different += std::memcmp(&left[k], &right[k], sizeof(T)) != 0;
  return different;
}

/// Elements further from what they should be than `tolerance` of it, or of 1.
template <class T>
std::int64_t count_far(const Buffer<T>& got, const Buffer<T>& expected, double tolerance) {
  if (got.size() != expected.size()) return static_cast<std::int64_t>(std::max(got.size(), expected.size()));
  std::int64_t far = 0;
  for (std::size_t k = 0; k < got.size(); ++k) {
    const double should = static_cast<double>(expected[k]);
    far += !(std::abs(static_cast<double>(got[k]) - should) <= tolerance * std::max(1.0, std::abs(should)));
  }
  return far;
}

/// A block like that of a training step: `picks` entries per row, uniform columns, values as
/// weights where asked.
inline Block random_block(std::int64_t rows, std::int64_t columns, std::int64_t picks, bool weighted) {
  Block block;
  block.rows = rows;
  block.columns = columns;
  std::minstd_rand random(7);
  std::uniform_int_distribution<std::int32_t> column(0, static_cast<std::int32_t>(columns - 1));
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t k = 0; k < picks; ++k) {
      block.indices.push_back(column(random));
      if (weighted) block.values.push_back(1.0f / static_cast<float>(picks + k));
    }
    block.indptr.push_back(block.entries());
  }
  return block;
}

}  // namespace espalier::bench
