// What the products in bfloat16 are made of: blocks of 32 x 32 numbers, and the sum of products of
// blocks, by the one law that every machine keeps.
//
// The law is the documented order of TDPBF16PS (Intel, Software Developer's Manual, volume 2), an
// instruction of AMX. Factors are rounded to bfloat16. An element of C = C0 + A B begins as C0, or
// +0, and for 32 terms at a time
//
//   even = odd = +0
//   for p = 0 .. 15:  even = fma(a[2 p], b[2 p], even),  odd = fma(a[2 p + 1], b[2 p + 1], odd)
//   c = c + (even + odd)
//
// in float32, each operation rounded once to nearest, ties to even. Numbers too small to be normal
// count as 0 of their sign, those that go in (a float32 factor is one before it is rounded, C0 too)
// and those that come out; whether a result is one is asked of what it is after rounding to
// 24 bits with any exponent, as x86 does. Terms beyond the last are +0 times +0. A NaN is one,
// whichever.
//
// tests/dense/gemm_bf16_test.cpp holds every implementation here to the law by arithmetic
// in double.
#pragma once

#include <cstdint>

#include "espalier/base/half.hpp"

namespace espalier::bf16 {

inline constexpr std::int64_t kBlock = 32;  ///< rows, columns and terms of a block

/// 32 x 32 numbers of a factor, padded with +0. Of the left one, A: row after row, [32 rows][32
/// terms]. Of the right one, B, in pairs of terms: [16 pairs][32 columns][2].
struct alignas(64) Block {
  std::uint16_t numbers[kBlock * kBlock];
};

/// Numbers of at most 32 rows of a matrix in memory, which are `stride` numbers apart.
struct Piece {
  const float* data = nullptr;
  std::int64_t stride = 0;
  std::int64_t rows = 0, columns = 0;
};

/// At most 32 x 32 elements of C, and what they begin as: elements of a matrix (of one row for all
/// with a stride of 0), which may be C, or null: +0.
struct Target {
  float* c = nullptr;
  std::int64_t stride = 0;
  std::int64_t rows = 0, columns = 0;
  const float* addend = nullptr;
  std::int64_t addend_stride = 0;
};

/// One implementation. All give the same bits.
struct Kernels {
  const char* name;  ///< "AMX"
  // The numbers, or those of the transpose, in blocks of A, or of B: of 32 columns each, at to[0],
  // to[step] and so on. They are read row after row, as they come from memory.
  void (*rows)(const Piece&, Block* to, std::int64_t step);
  void (*rows_of_transpose)(const Piece&, Block* to, std::int64_t step);
  void (*pairs)(const Piece&, Block* to, std::int64_t step);
  void (*pairs_of_transpose)(const Piece&, Block* to, std::int64_t step);
  /// Target = addend + the sum over t < count of a[t] b[t], by the law.
  void (*multiply)(const Block* a, const Block* b, std::int64_t count, const Target&);
  /// A thread multiplies between the two; `end` is given what `begin` returned.
  unsigned (*begin)();
  void (*end)(unsigned);
};

/// Of float32 multiplications and additions.
const Kernels& portable_kernels();
/// By AMX; null where the processor or the system has none, or ESPALIER_NO_AMX=1 is in the
/// environment.
const Kernels* amx_kernels();
/// The faster of those there are.
inline const Kernels& best_kernels() {
  const Kernels* const amx = amx_kernels();
  return amx != nullptr ? *amx : portable_kernels();
}

/// Between begin and end.
class Multiplying {
 public:
  explicit Multiplying(const Kernels& kernels) : end_(kernels.end), before_(kernels.begin()) {}
  ~Multiplying() { end_(before_); }
  Multiplying(const Multiplying&) = delete;
  Multiplying& operator=(const Multiplying&) = delete;

 private:
  void (*end_)(unsigned);
  unsigned before_;
};

/// A factor as the law has it.
inline std::uint16_t rounded(float x) {
  const auto bits = bit_cast<std::uint32_t>(x);
  return (bits & 0x7f800000u) == 0 ? static_cast<std::uint16_t>(bits >> 16 & 0x8000u) : to_bfloat16(x).bits;
}

}  // namespace espalier::bf16
