// Law of gather_rows of numbers, for every space: number j of a row is float32 of what was written,
// which is the nearest that the form has, of the row that is named, of one array or of the other.
#pragma once

#include <gtest/gtest.h>

#include "dense/random_matrices.hpp"
#include "espalier/feature/row_form.hpp"
#include "mpi_test.hpp"
#include "space_arrays.hpp"

namespace espalier {

/// `nearest`: by another way than the form's.
template <class T, class Space>
void check_numbers(const Space& space, Placement placement, float (*nearest)(float)) {
  std::mt19937_64 random(test_seed(33));
  for (const std::int64_t columns : {1, 3, 8, 32, 33, 100})
    for (const std::int64_t count : {0, 1, 70}) {
      SCOPED_TRACE(testing::Message() << count << " rows of " << columns << " numbers");
      const auto x = random_matrix<float>(50, columns, random);
      StoredRows<Cpu> rows({&row_kind_of(T()), columns}, 50);
      EXPECT_EQ(rows.bytes(), 50 * columns * std::int64_t{sizeof(T)});
      write_rows(rows.form, x, rows.data);
      const Buffer<std::byte> bytes(rows.data, rows.data + rows.bytes());
      const auto from = array_on(space, bytes), own = array_on(space, bytes, placement);
      Buffer<std::int64_t> source(count);
      for (auto& place : source) {
        place = static_cast<std::int64_t>(random() % 50);
        if (random() % 3 == 0) place = ~place;
      }
      const auto on_space = array_on(space, source);
      Matrix<float, Space> to(count, columns);
      gather_rows(space, RowFormOn<Space>{&row_kind_of(T()), columns}, from.data(), own.data(),
                  on_space.data(), to);
      const auto numbers = matrix_from(space, to);
      for (std::int64_t k = 0; k < count; ++k)
        for (std::int64_t j = 0; j < columns; ++j)
          EXPECT_EQ(numbers(k, j), nearest(x(source[k] < 0 ? ~source[k] : source[k], j))) << k << ", " << j;
    }
}

/// The number of so many bits, the hidden one too, that is nearest; of two the even one. By the
/// rounding of float64, of which x is so far from its ends that no exponent matters.
template <int kDigits>
float nearest_of(float x) {
  int exponent = 0;
  const double fraction = std::frexp(static_cast<double>(x), &exponent);
  return static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(fraction, kDigits)), exponent - kDigits));
}

template <class Space>
void check_all_numbers(const Space& space, Placement placement) {
  check_numbers<float>(space, placement, nearest_of<24>);
  check_numbers<Half>(space, placement, nearest_of<11>);
  check_numbers<BFloat16>(space, placement, nearest_of<8>);
}

}  // namespace espalier
