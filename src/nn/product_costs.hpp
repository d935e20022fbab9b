// Products of layers of the form (B X) W or B (X W), perhaps with the destinations' own rows beside
// them, and what they cost.
#pragma once

#include "espalier/dense/gemm.hpp"
#include "espalier/dense/spmm.hpp"
#include "espalier/nn/layer.hpp"
#include "espalier/nn/views.hpp"
#include "espalier/sparse/transpose.hpp"

namespace espalier {

/// Numbers of a weight matrix.
inline double numbers(const LayerShape& s) {
  return static_cast<double>(s.in) * static_cast<double>(s.out);
}

/// In which order a step, or an evaluation, multiplies: entries of a sparse input are multiplied
/// first.
template <class Block>
ProductOrder training_order(const LayerShape& s, const Block& block) {
  return s.pairs > 0 ? ProductOrder::kMultiplyFirst : cheaper_order(block, s.in, s.out, s.gives_dx);
}
inline ProductOrder evaluation_order(const LayerShape& s) {
  return s.pairs > 0 ? ProductOrder::kMultiplyFirst : evaluation_order(s.in, s.out);
}

/// `beside`: flops of other products forward.
inline LayerCosts costs_of_products(const LayerShape& s, const BlockSize& b, double beside) {
  const double in = static_cast<double>(s.in), out = static_cast<double>(s.out);
  const bool first = !s.gives_dx, multiply = training_order(s, b) == ProductOrder::kMultiplyFirst,
             multiply_all = evaluation_order(s) == ProductOrder::kMultiplyFirst;
  const double product = 2 * (multiply ? b.columns : b.rows) * numbers(s) + beside,
               gathered = b.entries() * (multiply ? out : in);
  return {.forward = {product, gathered, b.rows * out},
          .backward = {product * (first ? 1 : 2), first && !multiply ? 0 : gathered, 2 * b.rows * out},
          .evaluation = {2 * (multiply_all ? b.columns : b.rows) * numbers(s) + beside,
                         b.entries() * (multiply_all ? out : in), b.rows * out},
          .kept = {multiply ? b.columns * out : b.rows * in},
          .scratch = {multiply_all ? b.columns * out : b.rows * in},
          .transposes = !first || multiply};
}

// Products of what a layer reads, whether it is a matrix or entries of a sparse one.
//
// Law, as of dense/gemm.hpp and dense/spmm.hpp: row i of X W depends on row i of X and on W only,
// and no result depends on the number of threads.

/// B^T: as it came beside the block, else made now.
template <class T, class Space>
BlockView<Space> transposed_of(const Space& space, const BlockView<Space>& block,
                               LayerScratch<T, Space>& scratch) {
  const auto& made = block.transposed;
  if (made.indptr != nullptr)
    return {block.columns, block.rows,   block.entries(),
            made.indptr,   made.indices, {block.has_values(), std::span(made.values, 1)}};
  transpose(space, block, scratch.transposed);
  return scratch.transposed;
}

/// The entries of its rows, where it has entries.
template <class T, class Space>
BlockView<Space> entries_of(const LayerInput<T, Space>& x) {
  return first_rows(*x.entries, x.rows);
}

/// C = X W, or C += X W.
template <class T, class Space>
void multiply(const Space& space, const InputOn<Space, T>& x, ConstViewOn<Space, T> w, ViewOn<Space, T> c,
              Update update = Update::kOverwrite) {
  if (x.entries == nullptr) return gemm<T>(space, x, w, c, update);
  spmm<T>(space, entries_of(x), w, c, update);
}

/// C = row + X W.
template <class T, class Space>
void multiply_plus_row(const Space& space, const MatrixOn<Space, T>& row, const InputOn<Space, T>& x,
                       ConstViewOn<Space, T> w, ViewOn<Space, T> c) {
  if (x.entries == nullptr) return gemm_plus_row<T>(space, row, x, w, c);
  fill_rows<T>(space, row, c);
  spmm<T>(space, entries_of(x), w, c, Update::kAccumulate);
}

/// C = X^T D.
template <class T, class Space>
void multiply_transposed(const Space& space, const InputOn<Space, T>& x, ConstViewOn<Space, T> d,
                         ViewOn<Space, T> c) {
  if (x.entries == nullptr) return gemm_tn<T>(space, x, d, c);
  transpose(space, entries_of(x), *x.transposed);
  spmm<T>(space, *x.transposed, d, c);
}

}  // namespace espalier
