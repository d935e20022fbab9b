// cuBLAS by OpenBLAS (column-major, as both are) and cuSPARSE by loops.
#include <cblas.h>

#include <algorithm>
#include <vector>

#include "cublasLt.h"
#include "cublas_v2.h"
#include "cusparse.h"
#include "memory.hpp"

using espalier_emulation::DeviceAccess;
using espalier_emulation::refuses;

struct cublasContext {};
struct cusparseContext {};

cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  *handle = new cublasContext;
  openblas_set_num_threads(1);  // no thread of the host changes what a GPU sums, and in which order
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream(cublasHandle_t, cudaStream_t) {
  return refuses(__func__) ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetVersion(cublasHandle_t, int* version) {
  *version = 130002;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace(cublasHandle_t, void*, std::size_t) {
  return refuses(__func__) ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}

namespace {

// To nearest, ties to even, with `dropped` bits of the mantissa gone.
std::vector<float> rounded(const float* matrix, std::size_t size, int dropped) {
  std::vector<float> result(matrix, matrix + size);
  if (dropped == 0) return result;
  for (float& x : result) {
    auto bits = __float_as_uint(x);
    const unsigned odd = bits >> dropped & 1u;
    bits += (1u << (dropped - 1)) - 1 + odd;
    x = __uint_as_float(bits >> dropped << dropped);
  }
  return result;
}

}  // namespace

cublasStatus_t cublasGemmEx(cublasHandle_t, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,
                            int k, const void* alpha, const void* a, cudaDataType type_a, int lda,
                            const void* b, cudaDataType type_b, int ldb, const void* beta, void* c,
                            cudaDataType type_c, int ldc, cublasComputeType_t compute, cublasGemmAlgo_t) {
  const int rows_a = op_a == CUBLAS_OP_N ? m : k, columns_a = op_a == CUBLAS_OP_N ? k : m;
  const int rows_b = op_b == CUBLAS_OP_N ? k : n, columns_b = op_b == CUBLAS_OP_N ? n : k;
  if (type_a != CUDA_R_32F || type_b != CUDA_R_32F || type_c != CUDA_R_32F || m < 0 || n < 0 || k < 0 ||
      lda < std::max(1, rows_a) || ldb < std::max(1, rows_b) || ldc < std::max(1, m))
    return CUBLAS_STATUS_INVALID_VALUE;
  const DeviceAccess access;
  const int dropped = compute == CUBLAS_COMPUTE_32F ? 0 : compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? 13 : 16;
  const auto size = [](int rows, int columns, int leading) {
    return columns == 0 || rows == 0
               ? 0
               : static_cast<std::size_t>(leading) * static_cast<std::size_t>(columns - 1) +
                     static_cast<std::size_t>(rows);
  };
  const auto factor_a = rounded(static_cast<const float*>(a), size(rows_a, columns_a, lda), dropped),
             factor_b = rounded(static_cast<const float*>(b), size(rows_b, columns_b, ldb), dropped);
  cblas_sgemm(CblasColMajor, op_a == CUBLAS_OP_N ? CblasNoTrans : CblasTrans,
              op_b == CUBLAS_OP_N ? CblasNoTrans : CblasTrans, m, n, k, *static_cast<const float*>(alpha),
              factor_a.data(), lda, factor_b.data(), ldb, *static_cast<const float*>(beta),
              static_cast<float*>(c), ldc);
  return CUBLAS_STATUS_SUCCESS;
}

struct EmulatedMatmul {
  cublasComputeType_t compute;
  const float* bias = nullptr;
};
struct EmulatedLayout {
  std::uint64_t rows, columns;
  std::int64_t leading;
};
struct EmulatedPreference {};

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* product, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  *product = new EmulatedMatmul{compute};
  return scale == CUDA_R_32F ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
  delete product;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product,
                                              cublasLtMatmulDescAttributes_t attribute, const void* value,
                                              std::size_t bytes) {
  if (attribute == CUBLASLT_MATMUL_DESC_EPILOGUE)
    return bytes == 4 && *static_cast<const std::int32_t*>(value) == CUBLASLT_EPILOGUE_BIAS
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_INVALID_VALUE;
  if (attribute != CUBLASLT_MATMUL_DESC_BIAS_POINTER || bytes != sizeof product->bias)
    return CUBLAS_STATUS_INVALID_VALUE;
  product->bias = *static_cast<const float* const*>(value);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t columns, std::int64_t leading) {
  if (type != CUDA_R_32F || leading < static_cast<std::int64_t>(rows)) return CUBLAS_STATUS_INVALID_VALUE;
  *layout = new EmulatedLayout{rows, columns, leading};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new EmulatedPreference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void*, std::size_t bytes) {
  return bytes == (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES ? 8 : 4)
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t, int,
                                              cublasLtMatmulHeuristicResult_t results[], int* found) {
  *found = 0;
  if (a->columns != b->rows || a->rows != d->rows || b->columns != d->columns || c->rows != d->rows)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (refuses(__func__)) return CUBLAS_STATUS_NOT_SUPPORTED;
  results[0] = {};
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t layout_a, const void* b,
                              cublasLtMatrixLayout_t layout_b, const void* beta, const void* c,
                              cublasLtMatrixLayout_t layout_c, void* d, cublasLtMatrixLayout_t layout_d,
                              const cublasLtMatmulAlgo_t*, void*, std::size_t, cudaStream_t) {
  if (c != d || *static_cast<const float*>(beta) != 0 || product->bias == nullptr ||
      layout_c->leading != layout_d->leading)
    return CUBLAS_STATUS_INVALID_VALUE;  // nothing else is asked for
  {
    const DeviceAccess access;
    for (std::uint64_t column = 0; column < layout_d->columns; ++column)
      std::copy_n(product->bias, layout_d->rows,
                  static_cast<float*>(d) + column * static_cast<std::uint64_t>(layout_d->leading));
  }
  const float one = 1;
  const auto as_int = [](auto size) { return static_cast<int>(size); };
  return cublasGemmEx(reinterpret_cast<cublasHandle_t>(handle), CUBLAS_OP_N, CUBLAS_OP_N,
                      as_int(layout_d->rows), as_int(layout_d->columns), as_int(layout_a->columns), alpha, a,
                      CUDA_R_32F, as_int(layout_a->leading), b, CUDA_R_32F, as_int(layout_b->leading), &one,
                      d, CUDA_R_32F, as_int(layout_d->leading), product->compute, CUBLAS_GEMM_DEFAULT);
}

struct cusparseSpMatDescr {
  std::int64_t rows, columns, entries;
  const void *offsets, *indices, *values;
  cusparseIndexType_t offset_type, index_type;
};
struct cusparseDnMatDescr {
  std::int64_t rows, columns, leading;
  void* values;
  cusparseOrder_t order;
};

const char* cusparseGetErrorString(cusparseStatus_t status) {
  return status == CUSPARSE_STATUS_SUCCESS ? "success" : "invalid value";
}
cusparseStatus_t cusparseCreate(cusparseHandle_t* handle) {
  *handle = new cusparseContext;
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseDestroy(cusparseHandle_t handle) {
  delete handle;
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSetStream(cusparseHandle_t, cudaStream_t) {
  return refuses(__func__) ? CUSPARSE_STATUS_INVALID_VALUE : CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseCreateConstCsr(cusparseConstSpMatDescr_t* matrix, std::int64_t rows,
                                        std::int64_t columns, std::int64_t entries, const void* offsets,
                                        const void* indices, const void* values,
                                        cusparseIndexType_t offset_type, cusparseIndexType_t index_type,
                                        cusparseIndexBase_t, cudaDataType value_type) {
  // As the library: both index types are the same.
  if (value_type != CUDA_R_32F || offset_type != index_type) return CUSPARSE_STATUS_INVALID_VALUE;
  *matrix = new cusparseSpMatDescr{rows, columns, entries, offsets, indices, values, offset_type, index_type};
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseDestroySpMat(cusparseConstSpMatDescr_t matrix) {
  delete matrix;
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseCreateDnMat(cusparseDnMatDescr_t* matrix, std::int64_t rows, std::int64_t columns,
                                     std::int64_t leading, void* values, cudaDataType type,
                                     cusparseOrder_t order) {
  if (type != CUDA_R_32F) return CUSPARSE_STATUS_INVALID_VALUE;
  *matrix = new cusparseDnMatDescr{rows, columns, leading, values, order};
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseCreateConstDnMat(cusparseConstDnMatDescr_t* matrix, std::int64_t rows,
                                          std::int64_t columns, std::int64_t leading, const void* values,
                                          cudaDataType type, cusparseOrder_t order) {
  if (type != CUDA_R_32F) return CUSPARSE_STATUS_INVALID_VALUE;
  *matrix = new cusparseDnMatDescr{rows, columns, leading, const_cast<void*>(values), order};
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseDestroyDnMat(cusparseConstDnMatDescr_t matrix) {
  delete matrix;
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpMM_bufferSize(cusparseHandle_t, cusparseOperation_t, cusparseOperation_t,
                                         const void*, cusparseConstSpMatDescr_t, cusparseConstDnMatDescr_t,
                                         const void*, cusparseDnMatDescr_t, cudaDataType, cusparseSpMMAlg_t,
                                         std::size_t* bytes) {
  *bytes = 1;
  return CUSPARSE_STATUS_SUCCESS;
}
cusparseStatus_t cusparseSpMM(cusparseHandle_t, cusparseOperation_t op_b, cusparseOperation_t op_x,
                              const void* alpha, cusparseConstSpMatDescr_t b, cusparseConstDnMatDescr_t x,
                              const void* beta, cusparseDnMatDescr_t y, cudaDataType type, cusparseSpMMAlg_t,
                              void*) {
  if (op_b != CUSPARSE_OPERATION_NON_TRANSPOSE || op_x != CUSPARSE_OPERATION_NON_TRANSPOSE ||
      type != CUDA_R_32F || x->order != CUSPARSE_ORDER_ROW || y->order != CUSPARSE_ORDER_ROW ||
      b->columns != x->rows || b->rows != y->rows || x->columns != y->columns)
    return CUSPARSE_STATUS_INVALID_VALUE;
  const DeviceAccess access;
  const auto read = [](const void* numbers, cusparseIndexType_t kind, std::int64_t k) {
    return kind == CUSPARSE_INDEX_32I ? static_cast<const std::int32_t*>(numbers)[k]
                                      : static_cast<const std::int64_t*>(numbers)[k];
  };
  const auto* values = static_cast<const float*>(b->values);
  for (std::int64_t i = 0; i < b->rows; ++i)
    for (std::int64_t j = 0; j < y->columns; ++j) {
      double sum = 0;
      for (auto e = read(b->offsets, b->offset_type, i); e < read(b->offsets, b->offset_type, i + 1); ++e)
        sum += static_cast<double>(values[e]) *
               static_cast<double>(
                   static_cast<const float*>(x->values)[read(b->indices, b->index_type, e) * x->leading + j]);
      float& to = static_cast<float*>(y->values)[i * y->leading + j];
      const float before =
          *static_cast<const float*>(beta) == 0 ? 0.0f : *static_cast<const float*>(beta) * to;
      to = *static_cast<const float*>(alpha) * static_cast<float>(sum) + before;
    }
  return CUSPARSE_STATUS_SUCCESS;
}
