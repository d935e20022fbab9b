// The part of cuSPARSE that Espalier uses: its handle, and Y = alpha B X + beta Y for a CSR matrix B.
#pragma once

#include "cublas_v2.h"

typedef struct cusparseContext* cusparseHandle_t;
enum cusparseStatus_t { CUSPARSE_STATUS_SUCCESS = 0, CUSPARSE_STATUS_INVALID_VALUE = 3 };
enum cusparseOperation_t { CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_TRANSPOSE };
enum cusparseIndexType_t { CUSPARSE_INDEX_32I = 2, CUSPARSE_INDEX_64I = 3 };
enum cusparseIndexBase_t { CUSPARSE_INDEX_BASE_ZERO };
enum cusparseOrder_t { CUSPARSE_ORDER_COL = 1, CUSPARSE_ORDER_ROW = 2 };
enum cusparseSpMMAlg_t {
  CUSPARSE_SPMM_ALG_DEFAULT = 0,
  CUSPARSE_SPMM_CSR_ALG2 = 6,
  CUSPARSE_SPMM_CSR_ALG3 = 12
};
typedef struct cusparseSpMatDescr* cusparseSpMatDescr_t;
typedef struct cusparseDnMatDescr* cusparseDnMatDescr_t;
typedef const struct cusparseSpMatDescr* cusparseConstSpMatDescr_t;
typedef const struct cusparseDnMatDescr* cusparseConstDnMatDescr_t;

extern "C" {
const char* cusparseGetErrorString(cusparseStatus_t status);
cusparseStatus_t cusparseCreate(cusparseHandle_t* handle);
cusparseStatus_t cusparseDestroy(cusparseHandle_t handle);
cusparseStatus_t cusparseSetStream(cusparseHandle_t handle, cudaStream_t stream);
cusparseStatus_t cusparseCreateConstCsr(cusparseConstSpMatDescr_t* matrix, std::int64_t rows,
                                        std::int64_t columns, std::int64_t entries, const void* offsets,
                                        const void* indices, const void* values,
                                        cusparseIndexType_t offset_type, cusparseIndexType_t index_type,
                                        cusparseIndexBase_t base, cudaDataType value_type);
cusparseStatus_t cusparseDestroySpMat(cusparseConstSpMatDescr_t matrix);
cusparseStatus_t cusparseCreateDnMat(cusparseDnMatDescr_t* matrix, std::int64_t rows, std::int64_t columns,
                                     std::int64_t leading, void* values, cudaDataType type,
                                     cusparseOrder_t order);
cusparseStatus_t cusparseCreateConstDnMat(cusparseConstDnMatDescr_t* matrix, std::int64_t rows,
                                          std::int64_t columns, std::int64_t leading, const void* values,
                                          cudaDataType type, cusparseOrder_t order);
cusparseStatus_t cusparseDestroyDnMat(cusparseConstDnMatDescr_t matrix);
cusparseStatus_t cusparseSpMM_bufferSize(cusparseHandle_t handle, cusparseOperation_t op_b,
                                         cusparseOperation_t op_x, const void* alpha,
                                         cusparseConstSpMatDescr_t b, cusparseConstDnMatDescr_t x,
                                         const void* beta, cusparseDnMatDescr_t y, cudaDataType type,
                                         cusparseSpMMAlg_t algorithm, std::size_t* bytes);
cusparseStatus_t cusparseSpMM(cusparseHandle_t handle, cusparseOperation_t op_b, cusparseOperation_t op_x,
                              const void* alpha, cusparseConstSpMatDescr_t b, cusparseConstDnMatDescr_t x,
                              const void* beta, cusparseDnMatDescr_t y, cudaDataType type,
                              cusparseSpMMAlg_t algorithm, void* scratch);
}
