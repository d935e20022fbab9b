// What becomes of weights and gradients between steps, with the same bits in every space and for
// any number of threads.
//
// Clipping (Pascanu et al. 2013) makes matrices shorter where, as one long vector, they are longer
// than they may be:
//
//     norm = sqrt(sum of squares of all elements)
//     every element *= min(1, most / (norm + 1e-6))
//
// The sum is one of doubles in an order of the elements' places only: pieces of a matrix, each from
// its first element on; then the pieces of all matrices from the first on.
#pragma once

#include <cstdint>
#include <vector>

#include "espalier/base/execution.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

/// `scratch`: memory to work in. On a GPU the host does not wait. What is not finite stays so.
template <class Space>
void clip_to_norm(const Space&, double most, std::vector<Matrix<float, Space>>& matrices,
                  Array<Space, double>& scratch);

/// to = (1 - share) to + share from, of one shape, in double, rounded once: exponential averages.
template <class T, class Space>
void blend(const Space&, double share, const Matrix<T, Space>& from, Matrix<T, Space>& to);

/// sum = divisor times `mean`, and divisors[at] = divisor: to be added to others'.
template <class T, class Space>
void weigh(const Space&, double divisor, const Matrix<T, Space>& mean, Matrix<T, Space>& sum,
           Matrix<T, Space>& divisors, std::int64_t at);

/// to = (1 - share) to + share m, where m = sum / divisors[at]; `to` stays where that divisor is 0.
template <class T, class Space>
void blend_mean(const Space&, double share, const Matrix<T, Space>& sum, const Matrix<T, Space>& divisors,
                std::int64_t at, Matrix<T, Space>& to);

}  // namespace espalier
