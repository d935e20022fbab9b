// Law of gather_rows of codes, for every space: a number is float32(a + code step) in float64, of
// the row that is named, of one matrix or of the other; a number that was packed is the level
// next to it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "dense/random_matrices.hpp"
#include "espalier/feature/quantised_rows.hpp"
#include "mpi_test.hpp"
#include "space_arrays.hpp"

namespace espalier {

/// Rows of which columns differ in magnitude, some have one number alone.
inline Matrix<float> rows_to_pack(std::int64_t rows, std::int64_t columns, std::mt19937_64& random) {
  auto x = random_matrix<float>(rows, columns, random);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      x(i, j) = std::ldexp(x(i, j), static_cast<int>(j * 7 % 40) - 20);
      if (j % 5 == 3) x(i, j) += 100;
      if (j % 7 == 4) x(i, j) = 0.3f;
    }
  return x;
}

inline StoredRows<Cpu> packed(const Matrix<float>& rows, int bits, const Quantisation& packing) {
  StoredRows<Cpu> result({kind_asked(bits), rows.columns, std::make_shared<Quantisation>(packing)},
                         rows.rows);
  write_rows(result.form, rows, result.data);
  return result;
}

/// The number on the level next to x, of two as near the even one: looked for among all.
inline float level_next_to(double x, double least, double most, int bits) {
  const int last = (1 << bits) - 1;
  const double step = (most - least) / last;
  int best = 0;
  for (int level = 1; level <= last && step > 0; ++level) {
    const double now = std::abs((x - least) / step - level), before = std::abs((x - least) / step - best);
    if (now < before || (now == before && level % 2 == 0)) best = level;
  }
  return static_cast<float>(least + best * step);
}

template <class Space>
void check_unpack(const Space& space, Placement placement) {
  std::mt19937_64 random(test_seed(31));
  for (const int bits : {1, 2, 4, 8})
    for (const std::int64_t columns : {1, 3, 8, 16, 17, 33, 100})
      for (const std::int64_t count : {0, 1, 70}) {
        SCOPED_TRACE(testing::Message()
                     << count << " rows of " << columns << " numbers of " << bits << " bits");
        const auto x = rows_to_pack(50, columns, random);
        const Communicator& self = test_world();
        const auto packing = measure_packing([&](const auto& use) { use(x); }, columns, bits, self);
        const auto rows = packed(x, bits, packing);
        const Buffer<std::byte> bytes(rows.data, rows.data + rows.bytes());
        const auto from = array_on(space, bytes), own = array_on(space, bytes, placement);
        Buffer<std::int64_t> source(count);
        for (auto& place : source) {
          place = static_cast<std::int64_t>(random() % 50);
          if (random() % 3 == 0) place = ~place;
        }
        const RowFormOn<Space> there = {
            kind_asked(bits), columns,
            std::make_shared<QuantisationOn<Space>>(QuantisationOn<Space>{
                columns, bits, array_on(space, packing.least), array_on(space, packing.step)})};
        const auto on_space = array_on(space, source);
        Matrix<float, Space> to(count, columns);
        gather_rows(space, there, from.data(), own.data(), on_space.data(), to);
        const auto numbers = matrix_from(space, to);
        for (std::int64_t j = 0; j < columns; ++j) {
          double least = x(0, j), most = x(0, j);
          for (std::int64_t i = 0; i < 50; ++i) {
            least = std::min<double>(least, x(i, j));
            most = std::max<double>(most, x(i, j));
          }
          for (std::int64_t k = 0; k < count; ++k) {
            const double given = x(source[k] < 0 ? ~source[k] : source[k], j);
            EXPECT_EQ(numbers(k, j), level_next_to(given, least, most, bits)) << k << ", " << j;
            if (given == least || given == most) EXPECT_EQ(numbers(k, j), static_cast<float>(given));
          }
        }
      }
}

}  // namespace espalier
