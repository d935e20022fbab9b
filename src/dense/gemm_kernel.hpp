// The kernel under the products of dense matrices, in the shape of Goto and van de Geijn (Anatomy
// of high-performance matrix multiplication, TOMS 2008):
//
//   - B is packed into panels: kPanel columns wide, at most kDepth rows deep, zero-padded to
//     whole vectors.
//   - The kernel keeps an R x kPanel tile of C in registers and adds a_ik b_k for k in
//     ascending order.
//
// A panel is contiguous in the order in which the kernel reads it and small enough (32 KiB at most)
// to stay in the first-level cache while rows of A pass by.
//
// Every element of C is therefore the same chain of fused multiply-adds, restarted every kDepth
// terms and summed in order, whatever tile, row count or thread it belongs to. That is the law of
// gemm.hpp. BLAS cannot give it: OpenBLAS 0.3.21 rounds differently at different positions of a
// row within its tiles (equal rows of A give unequal rows of C within one call), and again for
// small matrices.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "espalier/dense/matrix.hpp"
#include "simd.hpp"

namespace espalier::gemm_kernel {

inline constexpr int kPanelVectors = 2;
inline constexpr std::int64_t kDepth = 256;
/// The tile, the panel's vectors and one broadcast fill the registers.
inline constexpr int kTileRows = kVectorRegisters == 32 ? 12 : 6;
template <class T>
inline constexpr std::int64_t kPanel = kPanelVectors* kLanes<T>;

/// B [k, n] in packed panels: depth block after depth block, in it panel after panel, in it row
/// after row.
template <class T>
class PackedMatrix {
 public:
  /// Packs B; reuses the memory of what was packed before. B, which may be longer than a cache, is
  /// read in the order in which it lies.
  void pack(ConstMatrixView<T> b) {
    set_shape(b.rows, b.columns);
    for (std::int64_t i = 0; i < k_; ++i)
      for (std::int64_t j0 = 0; j0 < n_; j0 += kPanel<T>) {
        T* out = row_of_panel(i, j0);
        if (n_ - j0 >= kPanel<T>) {
          __builtin_memcpy(out, b.row(i) + j0, sizeof(T) * kPanel<T>);  // of constant length
        } else {
          std::copy_n(b.row(i) + j0, n_ - j0, out);
          std::fill(out + n_ - j0, out + panel_width(j0), T{0});
        }
      }
  }
  /// Packs the transpose of `b`, panel after panel.
  void pack_transpose(ConstMatrixView<T> b) {
    set_shape(b.columns, b.rows);
    for (std::int64_t j0 = 0; j0 < n_; j0 += kPanel<T>)
      for (std::int64_t i = 0; i < k_; ++i) {
        T* out = row_of_panel(i, j0);
        for (std::int64_t w = 0; w < panel_width(j0); ++w) out[w] = j0 + w < n_ ? b(j0 + w, i) : T{0};
      }
  }
  /// Allocates what a matrix [k, n] needs.
  void reserve(std::int64_t k, std::int64_t n) { set_shape(k, n); }
  std::int64_t k() const { return k_; }
  std::int64_t n() const { return n_; }
  /// Rows of the depth block that begins at k0.
  std::int64_t depth(std::int64_t k0) const { return std::min(kDepth, k_ - k0); }
  const T* panel(std::int64_t k0, std::int64_t j0) const {
    return data_.data() + k0 * padded_n_ + depth(k0) * j0;
  }

 private:
  void set_shape(std::int64_t k, std::int64_t n) {
    k_ = k;
    n_ = n;
    padded_n_ = (n + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
    data_.resize(k * padded_n_);
  }
  /// The width of the panel that begins at column j0, padding included.
  std::int64_t panel_width(std::int64_t j0) const { return std::min(kPanel<T>, padded_n_ - j0); }
  /// Where the entries of row i in that panel stand.
  T* row_of_panel(std::int64_t i, std::int64_t j0) {
    const std::int64_t k0 = i - i % kDepth;
    return data_.data() + k0 * padded_n_ + depth(k0) * j0 + (i - k0) * panel_width(j0);
  }

  std::int64_t k_ = 0, n_ = 0, padded_n_ = 0;
  Buffer<T> data_;
};

/// What a tile's products are added to: rows `stride` elements apart that begin at `data`, C itself
/// or, with stride 0, one row for all; or null, nothing.
template <class T>
struct Addend {
  const T* data = nullptr;
  std::int64_t stride = 0;

  const T* at(std::int64_t row, std::int64_t column) const {
    return data == nullptr ? nullptr : data + row * stride + column;
  }
};

/// c = addend + sum, or c = sum without one: the first `width` elements of a vector.
template <class T>
void store(const Vector<T>& sum, const T* addend, T* c, std::int64_t width) {
  if (width >= kLanes<T>) {
    Vector<T> old{};
    if (addend != nullptr) __builtin_memcpy(&old, addend, sizeof old);
    const Vector<T> result = addend != nullptr ? old + sum : sum;
    __builtin_memcpy(c, &result, sizeof result);
  } else {
    for (int j = 0; j < width; ++j) c[j] = addend != nullptr ? addend[j] + sum[j] : sum[j];
  }
}

/// C tile [R, width] = addend + A tile [R, depth] panel [depth, V vectors]. Entry (r, k) of A's
/// tile is a[r * lda + k], or a[k * R + r] if it is packed.
template <class T, int R, int V, bool kPackedA>
void multiply_tile(std::int64_t depth, const T* a, std::int64_t lda, const T* panel, Addend<T> addend, T* c,
                   std::int64_t ldc, std::int64_t width) {
  Vector<T> sum[R][V];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      sum[r][v] = Vector<T>{};  // one by one: a register each
      __builtin_prefetch(c + r * ldc + v * kLanes<T>, 1);
    }
  for (std::int64_t k = 0; k < depth; ++k, panel += V * kLanes<T>) {
    Vector<T> b[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) __builtin_memcpy(&b[v], panel + v * kLanes<T>, sizeof b[v]);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Vector<T> broadcast = (kPackedA ? a[k * R + r] : a[r * lda + k]) - Vector<T>{};
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[r][v] = fused_multiply_add(broadcast, b[v], sum[r][v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v)
      if (width > v * kLanes<T>)
        store<T>(sum[r][v], addend.at(r, v * kLanes<T>), c + r * ldc + v * kLanes<T>, width - v * kLanes<T>);
}

template <class T>
using TileKernel = void (*)(std::int64_t, const T*, std::int64_t, const T*, Addend<T>, T*, std::int64_t,
                            std::int64_t);

/// The kernel for a tile of 1 .. kTileRows rows and at most V vectors.
template <class T, int V, bool kPackedA>
TileKernel<T> tile_kernel(std::int64_t rows) {
  static constexpr auto kKernels = []<int... R>(std::integer_sequence<int, R...>) {
    return std::array<TileKernel<T>, sizeof...(R)>{multiply_tile<T, R + 1, V, kPackedA>...};
  }
  (std::make_integer_sequence<int, kTileRows>{});
  return kKernels[rows - 1];
}

/// C tile [rows, width] = addend + A tile [rows, depth] panel, of any size up to
/// kTileRows x kPanel.
template <class T, bool kPackedA>
void multiply_any_tile(std::int64_t rows, std::int64_t depth, const T* a, std::int64_t lda, const T* panel,
                       Addend<T> addend, T* c, std::int64_t ldc, std::int64_t width) {
  const auto kernel =
      width > kLanes<T> ? tile_kernel<T, kPanelVectors, kPackedA>(rows) : tile_kernel<T, 1, kPackedA>(rows);
  kernel(depth, a, lda, panel, addend, c, ldc, width);
}

}  // namespace espalier::gemm_kernel
