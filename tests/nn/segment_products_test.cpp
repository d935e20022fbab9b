// ranks: 1
// Laws: products of segments, and softmaxes over rows or over each relation's part of them, are
// what loops over the entries give in double, for any shape. Threads, places of blocks:
// layer_test.cpp.
#include "mpi_test.hpp"
#include "nn/segment_products_cases.hpp"

namespace espalier {
namespace {

TEST(SegmentProducts, AgreeWithLoops) {
  for_each_segment_case(test_seed(51), [](const Block& block, std::int64_t heads, std::int64_t width,
                                          std::int64_t relations, bool whole, std::mt19937_64& random) {
    const SegmentCase<double> exact(block, heads, width, relations, whole, random);
    expect_near(by_segments(Cpu{1}, exact, exact.view()), by_loops(exact), 1e-12);
    const SegmentCase<float> single(block, heads, width, relations, whole, random);
    expect_near(by_segments(Cpu{1}, single, single.view()), by_loops(single), 1e-3);
  });
}

TEST(EntrySoftmax, AgreesWithLoops) {
  std::mt19937_64 random(test_seed(53));
  for (const std::int64_t heads : {1, 3})
    for (const SoftmaxOver over : {SoftmaxOver{}, SoftmaxOver{.relations = true, .slope = 0.2}}) {
      const SegmentCase<double> c(random_block_matrix(70, 50, 20, random), heads, 1, 4, true, random);
      const auto by_weight = random_matrix<double>(c.w.rows, heads, random);
      const auto [expected, gradients] = softmax_by_loops(c, over, by_weight);
      Matrix<double> weights, back = by_weight;
      entry_softmax<double>(Cpu{2}, c.view(), over, c.w, {}, 0, weights);
      EXPECT_LT(largest_difference(weights, expected), 1e-14);
      entry_softmax_backward<double>(Cpu{2}, c.view(), over, c.w, weights, 0, back);
      EXPECT_LT(largest_difference(back, gradients), 1e-14);
    }
}

}  // namespace
}  // namespace espalier
