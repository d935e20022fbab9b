// Blocks and matrices on their way to a GPU and back, for tests.
#pragma once

#include "cuda_test.hpp"
#include "dense/random_matrices.hpp"
#include "espalier/sparse/device_csr.hpp"

namespace espalier {

template <class T>
Matrix<T, Cuda> to_device(const Cuda& cuda, const Matrix<T>& matrix) {
  Matrix<T, Cuda> result(matrix.rows, matrix.columns);
  copy_bytes_to_device(cuda, matrix.data.data(), result.data.data(), matrix.data.size() * sizeof(T));
  return result;
}

template <class T>
Matrix<T> to_host(const Cuda& cuda, const Matrix<T, Cuda>& matrix) {
  Matrix<T> result(matrix.rows, matrix.columns);
  result.data = download(cuda, matrix.data.data(), matrix.data.size());
  return result;
}

inline Csr<std::int32_t, Cuda> to_device(const Cuda& cuda, const Block& block) {
  return upload(cuda, block);
}

inline Block to_host(const Cuda& cuda, const Csr<std::int32_t, Cuda>& block) {
  Block result;
  result.rows = block.rows;
  result.columns = block.columns;
  result.indptr = download(cuda, block.indptr);
  result.indices = download(cuda, block.indices);
  result.values = download(cuda, block.values);
  return result;
}

/// The block as a part of common arrays: behind `before` entries of other blocks.
struct SharedBlock {
  DeviceArray<std::int64_t> indptr;
  DeviceArray<std::int32_t> indices;
  DeviceArray<float> values;
  DeviceBlock block;

  SharedBlock(const Cuda& cuda, const Block& from, std::int64_t before) {
    Buffer<std::int64_t> starts = from.indptr;
    for (auto& start : starts) start += before;
    Buffer<std::int32_t> columns(static_cast<std::size_t>(before), 1 << 30);  // no column of the block
    Buffer<float> weights(static_cast<std::size_t>(before), NAN);
    columns.insert(columns.end(), from.indices.begin(), from.indices.end());
    weights.insert(weights.end(), from.values.begin(), from.values.end());
    indptr = upload(cuda, starts);
    indices = upload(cuda, columns);
    values = upload(cuda, weights);
    block = {from.rows,     from.columns,   from.entries(),
             indptr.data(), indices.data(), from.has_values() ? values.data() : nullptr};
  }
};

}  // namespace espalier
