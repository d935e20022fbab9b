// Stores of rows, for the tests of every space: rows that are a formula of their vertex;
// minibatches that have gradients for rows, on which rank, and what a loop over all of them
// adds up to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "dense/random_matrices.hpp"
#include "espalier/base/arrays.hpp"
#include "espalier/base/philox.hpp"
#include "espalier/feature/row_store.hpp"
#include "partition/owned.hpp"

namespace espalier {

/// The rows of a part, as they are stored, of a matrix whose number j of vertex v is number(v, j).
template <class T, class Number>
Matrix<T> stored_rows(const Ownership& ownership, int part, std::int64_t width, const Number& number) {
  Matrix<T> rows(ownership.size(part), width);
  for (std::int64_t k = 0; k < rows.rows; ++k)
    for (std::int64_t j = 0; j < width; ++j) rows(k, j) = as_stored<T>(number(ownership.vertex(part, k), j));
  return rows;
}

template <class Space>
struct ListsOnSpace {
  std::vector<Array<Space, std::int64_t>> arrays;
  std::vector<std::span<const std::int64_t>> spans;
  ListsOnSpace(const Space& space, const std::vector<std::vector<std::int64_t>>& lists) {
    for (const auto& list : lists) {
      arrays.push_back(copy_to<std::int64_t, Space>(space, list));
      spans.emplace_back(arrays.back().data(), list.size());
    }
  }
};

struct PushedBatch {
  std::int64_t number = 0;
  std::vector<std::int64_t> ids;
  Matrix<float> rows;
};

/// Of so many magnitudes that another order of additions gives other bits.
inline float pushed_value(std::uint64_t seed, std::int64_t batch, std::int64_t k) {
  const RandomStream stream = {
      .seed = seed, .batch = static_cast<std::uint64_t>(batch), .row = static_cast<std::uint64_t>(k)};
  const auto magnitude = static_cast<int>(random64(stream, 1) % 24) - 12;
  return std::ldexp(static_cast<float>(to_unit_double(random64(stream, 0))) - 0.5f, magnitude);
}

/// Minibatches 0, 3, 6, ..: of few or many rows, with ids several times, within one too.
inline std::vector<PushedBatch> random_batches(std::uint64_t seed, std::int64_t count, std::int64_t vertices,
                                               std::int64_t width) {
  std::vector<PushedBatch> batches;
  for (std::int64_t b = 0; b < count; ++b) {
    PushedBatch batch;
    batch.number = 3 * b;
    const RandomStream stream = {.seed = seed, .layer = 1, .row = static_cast<std::uint64_t>(b)};
    const auto rows = static_cast<std::int64_t>(random64(stream, 0) % 40) * (b % 4 == 3 ? 0 : 1);
    for (std::int64_t k = 0; k < rows; ++k)
      batch.ids.push_back(static_cast<std::int64_t>(random64(stream, static_cast<std::uint64_t>(k + 1)) %
                                                    static_cast<std::uint64_t>(vertices)));
    batch.rows.resize(rows, width);
    for (std::int64_t k = 0; k < rows * width; ++k)
      batch.rows.data[static_cast<std::size_t>(k)] = pushed_value(seed, b, k);
    batches.push_back(std::move(batch));
  }
  return batches;
}

/// Those of a rank; each is of one, whatever their number. They need not ascend.
inline std::vector<PushedBatch> of_rank(const std::vector<PushedBatch>& batches, int rank, int ranks) {
  std::vector<PushedBatch> mine;
  for (auto batch = batches.rbegin(); batch != batches.rend(); ++batch)
    if (static_cast<int>(batch->number * 5 / 3 % ranks) == rank) mine.push_back(*batch);
  return mine;
}

/// What one loop adds to the rows.
inline void add_in_a_loop(const std::vector<PushedBatch>& batches, Matrix<float>& rows) {
  for (const auto& batch : batches)
    for (std::size_t k = 0; k < batch.ids.size(); ++k)
      for (std::int64_t j = 0; j < rows.columns; ++j)
        rows(batch.ids[k], j) += batch.rows(static_cast<std::int64_t>(k), j);
}

inline Matrix<float> first_rows(std::int64_t vertices, std::int64_t width) {
  Matrix<float> rows(vertices, width);
  for (std::int64_t k = 0; k < vertices * width; ++k)
    rows.data[static_cast<std::size_t>(k)] = pushed_value(99, 1000, k);
  return rows;
}

}  // namespace espalier
