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

/// A SharedBlock in the memory of a GPU.
struct SharedDeviceBlock {
  Csr<std::int32_t, Cuda> arrays;
  BlockView<Cuda> block;

  SharedDeviceBlock(const Cuda& cuda, const Block& from, std::int64_t before)
      : arrays(to_device(cuda, SharedBlock(from, before).arrays)),
        block(SharedBlock::view_of(arrays, from)) {}
};

}  // namespace espalier
