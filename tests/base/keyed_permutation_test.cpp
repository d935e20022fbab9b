// ranks: 1
// Laws of the computed permutation: a bijection of [0, n) for every n, another for every stream;
// over many streams any two places go to any two others equally often.
#include "espalier/base/philox.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "mpi_test.hpp"
#include "sample/sampling_laws.hpp"

namespace espalier {
namespace {

std::vector<std::int64_t> permuted(const RandomStream& stream, std::int64_t n) {
  const KeyedPermutation permutation(stream, n);
  std::vector<std::int64_t> images;
  for (std::int64_t place = 0; place < n; ++place) images.push_back(permutation(place));
  return images;
}

TEST(KeyedPermutation, IsABijection) {
  for (const std::int64_t n : {1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 1000, 4096, 70000}) {
    auto images = permuted({.seed = 3, .epoch = 9}, n);
    std::ranges::sort(images);
    for (std::int64_t k = 0; k < n; ++k) ASSERT_EQ(images[static_cast<std::size_t>(k)], k) << "of " << n;
  }
}

TEST(KeyedPermutation, HoldsForMoreThanAnArrayCould) {
  const auto n = (std::int64_t{1} << 62) + 12345;
  const KeyedPermutation permutation({.seed = 3}, n);
  std::set<std::int64_t> images;
  for (const std::int64_t place : {std::int64_t{0}, std::int64_t{1}, n / 2, n - 2, n - 1}) {
    const auto image = permutation(place);
    EXPECT_GE(image, 0);
    EXPECT_LT(image, n);
    images.insert(image);
  }
  EXPECT_EQ(images.size(), 5u);
}

TEST(KeyedPermutation, IsAnotherForEveryStream) {
  const auto first = permuted({.seed = 1, .epoch = 1}, 100);
  EXPECT_EQ(first, permuted({.seed = 1, .epoch = 1}, 100));
  EXPECT_NE(first, permuted({.seed = 1, .epoch = 2}, 100));
  EXPECT_NE(first, permuted({.seed = 2, .epoch = 1}, 100));
}

// All 7 * 6 images of two places.
TEST(KeyedPermutation, SendsTwoPlacesAnywhereEquallyOften) {
  constexpr std::int64_t kSize = 7;
  std::vector<std::int64_t> seen(kSize * kSize, 0);
  const auto seed = test_seed(4);
  SCOPED_TRACE(seed);
  for (std::uint64_t epoch = 0; epoch < 20000; ++epoch) {
    const KeyedPermutation permutation({.seed = seed, .epoch = epoch}, kSize);
    ++seen[static_cast<std::size_t>(permutation(2) * kSize + permutation(5))];
  }
  std::vector<double> law;
  std::vector<std::int64_t> counts;
  for (std::int64_t x = 0; x < kSize; ++x)
    for (std::int64_t y = 0; y < kSize; ++y) {
      const auto times = seen[static_cast<std::size_t>(x * kSize + y)];
      if (x == y) {
        EXPECT_EQ(times, 0);
        continue;
      }
      law.push_back(1.0 / (kSize * (kSize - 1)));
      counts.push_back(times);
    }
  expect_law(law, counts);
}

}  // namespace
}  // namespace espalier
