// What a layer reads: a matrix, or the entries of a sparse one (dense/paired_rows.hpp).
#pragma once

#include <cstdint>

#include "espalier/dense/paired_rows.hpp"
#include "espalier/nn/convolution.hpp"

namespace espalier {

template <class T, class Space = Cpu>
struct LayerInput : ConstMatrixView<T, Space> {
  const Csr<std::int32_t, Space>* entries = nullptr;  ///< not null: the view has sizes alone
  Csr<std::int32_t, Space>* transposed = nullptr;     ///< beside them, memory for a backward pass

  LayerInput(const ConstMatrixView<T, Space>& view) : ConstMatrixView<T, Space>(view) {}
  LayerInput(const Matrix<T, Space>& matrix) : ConstMatrixView<T, Space>(matrix) {}
  LayerInput(const Csr<std::int32_t, Space>& entries_, Csr<std::int32_t, Space>* transposed_)
      : ConstMatrixView<T, Space>(entries_.rows, entries_.columns, nullptr),
        entries(&entries_),
        transposed(transposed_) {}

  LayerInput first_rows(std::int64_t count) const {
    auto first = *this;
    first.rows = count;
    return first;
  }
};

template <class Space, class T>
using InputOn = LayerInput<T, std::type_identity_t<Space>>;

}  // namespace espalier
