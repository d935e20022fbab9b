// A hand-checked minibatch of each convolution, forward and backward, in both orders of
// multiplication, for every space.
#pragma once

#include <gtest/gtest.h>

#include "../../src/nn/gcn.inl.hpp"
#include "../../src/nn/sage.inl.hpp"
#include "dense/random_matrices.hpp"
#include "espalier/nn/convolution.hpp"
#include "space_arrays.hpp"

namespace espalier {

/// Two destinations, three sources; the first has the mean of sources 1 and 2, the second source 2.
inline Block convolved_block() {
  return {2, 3, {0, 2, 3}, {1, 2, 2}, {0.5f, 0.5f, 1.0f}};
}

/// `block` and `transposed` are those of convolved_block, in memory of the space. All numbers are
/// exact in float32.
template <class T, class Space>
void check_convolutions(const Space& space, const BlockViewOn<Space>& block,
                        const BlockViewOn<Space>& transposed) {
  const auto matrix = [&](std::int64_t rows, std::int64_t columns, std::initializer_list<T> elements) {
    return matrix_on(space, matrix_of<T>(rows, columns, elements));
  };
  const auto numbers = [&](const Matrix<T, Space>& m) { return matrix_from(space, m).data; };
  const auto x = matrix(3, 1, {1, 2, 4}), self = matrix(1, 2, {10, 0}), weight = matrix(1, 2, {1, 100}),
             bias = matrix(1, 2, {0.5, 0.25}), dz = matrix(2, 2, {1, 0, 0, 2});
  for (const ProductOrder order : {ProductOrder::kAggregateFirst, ProductOrder::kMultiplyFirst}) {
    SCOPED_TRACE(testing::Message() << "order " << static_cast<int>(order));
    Matrix<T, Space> product, z, dself(1, 2), dweight(1, 2), dx;
    sage_forward<T>(space, block, order, x, self, weight, bias, product, z);
    EXPECT_EQ(numbers(z), (Buffer<T>{10 + 3 + 0.5, 300 + 0.25, 20 + 4 + 0.5, 400 + 0.25}));
    sage_backward<T>(space, block, transposed, order, x, self, weight, product, dz, dself, dweight, &dx);
    EXPECT_EQ(numbers(dself), (Buffer<T>{1, 4}));
    EXPECT_EQ(numbers(dweight), (Buffer<T>{3, 8}));
    EXPECT_EQ(numbers(dx), (Buffer<T>{10, 0.5, 0.5 + 200}));

    gcn_forward<T>(space, block, order, x, weight, bias, product, z);
    EXPECT_EQ(numbers(z), (Buffer<T>{3.5, 300.25, 4.5, 400.25}));
    gcn_backward<T>(space, transposed, order, x, weight, product, dz, dweight, &dx);
    EXPECT_EQ(numbers(dweight), (Buffer<T>{3, 8}));
    EXPECT_EQ(numbers(dx), (Buffer<T>{0, 0.5, 0.5 + 200}));
  }
}

}  // namespace espalier
