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
        const auto look = [&](const EmbeddingStoreOn<Cuda>& store, const auto&) {
          const auto share = even_range(store.rows().ownership().size(host.row()), c, host.column());
          EXPECT_EQ(store.kept_rows(own_gpu()).size(), static_cast<std::size_t>(7 * share.size()));
        };
        expect_updates(own_gpu(), grid, owned, options, 0, look);
      }
  }
}

}  // namespace
}  // namespace espalier
