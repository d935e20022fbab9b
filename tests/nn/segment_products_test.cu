// ranks: 1
// Laws: products of segments on a GPU are those of loops in double within what float32 rounds, and
// softmaxes those of the CPU; two runs have the same bits.
#include "dense/device_matrices.hpp"
#include "mpi_test.hpp"
#include "nn/segment_products_cases.hpp"

namespace espalier {
namespace {

class SegmentProductsCuda : public CudaTest {
 protected:
  SegmentResults on_gpu(const SegmentCase<float>& c) {
    const SharedDeviceBlock stored(gpu(), c.block, 9);
    const auto relations = upload(gpu(), behind(9, c.of_entries));
    return by_segments(gpu(), c, with_relations(stored.block, relations));
  }
};

TEST_F(SegmentProductsCuda, AgreeWithLoops) {
  for_each_segment_case(test_seed(54), [&](const Block& block, std::int64_t heads, std::int64_t width,
                                           std::int64_t relations, bool whole, std::mt19937_64& random) {
    const SegmentCase<float> c(block, heads, width, relations, whole, random);
    const auto result = on_gpu(c);
    expect_near(result, by_loops(c), 1e-3);
    expect_near(on_gpu(c), result, 1e-300);
  });
}

TEST_F(SegmentProductsCuda, SoftmaxesAgreeWithTheCpu) {
  std::mt19937_64 random(test_seed(55));
  for (const std::int64_t heads : {1, 3})
    for (const double rate : {0.0, 0.4})
      for (const SoftmaxOver over : {SoftmaxOver{}, SoftmaxOver{.relations = true, .slope = 0.2}}) {
        const SegmentCase<float> c(random_block_matrix(70, 50, 20, random), heads, 1, 4, true, random);
        const RandomStream mask{3, Purpose::kAttention, 1, 2, 3, 0};
        Matrix<float> weights, gradients = c.w;
        entry_softmax<float>(Cpu{1}, c.view(), over, c.w, mask, rate, weights);
        entry_softmax_backward<float>(Cpu{1}, c.view(), over, c.w, weights, rate, gradients);
        const SharedDeviceBlock stored(gpu(), c.block, 9);
        const auto relations = upload(gpu(), behind(9, c.of_entries));
        const auto view = with_relations(stored.block, relations);
        const auto scores = to_device(gpu(), c.w);
        Matrix<float, Cuda> of_device;
        auto back = to_device(gpu(), c.w);
        entry_softmax<float>(gpu(), view, over, scores, mask, rate, of_device);
        entry_softmax_backward<float>(gpu(), view, over, scores, of_device, rate, back);
        EXPECT_LT(largest_difference(to_host(gpu(), of_device), weights), 1e-6);
        EXPECT_LT(largest_difference(to_host(gpu(), back), gradients), 1e-6);
      }
}

}  // namespace
}  // namespace espalier
