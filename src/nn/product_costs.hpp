// What layers of the form (B X) W or B (X W), and perhaps products with the destinations' own rows
// beside it, ask for.
#pragma once

#include "espalier/nn/layer.hpp"

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

}  // namespace espalier
