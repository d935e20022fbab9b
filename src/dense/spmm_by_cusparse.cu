// cuSPARSE wants offsets of the type of the column ids, that begin with 0, and a value for each
// entry: the block is copied.
#include "spmm_by_cusparse.hpp"

#include <cusparse.h>

#include "espalier/base/device_array.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {
namespace {

void check(cusparseStatus_t status, const char* call) {
  ESPALIER_CHECK(status == CUSPARSE_STATUS_SUCCESS, "{}: {}", call, cusparseGetErrorString(status));
}

/// A block as cuSPARSE takes it.
struct Offsets {
  DeviceArray<std::int32_t> offsets;  ///< [rows + 1], from 0
  DeviceArray<std::int32_t> columns;  ///< [entries], without those of other blocks
  DeviceArray<float> values;          ///< [entries]
};

void relate_offsets(const Cuda& cuda, const BlockView<Cuda>& block, std::int32_t* offsets) {
  for_each(cuda, "offsets of a block", block.rows + 1, [=] __device__(std::int64_t i) {
    offsets[i] = static_cast<std::int32_t>(block.indptr[i] - block.indptr[0]);
  });
}

void copy_entries(const Cuda& cuda, const BlockView<Cuda>& block, std::int32_t* columns, float* values) {
  for_each(cuda, "entries of a block", block.entries(), [=] __device__(std::int64_t k) {
    const std::int64_t entry = block.indptr[0] + k;
    columns[k] = block.indices[entry];
    values[k] = block.values == nullptr ? 1.0f : block.values[entry];
  });
}

Offsets copy_block(const Cuda& cuda, const BlockView<Cuda>& block) {
  const auto entries = static_cast<std::size_t>(block.entries());
  Offsets copied{DeviceArray<std::int32_t>(block.rows + 1), DeviceArray<std::int32_t>(entries),
                 DeviceArray<float>(entries)};
  relate_offsets(cuda, block, copied.offsets.data());
  copy_entries(cuda, block, copied.columns.data(), copied.values.data());
  return copied;
}

/// The descriptions of B, X and Y, given back at the end.
struct Descriptions {
  cusparseConstSpMatDescr_t b = nullptr;
  cusparseConstDnMatDescr_t x = nullptr;
  cusparseDnMatDescr_t y = nullptr;

  Descriptions(const BlockView<Cuda>& block, const Offsets& arrays, ConstMatrixView<float, Cuda> from,
               MatrixView<float, Cuda> to) {
    check(cusparseCreateConstCsr(&b, block.rows, block.columns, block.entries(), arrays.offsets.data(),
                                 arrays.columns.data(), arrays.values.data(), CUSPARSE_INDEX_32I,
                                 CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F),
          "cusparseCreateConstCsr");
    check(cusparseCreateConstDnMat(&x, from.rows, from.columns, from.columns, from.data, CUDA_R_32F,
                                   CUSPARSE_ORDER_ROW),
          "cusparseCreateConstDnMat");
    check(cusparseCreateDnMat(&y, to.rows, to.columns, to.columns, to.data, CUDA_R_32F, CUSPARSE_ORDER_ROW),
          "cusparseCreateDnMat");
  }
  ~Descriptions() {
    cusparseDestroySpMat(b);
    cusparseDestroyDnMat(x);
    cusparseDestroyDnMat(y);
  }
  Descriptions(const Descriptions&) = delete;
  Descriptions& operator=(const Descriptions&) = delete;
};

}  // namespace

void spmm_by_cusparse(const Cuda& cuda, const BlockView<Cuda>& block, ConstMatrixView<float, Cuda> x,
                      MatrixView<float, Cuda> y, Update update) {
  const bool accumulate = update == Update::kAccumulate;
  if (y.rows == 0 || y.columns == 0) return;
  if (block.entries() == 0) {
    if (!accumulate)
      fill_bytes(cuda, y.data, 0, static_cast<std::size_t>(y.rows * y.columns) * sizeof(float));
    return;
  }
  const auto arrays = copy_block(cuda, block);
  const Descriptions of(block, arrays, x, y);
  const float one = 1, beta = accumulate ? 1.0f : 0.0f;
  constexpr auto kAsItIs = CUSPARSE_OPERATION_NON_TRANSPOSE;
  constexpr auto kAlgorithm = CUSPARSE_SPMM_CSR_ALG2;
  std::size_t bytes = 0;
  check(cusparseSpMM_bufferSize(cuda.sparse(), kAsItIs, kAsItIs, &one, of.b, of.x, &beta, of.y, CUDA_R_32F,
                                kAlgorithm, &bytes),
        "cusparseSpMM_bufferSize");
  DeviceArray<std::byte> scratch(bytes);
  const ProfilerRange range("spmm_by_cusparse");
  check(cusparseSpMM(cuda.sparse(), kAsItIs, kAsItIs, &one, of.b, of.x, &beta, of.y, CUDA_R_32F, kAlgorithm,
                     scratch.data()),
        "cusparseSpMM");
  cuda.launched("spmm_by_cusparse");
}

}  // namespace espalier
