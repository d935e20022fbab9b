// Blocks with everything that attention may meet, and what it computes of them, for tests.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "dense/random_matrices.hpp"
#include "espalier/nn/dropout.hpp"
#include "espalier/nn/edge_softmax.hpp"
#include "espalier/sparse/transpose.hpp"

namespace espalier {

/// Rows of 0 .. most entries and more: every third row names its own vertex, every ninth twice.
inline Block attention_block(std::int64_t rows, std::int64_t columns, int most, std::mt19937_64& random) {
  const Block drawn = random_block_matrix(rows, columns, most, random);
  Block block;
  block.rows = rows;
  block.columns = columns;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (int own = 0; own < (i % 3 == 0) + (i % 9 == 0); ++own)
      block.indices.push_back(static_cast<std::int32_t>(i));
    const auto picks = drawn.row_indices(i);
    block.indices.insert(block.indices.end(), picks.begin(), picks.end());
    block.indptr.push_back(block.entries());
  }
  return block;
}

/// All that attention is given and computes, of one block.
template <class T>
struct AttentionCase {
  Block block;
  std::int64_t heads, width;
  double rate;
  RandomStream mask{7, Purpose::kAttention, 2, 5, 1, 0};
  Matrix<T> p, a_source, a_target, dz, source, target;
  Matrix<T> weights, z, dweights, dtarget, dsource, dp, da;

  AttentionCase(Block block_, std::int64_t heads_, std::int64_t width_, double rate_, std::mt19937_64& random)
      : block(std::move(block_)),
        heads(heads_),
        width(width_),
        rate(rate_),
        p(random_matrix<T>(block.columns, heads * width, random)),
        a_source(random_matrix<T>(heads, width, random)),
        a_target(random_matrix<T>(heads, width, random)),
        dz(random_matrix<T>(block.rows, heads * width, random)),
        source(block.columns, heads),
        target(block.rows, heads) {}

  /// Forward and backward.
  void run() {
    const Cpu cpu{1};
    head_scores<T>(cpu, p, a_source, source);
    head_scores<T>(cpu, ConstMatrixView<T>(p).first_rows(block.rows), a_target, target);
    edge_softmax<T>(cpu, block, source, target, nullptr, mask, rate, weights);
    z.resize(block.rows, heads * width);
    attend<T>(cpu, block, weights, rate, p, z);
    edge_softmax_backward<T>(cpu, block, weights, rate, source, target, nullptr, p, dz, dweights, dtarget);
    Block transposed;
    Buffer<std::int32_t> positions;
    transpose(cpu, block, transposed, &positions);
    attend_backward<T>(cpu, transposed, positions, weights, rate, dweights, dtarget, block, dz, a_source,
                       a_target, dsource, dp);
    da.resize(heads, width);
    head_scores_backward<T>(cpu, p, dsource, da);
  }

  /// Where the weights of row i begin.
  std::int64_t first_weight(std::int64_t i) const { return block.row_begin(i) + i; }
  std::int64_t weights_of(std::int64_t i) const { return block.row_size(i) + 1; }
  /// Whose weight number k of row i is; the last is the vertex's own.
  std::int64_t source_of(std::int64_t i, std::int64_t k) const {
    return k < block.row_size(i) ? block.row_indices(i)[static_cast<std::size_t>(k)] : i;
  }
};

}  // namespace espalier
