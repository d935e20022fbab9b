// Matrices on their way to the GPU and back.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "espalier/base/device_array.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

/// to = from, resized; runs in the order of the stream, and `from` may be changed when it returns.
template <class T>
void upload(const Cuda& cuda, const Matrix<T>& from, Matrix<T, Cuda>& to) {
  to.resize(from.rows, from.columns);
  copy_bytes_to_device(cuda, from.data.data(), to.data.data(), from.data.size() * sizeof(T));
}

/// Waits for the stream.
template <class T>
Matrix<T> download(const Cuda& cuda, const Matrix<T, Cuda>& from) {
  Matrix<T> to(from.rows, from.columns);
  copy_bytes_to_host(cuda, from.data.data(), to.data.data(), from.data.size() * sizeof(T));
  return to;
}

/// One of several matrices that are made together.
struct MatrixPlace {
  std::int64_t rows, columns;
  bool follows = false;  ///< the one before, of as many columns: both are one matrix, too
};

/// Matrices that are not initialised. On a GPU they lie in one array, in their order; with `apart`
/// each begins at a multiple of 256 bytes, but for those that follow another.
template <class T, class Space>
std::vector<Matrix<T, Space>> matrices_together(std::span<const MatrixPlace> places, bool apart) {
  std::vector<Matrix<T, Space>> matrices;
  if constexpr (std::is_same_v<Space, Cpu>) {
    for (const auto& place : places) matrices.emplace_back(place.rows, place.columns);
  } else {
    constexpr std::size_t kApart = 256 / sizeof(T);
    std::vector<std::size_t> begins;
    std::size_t end = 0;
    for (const auto& place : places) {
      if (apart && !place.follows) end += (kApart - end % kApart) % kApart;
      begins.push_back(end);
      end += static_cast<std::size_t>(place.rows * place.columns);
    }
    const auto whole = std::make_shared<DeviceArray<T>>(end);
    for (std::size_t k = 0; k < places.size(); ++k) {
      const auto [rows, columns, follows] = places[k];
      matrices.push_back({});
      matrices.back().rows = rows;
      matrices.back().columns = columns;
      matrices.back().data = DeviceArray<T>(whole, begins[k], static_cast<std::size_t>(rows * columns));
    }
  }
  return matrices;
}

/// What was made on the host, where the space has its memory.
template <class T, class Space>
Matrix<T, Space> placed(const Space& space, Matrix<T> values) {
  if constexpr (std::is_same_v<Space, Cpu>) {
    return values;
  } else {
    Matrix<T, Space> there;
    upload(space, values, there);
    return there;
  }
}

}  // namespace espalier
