// Law of dense/first_not_finite.hpp, for a space: the first of any of the numbers that <cmath> does
// not call finite, wherever it stands; -1 where there is none, the largest and smallest numbers
// among them.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "espalier/base/buffer.hpp"
#include "espalier/dense/first_not_finite.hpp"

namespace espalier {

template <class First>
void check_first_not_finite(const First& first) {
  using Limits = std::numeric_limits<float>;
  EXPECT_EQ(first(Buffer<float>{}), -1);
  for (const std::int64_t size : {1, 63, 4096, 4097, 70000}) {
    Buffer<float> values(static_cast<std::size_t>(size));
    const float finite[] = {0.0f, -0.0f, Limits::max(), -Limits::max(), Limits::denorm_min(), 1.5f};
    for (std::int64_t k = 0; k < size; ++k) values[k] = finite[k % 6];
    EXPECT_EQ(first(values), -1) << size;
    for (const float bad :
         {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), -Limits::quiet_NaN()})
      for (const std::int64_t place : {std::int64_t{0}, size / 2, size - 1}) {
        auto some = values;
        some[place] = bad;
        EXPECT_EQ(first(some), place) << bad << " of " << size;
        some[size - 1] = Limits::quiet_NaN();  // another behind it
        EXPECT_EQ(first(some), place) << bad << " of " << size;
      }
  }
}

}  // namespace espalier
