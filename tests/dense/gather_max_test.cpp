// ranks: 1
// Laws: those of gather_max_cases.hpp; neither threads nor the block's values change a bit.
#include "espalier/dense/gather_max.hpp"

#include "dense/gather_max_cases.hpp"

namespace espalier {
namespace {

TEST(GatherMax, HandChecked) {
  // The second row is empty, the third names row 1 twice.
  const Block block = {3, 3, {0, 2, 2, 5}, {0, 2, 1, 0, 1}, {}};
  const auto x = matrix_of<double>(3, 2, {1, -5, 4, 8, 1, 7}),
             dm = matrix_of<double>(3, 2, {1, 2, 99, 99, 10, 20});
  Matrix<double> m(3, 2), dx(3, 2);
  Buffer<std::int32_t> winners;
  gather_max<double>(Cpu{1}, block, x, m, winners);
  EXPECT_EQ(m.data, (Buffer<double>{1, 7, 0, 0, 4, 8}));
  EXPECT_EQ(winners, (Buffer<std::int32_t>{0, 1, -1, -1, 2, 2}));
  Block transposed;
  Buffer<std::int64_t> positions;
  transpose(Cpu{1}, block, transposed, &positions);
  gather_max_backward<double>(Cpu{1}, transposed, positions, winners, dm, dx);
  EXPECT_EQ(dx.data, (Buffer<double>{1, 0, 10, 20, 0, 2}));
}

TEST(GatherMax, TakesTheFirstOfTheLargest) {
  check_gather_max(Cpu{1}, [](const Block& block) { return SharedBlock(block, 77); });
}

TEST(GatherMax, ThreadsAndValuesDoNotMatter) {
  std::mt19937_64 random(test_seed(32));
  Block block = random_block_matrix(2000, 500, 9, random), transposed;
  const auto x = random_matrix<float>(500, 21, random), dm = random_matrix<float>(2000, 21, random);
  Matrix<float> one(2000, 21), many(2000, 21), dx(500, 21), again(500, 21);
  Buffer<std::int32_t> winners, same;
  Buffer<std::int64_t> positions;
  transpose(Cpu{1}, block, transposed, &positions);
  gather_max<float>(Cpu{1}, block, x, one, winners);
  gather_max_backward<float>(Cpu{1}, transposed, positions, winners, dm, dx);
  block.values.clear();
  for (const int threads : {1, 2, 5}) {
    gather_max<float>(Cpu{threads}, block, x, many, same);
    gather_max_backward<float>(Cpu{threads}, transposed, positions, same, dm, again);
    EXPECT_TRUE(same_bits(many, one) && same == winners && same_bits(again, dx)) << threads << " threads";
  }
}

}  // namespace
}  // namespace espalier
