// ranks: 1
// Law: a network's scores and gradients are the CPU's on a GPU, but for what products of matrices
// round otherwise.
#include "dense/device_matrices.hpp"
#include "mpi_test.hpp"
#include "nn/link_decoder_cases.hpp"

namespace espalier {
namespace {

class LinkDecoderCuda : public CudaTest {};

TEST_F(LinkDecoderCuda, IsTheCpus) {
  std::mt19937_64 random(test_seed(76));
  for (const char* name : {"dot", "complex", "mlp"})
    for (const std::int64_t count : {0, 1, 50, 1500}) {
      SCOPED_TRACE(testing::Message() << name << ", " << count << " links");
      const DecoderCase c(name, 13, 16, 3, count, random);
      const auto heads = upload(gpu(), c.links.heads), tails = upload(gpu(), c.links.tails),
                 of = upload(gpu(), c.links.of);
      const auto results = by_decoder(gpu(), c, {c.links.links(), heads.data(), tails.data(), of.data()});
      const auto expected = on_cpu(c);
      EXPECT_LT(largest_difference(results.scores, expected.scores), 2e-5);
      EXPECT_LT(largest_difference(results.dh, expected.dh), 1e-4);
      for (std::size_t k = 0; k < expected.gradients.size(); ++k)
        EXPECT_LT(largest_difference(results.gradients[k], expected.gradients[k]), 1e-3) << k;
    }
}

}  // namespace
}  // namespace espalier
