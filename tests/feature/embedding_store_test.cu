// ranks: 1 3 4
// Laws of embeddings on GPUs: rows are those that one loop over all minibatches, by their numbers,
// would have made of them on the host, to the last bit, on every grid and in every copy; a fetch
// gives the rows of the moment in which it ends.
#include "comm/device_transports.hpp"
#include "dense/device_matrices.hpp"
#include "embedding_store_cases.hpp"

namespace espalier {
namespace {

class EmbeddingsOnGpu : public CudaTest {};

TEST_F(EmbeddingsOnGpu, AreThoseOfOneLoop) {
  for (const int c : divisors(test_world().size())) {
    const Grid host(test_world(), c);
    const DeviceGrid grid(own_gpu(), host);
    for (const auto owned : {Owned::kInRanges, Owned::kAtRandom})
      for (const std::string optimizer : {"adam", "adagrad"}) {
        const EmbeddingOptions options = {.optimizer = optimizer, .seed = 3};
        LoopedEmbeddings expected(7, options);
        TestedEmbeddings<Cuda> tested(own_gpu(), grid, owned, 7, options);
        for (std::uint64_t round = 0; round < 4; ++round) {
          SCOPED_TRACE(fmt::format("{} c {} round {}", optimizer, c, round));
          const auto batches = random_batches(round, round == 2 ? 1 : 9, kEmbedded, 7);
          std::vector<PendingFetchOn<Cuda>> fetches(3);
          for (std::size_t move = 0; move < 3; ++move)
            tested.begin(fetches[move], static_cast<FetchMove>(move));
          tested.update(0.01, batches);
          expected.update(0.01f, batches);
          for (auto& fetch : fetches) EXPECT_EQ(tested.finish(fetch).data, expected.rows.data);
          EXPECT_EQ(
              tested.store.kept_rows(own_gpu()).size(),
              static_cast<std::size_t>(
                  7 * even_range(tested.store.rows().ownership().size(host.row()), c, host.column()).size()));
        }
      }
  }
}

}  // namespace
}  // namespace espalier
