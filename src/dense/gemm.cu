// By cuBLAS, which reads matrices by columns: the memory of a row-major matrix is that of
// its transpose. So C = A B is asked for as C^T = B^T A^T, with the factors exchanged and no
// data moved.
#include "espalier/dense/gemm.hpp"

#include <cublasLt.h>
#include <cublas_v2.h>

#include <bit>
#include <limits>

#include "device_rows.hpp"
#include "espalier/base/device_array.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {
namespace {

/// A factor as cuBLAS sees it: the transpose of a matrix in memory, or with kTransposed the matrix.
struct Factor {
  const float* data;
  std::int64_t leading;  ///< columns of the matrix in memory
  cublasOperation_t op;
};

cublasComputeType_t compute_type(Precision precision) {
  switch (precision) {
    case Precision::kTf32:
      return CUBLAS_COMPUTE_32F_FAST_TF32;
    case Precision::kBf16:
      return CUBLAS_COMPUTE_32F_FAST_16BF;
    default:
      return CUBLAS_COMPUTE_32F;
  }
}

/// cuBLAS counts in int, and asks for leading dimensions of at least 1.
int to_int(std::int64_t size) {
  ESPALIER_CHECK(size <= std::numeric_limits<int>::max(), "a matrix of {} rows or columns", size);
  return static_cast<int>(size);
}

/// C (+)= A B, where A has `depth` columns.
void multiply(const Cuda& cuda, const char* name, const Factor& a, const Factor& b, std::int64_t depth,
              MatrixView<float, Cuda> c, Update update) {
  if (c.rows == 0 || c.columns == 0) return;
  if (depth == 0) {
    if (update == Update::kOverwrite)
      fill_bytes(cuda, c.data, 0, static_cast<std::size_t>(c.rows * c.columns) * sizeof(float));
    return;
  }
  const float one = 1, beta = update == Update::kAccumulate ? 1.0f : 0.0f;
  const ProfilerRange range(name);
  const auto status =
      cublasGemmEx(cuda.blas(), b.op, a.op, to_int(c.columns), to_int(c.rows), to_int(depth), &one, b.data,
                   CUDA_R_32F, to_int(b.leading), a.data, CUDA_R_32F, to_int(a.leading), &beta, c.data,
                   CUDA_R_32F, to_int(c.columns), compute_type(cuda.precision()), CUBLAS_GEMM_DEFAULT);
  ESPALIER_CHECK(status == CUBLAS_STATUS_SUCCESS, "cuBLAS answers {} to {}: [{}, {}] of depth {}",
                 static_cast<int>(status), name, c.rows, c.columns, depth);
  cuda.launched(name);
}

void check_blas(cublasStatus_t status, const char* what) {
  ESPALIER_CHECK(status == CUBLAS_STATUS_SUCCESS, "cuBLAS answers {} to {}", static_cast<int>(status), what);
}

/// A descriptor of cublasLt, which is destroyed with it.
template <class Handle, cublasStatus_t (*kDestroy)(Handle)>
struct Described {
  Handle handle = nullptr;
  Described() = default;
  Described(const Described&) = delete;
  Described& operator=(const Described&) = delete;
  ~Described() { kDestroy(handle); }
};
using Layout = Described<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;

/// Of float32, as cuBLAS sees it: by columns.
void describe(Layout& layout, std::int64_t rows, std::int64_t columns) {
  check_blas(cublasLtMatrixLayoutCreate(&layout.handle, CUDA_R_32F, static_cast<std::uint64_t>(rows),
                                        static_cast<std::uint64_t>(columns), rows),
             "cublasLtMatrixLayoutCreate");
}

/// C = row + A B in one pass over C: cublasLt adds the row to what it writes. False where it knows
/// no algorithm.
bool multiply_and_add_row(const Cuda& cuda, const float* row, ConstMatrixView<float, Cuda> a,
                          ConstMatrixView<float, Cuda> b, MatrixView<float, Cuda> c) {
  Described<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> product;
  Described<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> preference;
  Layout left, right, result;
  // A handle of cuBLAS is one, too.
  const auto lt = reinterpret_cast<cublasLtHandle_t>(cuda.blas());
  check_blas(cublasLtMatmulDescCreate(&product.handle, compute_type(cuda.precision()), CUDA_R_32F),
             "cublasLtMatmulDescCreate");
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    check_blas(cublasLtMatmulDescSetAttribute(product.handle, attribute, &value, sizeof value),
               "cublasLtMatmulDescSetAttribute");
  };
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, cublasLtEpilogue_t{CUBLASLT_EPILOGUE_BIAS});
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, row);
  describe(left, b.columns, b.rows);
  describe(right, a.columns, a.rows);
  describe(result, c.columns, c.rows);
  check_blas(cublasLtMatmulPreferenceCreate(&preference.handle), "cublasLtMatmulPreferenceCreate");
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  const auto workspace = cuda.blas_workspace();
  const std::uint64_t bytes_of_workspace = workspace.size();
  check_blas(cublasLtMatmulPreferenceSetAttribute(preference.handle, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                  &bytes_of_workspace, sizeof bytes_of_workspace),
             "cublasLtMatmulPreferenceSetAttribute");
  const auto aligned = [&](cublasLtMatmulPreferenceAttributes_t attribute, const float* data) {
    const std::uint32_t bytes = 1u << std::countr_zero(reinterpret_cast<std::uintptr_t>(data) | 256);
    check_blas(cublasLtMatmulPreferenceSetAttribute(preference.handle, attribute, &bytes, sizeof bytes),
               "cublasLtMatmulPreferenceSetAttribute");
  };
  aligned(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, b.data);
  aligned(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, a.data);
  aligned(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, c.data);
  aligned(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, c.data);
  const auto answer =
      cublasLtMatmulAlgoGetHeuristic(lt, product.handle, left.handle, right.handle, result.handle,
                                     result.handle, preference.handle, 1, &best, &found);
  if (answer == CUBLAS_STATUS_NOT_SUPPORTED || found == 0) return false;
  check_blas(answer, "cublasLtMatmulAlgoGetHeuristic");
  const float one = 1, zero = 0;
  const ProfilerRange range("gemm_plus_row");
  check_blas(cublasLtMatmul(lt, product.handle, &one, b.data, left.handle, a.data, right.handle, &zero,
                            c.data, result.handle, c.data, result.handle, &best.algo, workspace.data(),
                            workspace.size(), cuda.stream()),
             "cublasLtMatmul");
  cuda.launched("gemm_plus_row");
  return true;
}

template <int kCount>
void fill_packs(const Cuda& cuda, const float* row, MatrixView<float, Cuda> c) {
  const std::int64_t packs = c.columns / kCount;
  const Divisor by_packs(packs);
  for_each(cuda, "fill_rows", c.rows * packs, [=] __device__(std::int64_t at) {
    const std::int64_t pack = at - by_packs.quotient(at) * packs;
    device_rows::store(c.data + at * kCount, device_rows::load<kCount>(row + pack * kCount));
  });
}

void check_product(ConstMatrixView<float, Cuda> a, ConstMatrixView<float, Cuda> b,
                   MatrixView<float, Cuda> c) {
  ESPALIER_CHECK(a.columns == b.rows && c.rows == a.rows && c.columns == b.columns,
                 "[{}, {}] [{}, {}] -> [{}, {}]", a.rows, a.columns, b.rows, b.columns, c.rows, c.columns);
}

}  // namespace

template <class T>
void gemm(const Cuda& cuda, ConstMatrixView<T, Cuda> a, ConstMatrixView<T, Cuda> b, MatrixView<T, Cuda> c,
          Update update) {
  check_product(a, b, c);
  multiply(cuda, "gemm", {a.data, a.columns, CUBLAS_OP_N}, {b.data, b.columns, CUBLAS_OP_N}, a.columns, c,
           update);
}

template <class T>
void fill_rows(const Cuda& cuda, ConstMatrixView<T, Cuda> row, MatrixView<T, Cuda> c) {
  using device_rows::aligned;
  if (c.columns % 4 == 0 && aligned(row.data, 4 * sizeof(T)) && aligned(c.data, 4 * sizeof(T)))
    fill_packs<4>(cuda, row.data, c);
  else
    fill_packs<1>(cuda, row.data, c);
}

template <class T>
void gemm_plus_row(const Cuda& cuda, ConstMatrixView<T, Cuda> row, ConstMatrixView<T, Cuda> a,
                   ConstMatrixView<T, Cuda> b, MatrixView<T, Cuda> c) {
  check_product(a, b, c);
  ESPALIER_CHECK(row.rows == 1 && row.columns == c.columns, "[{}, {}] is not a row of [{}, {}]", row.rows,
                 row.columns, c.rows, c.columns);
  if (c.rows == 0 || c.columns == 0) return;
  if (a.columns > 0 && multiply_and_add_row(cuda, row.data, a, b, c)) return;
  fill_rows<float>(cuda, row, c);
  multiply(cuda, "gemm_plus_row", {a.data, a.columns, CUBLAS_OP_N}, {b.data, b.columns, CUBLAS_OP_N},
           a.columns, c, Update::kAccumulate);
}

template <class T>
void gemm_tn(const Cuda& cuda, ConstMatrixView<T, Cuda> a, ConstMatrixView<T, Cuda> b, MatrixView<T, Cuda> c,
             Update update) {
  ESPALIER_CHECK(a.rows == b.rows && c.rows == a.columns && c.columns == b.columns,
                 "[{}, {}]^T [{}, {}] -> [{}, {}]", a.rows, a.columns, b.rows, b.columns, c.rows, c.columns);
  multiply(cuda, "gemm_tn", {a.data, a.columns, CUBLAS_OP_T}, {b.data, b.columns, CUBLAS_OP_N}, a.rows, c,
           update);
}

template <class T>
void gemm_nt(const Cuda& cuda, ConstMatrixView<T, Cuda> a, ConstMatrixView<T, Cuda> b, MatrixView<T, Cuda> c,
             Update update) {
  ESPALIER_CHECK(a.columns == b.columns && c.rows == a.rows && c.columns == b.rows,
                 "[{}, {}] [{}, {}]^T -> [{}, {}]", a.rows, a.columns, b.rows, b.columns, c.rows, c.columns);
  multiply(cuda, "gemm_nt", {a.data, a.columns, CUBLAS_OP_N}, {b.data, b.columns, CUBLAS_OP_T}, a.columns, c,
           update);
}

#define ESPALIER_INSTANTIATE(operation)                                                                   \
  template void operation<float>(const Cuda&, ConstMatrixView<float, Cuda>, ConstMatrixView<float, Cuda>, \
                                 MatrixView<float, Cuda>, Update);
ESPALIER_INSTANTIATE(gemm)
ESPALIER_INSTANTIATE(gemm_tn)
ESPALIER_INSTANTIATE(gemm_nt)
#undef ESPALIER_INSTANTIATE
template void gemm_plus_row<float>(const Cuda&, ConstMatrixView<float, Cuda>, ConstMatrixView<float, Cuda>,
                                   ConstMatrixView<float, Cuda>, MatrixView<float, Cuda>);
template void fill_rows<float>(const Cuda&, ConstMatrixView<float, Cuda>, MatrixView<float, Cuda>);

}  // namespace espalier
