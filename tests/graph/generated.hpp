// What tests of generated graphs ask: are they the same for every number of ranks, and how well do
// rows tell their classes?
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "dense/random_matrices.hpp"
#include "espalier/graph/graph_file.hpp"
#include "mpi_test.hpp"

namespace espalier {

/// Collective. What generate(comm, path) writes with all ranks is what one of them writes alone;
/// the digest of the file.
template <class Generate>
std::string same_for_every_rank_count(const Generate& generate) {
  const auto& world = test_world();
  const auto folder = test_folder("generated");
  generate(world, folder + "/together.h5");
  const GraphFile together(world, folder + "/together.h5");
  check_splits(world, together);
  read_everything(world, together);
  const auto alone = world.split(world.rank(), 0);
  if (world.rank() == 0) {
    generate(alone, folder + "/alone.h5");
    const GraphFile by_one(alone, folder + "/alone.h5");
    read_everything(alone, by_one);
    EXPECT_EQ(together.content().datasets, by_one.content().datasets);
    EXPECT_EQ(together.info().source, by_one.info().source);
  }
  world.barrier();
  return hex(together.content().file.value_or(0));
}

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
