// How well rows tell the classes of a generated graph, for tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "dense/random_matrices.hpp"

namespace espalier {

/// The share of test vertices that are nearest to the mean of their own class, class means taken
/// over the training vertices.
template <class T>
double nearest_mean_accuracy(const Matrix<T>& h, const Buffer<std::int32_t>& labels, std::int64_t classes,
                             const Buffer<std::int64_t>& train, const Buffer<std::int64_t>& test) {
  auto mean = filled_matrix(classes, h.columns, 0.0);
  std::vector<double> size(static_cast<std::size_t>(classes), 0);
  for (const auto v : train) {
    ++size[labels[v]];
    for (std::int64_t k = 0; k < h.columns; ++k) mean(labels[v], k) += static_cast<double>(h(v, k));
  }
  std::int64_t right = 0;
  for (const auto v : test) {
    std::vector<double> distance(size.size(), 0);
    for (std::size_t c = 0; c < size.size(); ++c)
      for (std::int64_t k = 0; k < h.columns; ++k)
        distance[c] +=
            std::pow(static_cast<double>(h(v, k)) - mean(static_cast<std::int64_t>(c), k) / size[c], 2);
    right += std::ranges::min_element(distance) - distance.begin() == labels[v];
  }
  return static_cast<double>(right) / static_cast<double>(test.size());
}

}  // namespace espalier
