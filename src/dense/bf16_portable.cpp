// The law of bf16_kernels.hpp by float32 multiplications and additions, for processors without AMX:
// half the bytes of packed factors, and twice the time of float32's products.
//
// Where a register is multiplied and added in one instruction, MXCSR has it flush numbers that are
// too small. Elsewhere a step is computed in double, which has room for it: the product of two
// bfloat16 numbers has 16 bits and is exact, and a sum that is not exact in 53 bits is one of
// numbers so far apart that the smaller cannot decide how the larger is rounded to 24.
#include "bf16_kernels.hpp"

#include <algorithm>

#include "simd.hpp"

#if !defined(ESPALIER_VECTOR_BYTES) && (defined(__AVX512F__) || (defined(__AVX2__) && defined(__FMA__)))
#define ESPALIER_MXCSR_FLUSHES
#endif

namespace espalier::bf16 {
namespace {

// ---- blocks ----

/// Where entry (i, k) of A stands in its block, and entry (k, j) of B.
std::int64_t place_in_rows(std::int64_t i, std::int64_t k) {
  return i * kBlock + k;
}
std::int64_t place_in_pairs(std::int64_t k, std::int64_t j) {
  return k / 2 * (2 * kBlock) + 2 * j + k % 2;
}

/// Number (r, q) of 32 x 32 stands at place(r, q).
template <class Place>
void round_blocks(const Piece& from, Block* to, std::int64_t step, const Place& place) {
  for (std::int64_t first = 0; first < from.columns; first += kBlock, to += step)
    for (std::int64_t r = 0; r < kBlock; ++r) {
      float numbers[kBlock] = {};
      if (r < from.rows)
        std::copy_n(from.data + r * from.stride + first, std::min(kBlock, from.columns - first), numbers);
      std::uint16_t row[kBlock];
      for (std::int64_t q = 0; q < kBlock; ++q) row[q] = rounded(numbers[q]);
      for (std::int64_t q = 0; q < kBlock; ++q) to->numbers[place(r, q)] = row[q];
    }
}

void round_rows(const Piece& from, Block* to, std::int64_t step) {
  round_blocks(from, to, step, place_in_rows);
}
void round_rows_of_transpose(const Piece& from, Block* to, std::int64_t step) {
  round_blocks(from, to, step, [](auto r, auto q) { return place_in_rows(q, r); });
}
void round_pairs(const Piece& from, Block* to, std::int64_t step) {
  round_blocks(from, to, step, place_in_pairs);
}
void round_pairs_of_transpose(const Piece& from, Block* to, std::int64_t step) {
  round_blocks(from, to, step, [](auto r, auto q) { return place_in_pairs(q, r); });
}

// ---- numbers too small to be normal ----

#if defined(ESPALIER_MXCSR_FLUSHES)

unsigned begin_flushing() {
  constexpr unsigned kInputs = 0x40, kResults = 0x8000;
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | kInputs | kResults);
  return before;
}

void end_flushing(unsigned before) {
  _mm_setcsr(before);
}

FloatVector flushed_step(FloatVector a, FloatVector b, FloatVector c) {
  return fused_multiply_add(a, b, c);
}

FloatVector flushed_sum(FloatVector a, FloatVector b) {
  return a + b;
}

#else

unsigned begin_flushing() {
  return 0;
}
void end_flushing(unsigned) {}

/// Rounded to float32: 0 of its sign if what 24 bits make of it is below the least normal number.
float flushed(double x) {
  constexpr double kTooSmall = 0x1p-126 - 0x1p-151;  // which is rounded up
  return __builtin_fabs(x) < kTooSmall ? static_cast<float>(__builtin_copysign(0.0, x))
                                       : static_cast<float>(x);
}
float flushed_input(float x) {
  return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0.0f, x) : x;
}

FloatVector flushed_step(FloatVector a, FloatVector b, FloatVector c) {
  for (int lane = 0; lane < kLanes<float>; ++lane)
    c[lane] =
        flushed(static_cast<double>(a[lane]) * static_cast<double>(b[lane]) + static_cast<double>(c[lane]));
  return c;
}

FloatVector flushed_sum(FloatVector a, FloatVector b) {
  for (int lane = 0; lane < kLanes<float>; ++lane)
    a[lane] = flushed(static_cast<double>(flushed_input(a[lane])) + static_cast<double>(b[lane]));
  return a;
}

#endif

// ---- products ----

typedef std::uint32_t BitVector __attribute__((vector_size(kVectorBytes)));

/// Rows of a tile: their two chains, of a vector of columns each, stay in registers.
constexpr int kTile = kVectorRegisters == 32 ? 8 : 4;
static_assert(kBlock % kTile == 0 && kBlock % kLanes<float> == 0);

/// Sums of a tile, from row i of the block on: vectors of sums[kBlock][kBlock] += those of one
/// block of A and one of B.
void add_block(const Block& a, const Block& b, std::int64_t i, std::int64_t j, float* sums) {
  float factors[kTile][kBlock];
  for (int r = 0; r < kTile; ++r)
    for (std::int64_t k = 0; k < kBlock; ++k)
      factors[r][k] = to_float(BFloat16{a.numbers[(i + r) * kBlock + k]});
  FloatVector even[kTile], odd[kTile];
#pragma GCC unroll 8
  for (int r = 0; r < kTile; ++r) even[r] = odd[r] = FloatVector{};
  for (std::int64_t p = 0; p < kBlock / 2; ++p) {
    BitVector pairs;
    __builtin_memcpy(&pairs, b.numbers + place_in_pairs(2 * p, j), sizeof pairs);
    const auto of_even = reinterpret_cast<FloatVector>(pairs << 16),
               of_odd = reinterpret_cast<FloatVector>(pairs & 0xffff0000u);
#pragma GCC unroll 8
    for (int r = 0; r < kTile; ++r) {
      even[r] = flushed_step(factors[r][2 * p] - FloatVector{}, of_even, even[r]);
      odd[r] = flushed_step(factors[r][2 * p + 1] - FloatVector{}, of_odd, odd[r]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kTile; ++r) {
    float* const sum = sums + (i + r) * kBlock + j;
    put_vector<float>(flushed_sum(vector_at<float>(sum), flushed_sum(even[r], odd[r])), sum);
  }
}

void multiply_blocks(const Block* a, const Block* b, std::int64_t count, const Target& to) {
  alignas(64) float sums[kBlock * kBlock] = {};
  if (to.addend != nullptr)
    for (std::int64_t i = 0; i < to.rows; ++i)
      for (std::int64_t j = 0; j < to.columns; ++j)
        sums[i * kBlock + j] = to.addend[i * to.addend_stride + j];
  for (std::int64_t j = 0; j < to.columns; j += kLanes<float>)
    for (std::int64_t i = 0; i < to.rows; i += kTile)
      for (std::int64_t t = 0; t < count; ++t) add_block(a[t], b[t], i, j, sums);
  for (std::int64_t i = 0; i < to.rows; ++i)
    for (std::int64_t j = 0; j < to.columns; ++j) to.c[i * to.stride + j] = sums[i * kBlock + j];
}

}  // namespace

const Kernels& portable_kernels() {
  static constexpr Kernels kKernels = {"float32",
                                       round_rows,
                                       round_rows_of_transpose,
                                       round_pairs,
                                       round_pairs_of_transpose,
                                       multiply_blocks,
                                       begin_flushing,
                                       end_flushing};
  return kKernels;
}

}  // namespace espalier::bf16

#undef ESPALIER_MXCSR_FLUSHES
