// ranks: 1 3 6
// long ranks: 2 4
// Law: embeddings that are spread over ranks are saved and read back by their own rows: on every
// grid and whoever owns which vertex the same bytes and digest, and from them the same rows again.
#include <gtest/gtest.h>

#include "espalier/train/weights_file.hpp"
#include "feature/embedding_store_cases.hpp"
#include "mpi_test.hpp"
#include "train/checkpoint_bytes.hpp"

namespace espalier {
namespace {

// The seed of the first rows.
TestedEmbeddings<Cpu> embeddings(const Grid& grid, Owned owned, std::int64_t width, std::uint64_t seed) {
  return {Cpu{1}, grid, owned, width, {.seed = seed}};
}

std::string bytes_of(const Grid& grid, const TestedEmbeddings<Cpu>& tested) {
  Checkpoint checkpoint;
  checkpoint.state.tensors = tested.store.state(Cpu{1});
  return checkpoint_bytes(grid.world(), checkpoint);
}

std::uint64_t digest_of(const Grid& grid, const TestedEmbeddings<Cpu>& tested) {
  return weights_digest(grid.world(), {{}, {}, tested.store.weights(Cpu{1})});
}

// The wide table is larger than what is read at a time; it is owned in one way on each grid.
TEST(StoreCheckpoint, EveryGridSavesTheSameBytesAndReadsThemBack) {
  for (const std::int64_t width : {1, 3, 30000}) {
    const auto batches = random_batches(5, 9, kEmbedded, width);
    const Grid whole(test_world(), test_world().size());
    auto first = embeddings(whole, Owned::kInRanges, width, 3);
    first.update(0.01, batches);
    const auto expected = bytes_of(whole, first);
    const auto digest = digest_of(whole, first);
    const auto checkpoint = checkpoint_from(test_world(), expected);
    for (const int c : divisors(test_world().size()))
      for (const auto owned : kAllOwned) {
        if (width > 3 && owned != kAllOwned[c % 3]) continue;
        SCOPED_TRACE(fmt::format("c {} width {} owned {}", c, width, static_cast<int>(owned)));
        const Grid grid(test_world(), c);
        auto store = embeddings(grid, owned, width, 3), other = embeddings(grid, owned, width, 4);
        store.update(0.01, batches);
        EXPECT_TRUE(bytes_of(grid, store) == expected);
        EXPECT_NE(digest_of(grid, other), digest);
        other.store.restore(Cpu{1}, finder(checkpoint.state.tensors));
        EXPECT_TRUE(bytes_of(grid, other) == expected);
        EXPECT_EQ(digest_of(grid, other), digest);
      }
  }
}

}  // namespace
}  // namespace espalier
