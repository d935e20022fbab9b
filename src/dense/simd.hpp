// One vector register of the machine and its fused multiply-add, under one name on every
// architecture.
//
// The law of width: no result depends on how many lanes a register has, nor on what instructions
// the machine has besides. Lanes do not mix, but in sums over a number of lanes that is a constant
// (dot_products.hpp). The build never contracts a * b + c by itself (design 4.1): a kernel that
// wants the fused operation asks for it here, and then for all elements alike, those that fill no
// register too. tests/dense/width_test compiles what includes this for several widths.
#pragma once

#if defined(__AVX2__) || defined(__AVX512F__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace espalier {

#if defined(ESPALIER_VECTOR_BYTES)  // a test compiles other widths than the machine's
inline constexpr int kVectorBytes = ESPALIER_VECTOR_BYTES;
#elif defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr int kVectorRegisters = 32;
#else
inline constexpr int kVectorRegisters = 16;
#endif

template <class T>
inline constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

typedef float FloatVector __attribute__((vector_size(kVectorBytes)));
typedef double DoubleVector __attribute__((vector_size(kVectorBytes)));

template <class T>
struct VectorOf;
template <>
struct VectorOf<float> {
  using type = FloatVector;
};
template <>
struct VectorOf<double> {
  using type = DoubleVector;
};
template <class T>
using Vector = typename VectorOf<T>::type;

template <class T>
Vector<T> vector_at(const T* from) {
  Vector<T> loaded;
  __builtin_memcpy(&loaded, from, sizeof loaded);
  return loaded;
}

template <class T>
void put_vector(const Vector<T>& vector, T* to) {
  __builtin_memcpy(to, &vector, sizeof vector);
}

/// a * b + c, rounded once: by the machine's instruction, or else by the library, some fifty
/// times slower.
template <class T>
T fused_multiply_add(T a, T b, T c) {
  if constexpr (sizeof(T) == sizeof(float))
    return __builtin_fmaf(a, b, c);
  else
    return __builtin_fma(a, b, c);
}

template <class T>
Vector<T> fused_lane_by_lane(Vector<T> a, Vector<T> b, Vector<T> c) {
  for (int lane = 0; lane < kLanes<T>; ++lane) c[lane] = fused_multiply_add<T>(a[lane], b[lane], c[lane]);
  return c;
}

inline FloatVector fused_multiply_add(FloatVector a, FloatVector b, FloatVector c) {
#if defined(__AVX512F__) && !defined(ESPALIER_VECTOR_BYTES)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__AVX2__) && defined(__FMA__) && !defined(ESPALIER_VECTOR_BYTES)
  return _mm256_fmadd_ps(a, b, c);
#elif defined(__aarch64__) && !defined(ESPALIER_VECTOR_BYTES)
  return vfmaq_f32(c, a, b);
#else
  return fused_lane_by_lane<float>(a, b, c);
#endif
}

inline DoubleVector fused_multiply_add(DoubleVector a, DoubleVector b, DoubleVector c) {
#if defined(__AVX512F__) && !defined(ESPALIER_VECTOR_BYTES)
  return _mm512_fmadd_pd(a, b, c);
#elif defined(__AVX2__) && defined(__FMA__) && !defined(ESPALIER_VECTOR_BYTES)
  return _mm256_fmadd_pd(a, b, c);
#elif defined(__aarch64__) && !defined(ESPALIER_VECTOR_BYTES)
  return vfmaq_f64(c, a, b);
#else
  return fused_lane_by_lane<double>(a, b, c);
#endif
}

}  // namespace espalier
