// The products of gemm.hpp in bfloat16, by the law of bf16_kernels.hpp and any implementation of
// it. The two laws of gemm.hpp hold: the order of a sum is that of its terms, whatever rows stand
// beside its own.
#pragma once

#include "bf16_kernels.hpp"
#include "espalier/dense/matrix.hpp"
#include "gemm_kernel.hpp"

namespace espalier::bf16 {

/// C = addend + A B, or A B^T. A [m, k] with k > 0, B [k, n] or [n, k], C [m, n].
void multiply(const Kernels&, const Cpu&, ConstMatrixView<float> a, ConstMatrixView<float> b,
              bool transpose_b, gemm_kernel::Addend<float> addend, MatrixView<float> c);

/// Rows of A and B whose blocks are made at a time in A^T B; a multiple of a block's.
inline constexpr std::int64_t kTermsAtOnce = 256;

/// C (+)= A^T B over some rows of A and B and some columns of A, which are rows of C. `add`: C is
/// what is added to. Between begin and end of a thread.
void add_transposed_product(const Kernels&, ConstMatrixView<float> a, ConstMatrixView<float> b,
                            std::int64_t begin, std::int64_t end, std::int64_t first, std::int64_t width,
                            MatrixView<float> c, bool add);

}  // namespace espalier::bf16
