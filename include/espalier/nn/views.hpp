// How kernels of layers take blocks and matrices: in the space of their first argument, which alone
// decides it. So a view, or a temporary matrix, of that space is an argument without a word more.
#pragma once

#include <type_traits>

#include "espalier/dense/matrix.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

template <class Space>
using BlockViewOn = BlockView<std::type_identity_t<Space>>;
template <class Space, class T>
using MatrixOn = Matrix<T, std::type_identity_t<Space>>;
template <class Space, class T>
using ConstViewOn = ConstMatrixView<T, std::type_identity_t<Space>>;
template <class Space, class T>
using ViewOn = MatrixView<T, std::type_identity_t<Space>>;

}  // namespace espalier
