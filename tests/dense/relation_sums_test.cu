// ranks: 1
// Law: relation sums and their gradients on a GPU are a loop's in double within what float32
// rounds, wherever in common arrays the block lies; two runs give the same bits.
#include "espalier/dense/relation_sums.hpp"

#include "dense/device_matrices.hpp"
#include "dense/relation_sums_cases.hpp"
#include "espalier/sparse/transpose.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

class RelationSumsCuda : public CudaTest {};

using Case = RelationCase<float>;

/// On the GPU, the block behind `before` entries of others.
RelationResults<float> on_gpu(const Cuda& gpu, const Case& c, std::int64_t before, bool related = true) {
  const SharedDeviceBlock stored(gpu, c.block, before);
  const auto relations = upload(gpu, behind(before, c.of_entries));
  return results_of(gpu, c, related ? with_relations(stored.block, relations) : stored.block);
}

void expect_right(const Cuda& gpu, const Case& c) {
  SCOPED_TRACE(in_words(c));
  const auto result = on_gpu(gpu, c, 0);
  expect_right(c, result);
  EXPECT_TRUE(on_gpu(gpu, c, 0) == result);
  EXPECT_TRUE(on_gpu(gpu, c, 77) == result);
}

TEST_F(RelationSumsCuda, AgreeWithALoop) {
  std::mt19937_64 random(test_seed(31));
  for (const std::int64_t rows : {0, 1, 40})
    for (const std::int64_t columns : {1, 3, 70})
      for (const int most : {0, 1, 20})
        for (const std::int64_t f : {1, 7, 33})
          for (const auto& [relations, bases] : {std::pair{1, 1}, {22, 8}, {3, 3}, {5, 1}}) {
            Block block = random_block_matrix(rows, columns, most, random);
            if (random() % 4 == 0) block.values.clear();  // all 1
            expect_right(gpu(), Case(block, f, relations, bases, random));
          }
}

TEST_F(RelationSumsCuda, ManyRowsAndRelations) {
  std::mt19937_64 random(test_seed(32));
  expect_right(gpu(), Case(random_block_matrix(300, 40, 60, random), 20, 200, 3, random));
}

TEST_F(RelationSumsCuda, WithoutRelationsAllEntriesAreOfRelation0) {
  std::mt19937_64 random(test_seed(33));
  Case c(random_block_matrix(90, 60, 9, random), 33, 4, 3, random);
  std::ranges::fill(c.of_entries, std::uint8_t{0});
  EXPECT_TRUE(on_gpu(gpu(), c, 5, false) == on_gpu(gpu(), c, 5));
}

}  // namespace
}  // namespace espalier
