// Law of gather_max, for every space: m_i is the largest of the rows that row i names, element by
// element, NaN where one of them is NaN, 0 without any; the winner is the first entry that has it,
// and takes all of the gradient.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "dense/random_matrices.hpp"
#include "espalier/dense/gather_max.hpp"
#include "espalier/sparse/transpose.hpp"
#include "mpi_test.hpp"
#include "space_arrays.hpp"

namespace espalier {

/// Few different numbers, so that many are equal; 0 and -0, infinities.
inline Matrix<float> awkward_rows(std::int64_t rows, std::int64_t columns, std::mt19937_64& random) {
  constexpr float kNumbers[] = {-1, -1, 2, 2, 0.5f, 0, -0.0f, -INFINITY, INFINITY, -3};
  Matrix<float> m(rows, columns);
  for (float& x : m.data) x = kNumbers[random() % 10];
  return m;
}

/// Element j of the row that entry `e`, counted from the block's first, names.
inline float element(const Block& block, const Matrix<float>& x, std::int64_t e, std::int64_t j) {
  return x(block.indices[static_cast<std::size_t>(e)], j);
}

inline void expect_largest(const Block& block, const Matrix<float>& x, const Matrix<float>& m,
                           const Buffer<std::int32_t>& winners) {
  ASSERT_EQ(winners.size(), m.data.size());
  for (std::int64_t i = 0; i < block.rows; ++i)
    for (std::int64_t j = 0; j < x.columns; ++j) {
      const float most = m(i, j);
      const std::int64_t winner = winners[static_cast<std::size_t>(i * x.columns + j)];
      if (block.row_size(i) == 0) {
        EXPECT_EQ(most, 0);
        EXPECT_EQ(winner, -1);
        continue;
      }
      ASSERT_TRUE(winner >= block.row_begin(i) && winner < block.row_end(i));
      const float won = element(block, x, winner, j);
      EXPECT_EQ(std::signbit(won), std::signbit(most)) << "the winner's own 0 or -0";
      EXPECT_TRUE(won == most || (std::isnan(won) && std::isnan(most)));
      for (std::int64_t e = block.row_begin(i); e < block.row_end(i); ++e) {
        const float other = element(block, x, e, j);
        if (e < winner)
          EXPECT_TRUE(std::isnan(most) ? !std::isnan(other) : other < most) << "an earlier entry has it";
        else
          EXPECT_TRUE(std::isnan(most) || other <= most);
      }
    }
}

template <class View>
void check_gather_max(const auto& space, const Block& block, const View& view, const Matrix<float>& x,
                      const Matrix<float>& dm) {
  using Space = std::remove_cvref_t<decltype(space)>;
  Matrix<float, Space> m(block.rows, x.columns), dx(block.columns, x.columns);
  Array<Space, std::int32_t> winners;
  gather_max<float>(space, view, matrix_on(space, x), m, winners);
  const auto on_host = matrix_from(space, m);
  const auto winners_on_host = array_from(space, winners);
  expect_largest(block, x, on_host, winners_on_host);

  // The gradient goes to the winner's row, in the order of the entries.
  auto expected = filled_matrix(block.columns, x.columns, 0.0f);
  for (std::int64_t e = 0; e < block.entries(); ++e)
    for (std::size_t at = 0; at < winners_on_host.size(); ++at)
      if (winners_on_host[at] == e)
        expected(block.indices[static_cast<std::size_t>(e)], static_cast<std::int64_t>(at) % x.columns) +=
            dm.data[at];
  Csr<std::int32_t, Space> transposed;
  Array<Space, std::int32_t> positions;
  transpose(space, view, transposed, &positions);
  gather_max_backward<float>(space, transposed, positions, winners, matrix_on(space, dm), dx);
  EXPECT_TRUE(same_bits(matrix_from(space, dx), expected));
}

/// `view_of(block)` gives the block in memory of the space, behind entries of others.
void check_gather_max(const auto& space, const auto& place) {
  std::mt19937_64 random(test_seed(31));
  for (const std::int64_t rows : {0, 1, 70})
    for (const std::int64_t f : {1, 3, 8, 33})
      for (const int most : {0, 1, 6})
        for (const bool diverged : {false, true}) {
          SCOPED_TRACE(testing::Message()
                       << rows << " rows of " << f << ", up to " << most << " entries, NaN " << diverged);
          const Block block = random_block_matrix(rows, 40, most, random);
          auto x = awkward_rows(40, f, random);
          if (diverged)
            for (int k = 0; k < 5; ++k) x(static_cast<std::int64_t>(random() % 40), k % f) = NAN;
          const auto dm = random_matrix<float>(rows, f, random);
          const auto placed = place(block);
          check_gather_max(space, block, placed.block, x, dm);
        }
}

}  // namespace espalier
