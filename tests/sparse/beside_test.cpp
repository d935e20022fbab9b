// Law: what lies beside entries, or not, is said by who makes the view, not by where it lies: an
// array without elements is there. Views are not taken of what is gone at the semicolon.
#include "espalier/sparse/csr.hpp"

#include <gtest/gtest.h>

namespace espalier {
namespace {

using Values = Beside<const float>;
using Floats = Buffer<float>;

// Of arrays that stay; not of pointers, which may be null where an array is empty.
static_assert(std::constructible_from<Values, const Floats&> &&
              std::constructible_from<Values, std::span<float>>);
static_assert(!std::constructible_from<Values, Floats> && !std::constructible_from<Values, const float*>);
static_assert(!std::convertible_to<const Floats&, Values>, "said, not taken for granted");
static_assert(sizeof(Values) == sizeof(float*) && std::is_trivially_copyable_v<Values>);

template <class Matrix>
concept ShowsRows = requires(Matrix&& a) {
  std::forward<Matrix>(a).row_indices(0);
}
|| requires(Matrix&& a) {
  std::forward<Matrix>(a).row_values(0);
}
|| requires(Matrix&& a) {
  std::forward<Matrix>(a).values_beside();
}
|| requires(Matrix&& a) {
  row_view(std::forward<Matrix>(a), 0);
};
static_assert(ShowsRows<const Block&> && !ShowsRows<Block>);

TEST(Beside, AnArrayWithoutElementsIsThere) {
  const Floats some = {1, 2, 3}, none;
  EXPECT_EQ(Values(), nullptr);
  EXPECT_EQ(Values(nullptr), nullptr);
  EXPECT_EQ(Values(false, some), nullptr);
  EXPECT_EQ(Values() + 2, nullptr);
  EXPECT_EQ(Values(some), some.data());
  EXPECT_EQ(Values(some) + 2, some.data() + 2);
  EXPECT_EQ((Values(true, some) + 1)[1], 3);
  EXPECT_EQ(none.data(), nullptr);
  EXPECT_NE(Values(none), nullptr);
  EXPECT_NE(Values(std::span<const float>()), nullptr);
}

TEST(Beside, AMatrixSaysWhetherItHasValues) {
  for (const bool weighted : {false, true})
    for (const bool entries : {false, true}) {
      Block block;
      block.rows = 1, block.columns = 3, block.weighted = weighted;
      block.indptr = {0, entries ? 2 : 0};
      if (entries) block.indices = {0, 2};
      if (entries && weighted) block.values = {1, 2};
      EXPECT_EQ(block.has_values(), weighted);
      EXPECT_EQ(BlockView<>(block).has_values(), weighted);
      EXPECT_EQ(row_view(block, 0).values != nullptr, weighted);
      EXPECT_EQ(copy_of(block).has_values(), weighted);
      block.values.clear();
      EXPECT_EQ(block.has_values(), weighted && !entries) << "what is not there is not read";
    }
}

}  // namespace
}  // namespace espalier
