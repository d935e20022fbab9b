// Laws of an input that comes in rows of pairs (dense/paired_rows.hpp), for every space: logits,
// gradients and evaluation of every kind of layer are those of the same rows as a matrix, masks of
// dropout included.
#pragma once

#include <gtest/gtest.h>

#include "dense/eigen_oracle.hpp"
#include "nn/layer_shapes.hpp"
#include "nn/network_case.hpp"
#include "space_arrays.hpp"

namespace espalier {

/// A matrix of float32 numbers, up to `most` in a row that are not 0, none in some, and its
/// pairs.
template <class T>
struct PairedMatrix {
  Matrix<T> wide, pairs;

  PairedMatrix(std::int64_t rows, std::int64_t columns, std::int64_t most, std::mt19937_64& random)
      : wide(rows, columns), pairs(rows, 2 * most) {
    std::ranges::fill(wide.data, T{0});
    std::ranges::fill(pairs.data, T{0});
    const auto numbers = random_matrix<T>(rows, columns, random);
    for (std::int64_t i = 0; i < rows; ++i) {
      std::int64_t left = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most + 1));
      T* pair = pairs.row(i);
      for (std::int64_t j = 0; j < columns && left > 0; ++j) {
        if (random() % 2 == 0) continue;
        wide(i, j) = pair[1] = static_cast<float>(numbers(i, j));
        pair[0] = static_cast<T>(j);
        pair += 2;
        --left;
      }
    }
  }
};

/// Half is dropped, so that what is kept stays a float32. Those of layer_shapes() whose vertices
/// are of one type, with residuals that add X itself, too.
inline std::vector<NetworkShape> shapes_of_one_type() {
  auto shapes = layer_shapes({0, 0.5});
  std::erase_if(shapes, [](const NetworkShape& shape) { return !shape.types.empty(); });
  for (const char* kind : {"sage", "gcn", "gat"})
    shapes.push_back({.kind = kind, .layers = 2, .inputs = 7, .hidden = 7, .classes = 4, .residual = true});
  return shapes;
}

/// What two networks of the same weights make of a minibatch.
template <class T>
struct PairedResults {
  std::vector<Matrix<T>> matrices;

  template <class Space>
  PairedResults(const Space& space, Network<T, Space>& network, const std::vector<BlockView<Space>>& blocks,
                const Matrix<T>& rows, const Pass& pass, const Matrix<T>& dlogits) {
    const auto input = matrix_on(space, rows), derivatives = matrix_on(space, dlogits);
    matrices.push_back(matrix_from(space, network.forward(space, blocks, input, pass)));
    std::vector<Matrix<T, Space>> gradients;
    network.backward(space, blocks, input, pass, derivatives, gradients);
    for (const auto& gradient : gradients) matrices.push_back(matrix_from(space, gradient));
    LayerScratch<T, Space> scratch;
    Matrix<T, Space> output;
    network.evaluate_layer(space, 1, blocks[0], input, scratch, output);
    matrices.push_back(matrix_from(space, output));
  }
};

template <class T>
void expect_near(const PairedResults<T>& found, const PairedResults<T>& expected, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(found.matrices.size(), expected.matrices.size());
  for (std::size_t k = 0; k < found.matrices.size(); ++k) {
    const auto &a = found.matrices[k], &b = expected.matrices[k];
    ASSERT_EQ(a.data.size(), b.data.size()) << what;
    double largest = 1;
    for (const T x : b.data) largest = std::max(largest, std::abs(static_cast<double>(x)));
    EXPECT_LT(largest_difference(a, b), tolerance * largest) << what << ", result " << k;
  }
}

}  // namespace espalier
