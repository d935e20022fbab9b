// The law of bf16_kernels.hpp by AMX: TDPBF16PS multiplies a tile of 16 rows and 32 terms by one of
// 32 terms and 16 columns. On processors and systems without it there are no such kernels; a
// program that was compiled for any x86-64 has them and asks when it runs.
//
// A block of A is two tiles, one below the other, a block of B two beside each other, and 32 x 32
// elements of C four, which stay in registers while the blocks of a sum pass by. C begins in them
// as the addend. Elements beyond the edge of C are computed in a corner of our own.
//
// Instructions on tiles are written as assembly: GCC's own words for them do not say that they read
// memory. Blocks are made in registers of AVX-512, of which AMX's processors have bfloat16's too:
// VCVTNE2PS2BF16 rounds as the law says.
#include "bf16_kernels.hpp"

#include "espalier/base/process.hpp"

#if defined(__x86_64__) && defined(__linux__)

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#define ESPALIER_AMX __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16,amx-tile,amx-bf16")))
#define ESPALIER_AMX_INLINE ESPALIER_AMX __attribute__((always_inline)) inline

namespace espalier::bf16 {
namespace {

// ---- what the machine has ----

bool has_amx() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_OSXSAVE) == 0) return false;
  constexpr unsigned kTiles = 1u << 24, kBf16OfTiles = 1u << 22, kBf16OfVectors = 1u << 5;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  constexpr unsigned kVectors = bit_AVX512F | bit_AVX512BW | bit_AVX512VL;
  if ((b & kVectors) != kVectors || (d & (kTiles | kBf16OfTiles)) != (kTiles | kBf16OfTiles)) return false;
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d) == 0 || (a & kBf16OfVectors) == 0) return false;
  // What the system keeps of a thread: registers of AVX-512 and tiles.
  unsigned kept = 0, upper = 0;
  asm volatile("xgetbv" : "=a"(kept), "=d"(upper) : "c"(0));
  constexpr unsigned kNeeded = 0x600e6;
  return (kept & kNeeded) == kNeeded;
}

/// Asks Linux for the room that tiles take in the state of a thread; once, for all threads.
bool may_use_tiles() {
  constexpr long kAskForState = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kAskForState, kTileData) == 0;
}

// ---- blocks ----

typedef float SixteenFloats __attribute__((vector_size(64)));
typedef std::int32_t SixteenPairs __attribute__((vector_size(64)));
typedef std::int16_t ThirtyTwo __attribute__((vector_size(64)));

ESPALIER_AMX_INLINE __mmask16 first_of_16(std::int64_t count) {
  return static_cast<__mmask16>((1u << std::clamp<std::int64_t>(count, 0, 16)) - 1);
}

/// Sixteen of `left` numbers of a row, zeros beyond the edge.
ESPALIER_AMX_INLINE SixteenFloats sixteen_at(const float* row, std::int64_t left) {
  return left >= 16 ? _mm512_loadu_ps(row) : _mm512_maskz_loadu_ps(first_of_16(left), row);
}

/// `low` and, behind them, `high`.
ESPALIER_AMX_INLINE SixteenPairs round_32(SixteenFloats low, SixteenFloats high) {
  const __m512bh rounded = _mm512_cvtne2ps_pbh(high, low);
  SixteenPairs pairs;
  __builtin_memcpy(&pairs, &rounded, sizeof pairs);
  return pairs;
}

/// Sixteen of `even` and of `odd` in turn.
ESPALIER_AMX_INLINE SixteenPairs round_in_pairs(SixteenFloats even, SixteenFloats odd) {
  const auto apart = reinterpret_cast<ThirtyTwo>(round_32(even, odd));
  return reinterpret_cast<SixteenPairs>(__builtin_shufflevector(apart, apart, 0, 16, 1, 17, 2, 18, 3, 19, 4,
                                                                20, 5, 21, 6, 22, 7, 23, 8, 24, 9, 25, 10, 26,
                                                                11, 27, 12, 28, 13, 29, 14, 30, 15, 31));
}

/// Exchanges, of the 2 x 2 quarters of x over y, those that are not on the diagonal: of every 2
/// kStep columns of x the second kStep, of y the first.
template <int kStep>
ESPALIER_AMX_INLINE void exchange(SixteenPairs& x, SixteenPairs& y) {
#define ESPALIER_OF_X(i) ((i)&kStep ? 16 + (i)-kStep : (i))
#define ESPALIER_OF_Y(i) ((i)&kStep ? 16 + (i) : (i) + kStep)
#define ESPALIER_ALL(OF)                                                                                \
  OF(0), OF(1), OF(2), OF(3), OF(4), OF(5), OF(6), OF(7), OF(8), OF(9), OF(10), OF(11), OF(12), OF(13), \
      OF(14), OF(15)
  const auto below = __builtin_shufflevector(x, y, ESPALIER_ALL(ESPALIER_OF_Y));
  x = __builtin_shufflevector(x, y, ESPALIER_ALL(ESPALIER_OF_X));
  y = below;
#undef ESPALIER_ALL
#undef ESPALIER_OF_Y
#undef ESPALIER_OF_X
}

template <int kStep>
ESPALIER_AMX_INLINE void exchange_all(SixteenPairs (&rows)[16]) {
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i)
    if ((i & kStep) == 0) exchange<kStep>(rows[i], rows[i + kStep]);
}

ESPALIER_AMX_INLINE void transpose_pairs(SixteenPairs (&rows)[16]) {
  exchange_all<8>(rows);
  exchange_all<4>(rows);
  exchange_all<2>(rows);
  exchange_all<1>(rows);
}

ESPALIER_AMX_INLINE void put_pairs(const SixteenPairs& pairs, std::uint16_t* to) {
  __builtin_memcpy(to, &pairs, sizeof pairs);
}

ESPALIER_AMX_INLINE SixteenPairs pairs_at(const std::uint16_t* from) {
  SixteenPairs pairs;
  __builtin_memcpy(&pairs, from, sizeof pairs);
  return pairs;
}

ESPALIER_AMX void round_rows_by_vectors(const Piece& from, Block* to, std::int64_t step) {
  for (std::int64_t i = 0; i < kBlock; ++i) {
    const float* const row = from.data + i * from.stride;
    std::uint16_t* numbers = to->numbers + i * kBlock;
    for (std::int64_t left = i < from.rows ? from.columns : 0, k = 0; k < from.columns;
         k += kBlock, left -= kBlock, numbers += step * kBlock * kBlock)
      put_pairs(left > 0 ? round_32(sixteen_at(row + k, left), sixteen_at(row + k + 16, left - 16))
                         : SixteenPairs{},
                numbers);
  }
}

ESPALIER_AMX void round_pairs_by_vectors(const Piece& from, Block* to, std::int64_t step) {
  for (std::int64_t p = 0; p < kBlock / 2; ++p) {
    const float *const even = from.data + 2 * p * from.stride, *const odd = even + from.stride;
    const bool any = 2 * p < from.rows, both = 2 * p + 1 < from.rows;
    std::uint16_t* numbers = to->numbers + p * (2 * kBlock);
    for (std::int64_t j = 0; j < from.columns; j += kBlock, numbers += step * kBlock * kBlock)
      for (std::int64_t k = j; k < j + kBlock; k += 16) {
        const std::int64_t left = from.columns - k;
        put_pairs(any ? round_in_pairs(sixteen_at(even + k, left),
                                       both ? sixteen_at(odd + k, left) : SixteenFloats{})
                      : SixteenPairs{},
                  numbers + 2 * (k - j));
      }
  }
}

/// Of two halves of a block of pairs, of which vector i stands at kFrom i, each is transposed, and
/// its vector i put at kTo i. kFromSecond, kToSecond: where the second half begins.
template <int kFrom, int kFromSecond, int kTo, int kToSecond>
ESPALIER_AMX_INLINE void transpose_halves(Block& block) {
  SixteenPairs first[16], second[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    first[i] = pairs_at(block.numbers + kFrom * i);
    second[i] = pairs_at(block.numbers + kFromSecond + kFrom * i);
  }
  transpose_pairs(first);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) put_pairs(first[i], block.numbers + kTo * i);
  transpose_pairs(second);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) put_pairs(second[i], block.numbers + kToSecond + kTo * i);
}

ESPALIER_AMX void round_rows_of_transpose_by_vectors(const Piece& from, Block* to, std::int64_t step) {
  round_pairs_by_vectors(from, to, step);
  for (std::int64_t j = 0; j < from.columns; j += kBlock, to += step)
    transpose_halves<2 * kBlock, kBlock, kBlock, 16 * kBlock>(*to);
}

ESPALIER_AMX void round_pairs_of_transpose_by_vectors(const Piece& from, Block* to, std::int64_t step) {
  round_rows_by_vectors(from, to, step);
  for (std::int64_t j = 0; j < from.columns; j += kBlock, to += step)
    transpose_halves<kBlock, 16 * kBlock, 2 * kBlock, kBlock>(*to);
}

// ---- products ----

/// What LDTILECFG reads: all eight tiles have 16 rows of 64 bytes.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

ESPALIER_AMX unsigned begin_tiles() {
  static constexpr TileShapes kShapes;
  asm volatile("ldtilecfg %0" ::"m"(kShapes));
  return 0;
}

ESPALIER_AMX void end_tiles(unsigned) {
  asm volatile("tilerelease");
}

#define ESPALIER_ZERO(tile) asm volatile("tilezero %%tmm" #tile ::)
#define ESPALIER_LOAD(tile, from, row_bytes) \
  asm volatile("tileloadd (%0,%1,1), %%tmm" #tile ::"r"(from), "r"(row_bytes) : "memory")
#define ESPALIER_STORE(tile, to, row_bytes) \
  asm volatile("tilestored %%tmm" #tile ", (%0,%1,1)" ::"r"(to), "r"(row_bytes) : "memory")
#define ESPALIER_MULTIPLY(sum, a, b) asm volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #sum ::)

/// All 32 x 32 elements.
ESPALIER_AMX void multiply_whole(const Block* a, const Block* b, std::int64_t count, const Target& to) {
  if (to.addend == nullptr) {
    ESPALIER_ZERO(0);
    ESPALIER_ZERO(1);
    ESPALIER_ZERO(2);
    ESPALIER_ZERO(3);
  } else {
    const std::int64_t bytes = to.addend_stride * 4;
    const float* const below = to.addend + 16 * to.addend_stride;
    ESPALIER_LOAD(0, to.addend, bytes);
    ESPALIER_LOAD(1, to.addend + 16, bytes);
    ESPALIER_LOAD(2, below, bytes);
    ESPALIER_LOAD(3, below + 16, bytes);
  }
  for (std::int64_t i = 0; i < kBlock; ++i) {  // two lines or three
    __builtin_prefetch(to.c + i * to.stride, 1);
    __builtin_prefetch(to.c + i * to.stride + 16, 1);
  }
  constexpr std::int64_t kRowOfA = 2 * kBlock, kRowOfB = 4 * kBlock;  // bytes
  for (std::int64_t t = 0; t < count; ++t) {
    const std::uint16_t *const rows = a[t].numbers, *const pairs = b[t].numbers;
    ESPALIER_LOAD(4, rows, kRowOfA);
    ESPALIER_LOAD(6, pairs, kRowOfB);
    ESPALIER_MULTIPLY(0, 4, 6);
    ESPALIER_LOAD(7, pairs + kBlock, kRowOfB);
    ESPALIER_MULTIPLY(1, 4, 7);
    ESPALIER_LOAD(5, rows + 16 * kBlock, kRowOfA);
    ESPALIER_MULTIPLY(2, 5, 6);
    ESPALIER_MULTIPLY(3, 5, 7);
  }
  const std::int64_t bytes = to.stride * 4;
  float* const below = to.c + 16 * to.stride;
  ESPALIER_STORE(0, to.c, bytes);
  ESPALIER_STORE(1, to.c + 16, bytes);
  ESPALIER_STORE(2, below, bytes);
  ESPALIER_STORE(3, below + 16, bytes);
}

#undef ESPALIER_MULTIPLY
#undef ESPALIER_STORE
#undef ESPALIER_LOAD
#undef ESPALIER_ZERO

/// Some of them, in the corner of 32 x 32.
ESPALIER_AMX void multiply_edge(const Block* a, const Block* b, std::int64_t count, const Target& to) {
  alignas(64) float corner[kBlock * kBlock];
  if (to.addend != nullptr) {
    std::fill_n(corner, kBlock * kBlock, 0.0f);
    for (std::int64_t i = 0; i < to.rows; ++i)
      std::copy_n(to.addend + i * to.addend_stride, to.columns, corner + i * kBlock);
  }
  multiply_whole(a, b, count,
                 {corner, kBlock, kBlock, kBlock, to.addend != nullptr ? corner : nullptr, kBlock});
  for (std::int64_t i = 0; i < to.rows; ++i)
    std::copy_n(corner + i * kBlock, to.columns, to.c + i * to.stride);
}

void multiply_by_tiles(const Block* a, const Block* b, std::int64_t count, const Target& to) {
  const bool whole = to.rows == kBlock && to.columns == kBlock;
  (whole ? multiply_whole : multiply_edge)(a, b, count, to);
}

}  // namespace

const Kernels* amx_kernels() {
  static constexpr Kernels kKernels = {"AMX",
                                       round_rows_by_vectors,
                                       round_rows_of_transpose_by_vectors,
                                       round_pairs_by_vectors,
                                       round_pairs_of_transpose_by_vectors,
                                       multiply_by_tiles,
                                       begin_tiles,
                                       end_tiles};
  static const bool usable = !is_set("ESPALIER_NO_AMX") && has_amx() && may_use_tiles();
  return usable ? &kKernels : nullptr;
}

}  // namespace espalier::bf16

#undef ESPALIER_AMX_INLINE
#undef ESPALIER_AMX

#else

namespace espalier::bf16 {

const Kernels* amx_kernels() {
  return nullptr;
}

}  // namespace espalier::bf16

#endif
