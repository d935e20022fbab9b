// ranks: 1
// Laws: those of gather_max_cases.hpp; neither threads nor the block's values change a bit.
#include "espalier/dense/gather_max.hpp"

#include "dense/gather_max_cases.hpp"

namespace espalier {
namespace {

TEST(GatherMax, TakesTheFirstOfTheLargest) {
  check_gather_max(Cpu{1}, [](const Block& block) { return SharedBlock(block, 77); });
}

TEST(GatherMax, ThreadsAndValuesDoNotMatter) {
  std::mt19937_64 random(test_seed(32));
  Block block = random_block_matrix(2000, 500, 9, random), transposed;
  const auto x = random_matrix<float>(500, 21, random), dm = random_matrix<float>(2000, 21, random);
  Matrix<float> one(2000, 21), many(2000, 21), dx(500, 21), again(500, 21);
  Buffer<std::int32_t> winners, same;
  Buffer<std::int32_t> positions;
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
