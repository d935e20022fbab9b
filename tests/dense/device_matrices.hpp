// Blocks and matrices on their way to a GPU and back, for tests.
#pragma once

#include <tuple>

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

inline std::vector<Matrix<float, Cuda>> all_to_device(const Cuda& cuda,
                                                      const std::vector<Matrix<float>>& matrices) {
  std::vector<Matrix<float, Cuda>> result;
  for (const auto& matrix : matrices) result.push_back(to_device(cuda, matrix));
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
  result.weighted = block.weighted;
  return result;
}

template <class T>
DeviceArray<T> to_device(const Cuda& cuda, const Buffer<T>& values) {
  return upload(cuda, values);
}
template <class T>
Buffer<T> to_host(const Cuda& cuda, const DeviceArray<T>& values) {
  return download(cuda, values);
}

template <class T>
bool same_bits(const Buffer<T>& a, const Buffer<T>& b) {
  return a == b;
}

/// The operation, called with the CPU and matrices (or arrays) and with a GPU and copies of them
/// there, leaves the same bits in all of them.
template <class Operation, class... Matrices>
void expect_cpu_bits(const Cuda& gpu, const Operation& operation, Matrices... on_cpu) {
  auto on_gpu = std::tuple(to_device(gpu, on_cpu)...);
  operation(Cpu{1}, on_cpu...);
  std::apply(
      [&](auto&... copies) {
        operation(gpu, copies...);
        int number = 0;
        const auto compare = [&](const auto& copy, const auto& expected) {
          EXPECT_TRUE(same_bits(to_host(gpu, copy), expected)) << "matrix " << number++;
        };
        (compare(copies, on_cpu), ...);
      },
      on_gpu);
}

/// A matrix in device memory that begins `shift` elements behind an address that suits any pack.
template <class T>
struct ShiftedDeviceMatrix {
  DeviceArray<T> memory;
  MatrixView<T, Cuda> view;

  ShiftedDeviceMatrix(const Cuda& gpu, const Matrix<T>& from, std::size_t shift)
      : memory(from.data.size() + shift), view(from.rows, from.columns, memory.data() + shift) {
    copy_bytes_to_device(gpu, from.data.data(), view.data, from.data.size() * sizeof(T));
  }
  Matrix<T> back(const Cuda& gpu) const {
    Matrix<T> m(view.rows, view.columns);
    m.data = download(gpu, view.data, m.data.size());
    return m;
  }
};

/// A SharedBlock in the memory of a GPU.
struct SharedDeviceBlock {
  Csr<std::int32_t, Cuda> arrays;
  BlockView<Cuda> block;

  SharedDeviceBlock(const Cuda& cuda, const Block& from, std::int64_t before)
      : arrays(to_device(cuda, SharedBlock(from, before).arrays)),
        block(SharedBlock::view_of(arrays, from)) {}
};

}  // namespace espalier
