// ranks: 1
// Law: the transpose of a GPU is the CPU's, entry by entry, with its positions and without,
// wherever in common arrays the block lies; and so is each of many that are made at once.
#include "espalier/sparse/transpose.hpp"

#include "dense/device_matrices.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

class TransposeCuda : public CudaTest {};

TEST_F(TransposeCuda, IsThatOfTheCpu) {
  std::mt19937_64 random(test_seed(31));
  Csr<std::int32_t, Cuda> reused;
  DeviceArray<std::int32_t> positions;
  for (const std::int64_t rows : {0, 1, 7, 300})
    for (const std::int64_t columns : {0, 1, 9, 64, 1000})
      for (const int most : {0, 2, 20})
        for (const bool values : {true, false}) {
          SCOPED_TRACE(testing::Message() << rows << " x " << columns << ", at most " << most);
          Block block = random_block_matrix(rows, columns, most, random);
          if (!values) block.values.clear();
          Block expected;
          Buffer<std::int32_t> expected_positions;
          transpose(Cpu{1}, block, expected, &expected_positions);
          const SharedDeviceBlock on_device(gpu(), block, 11);
          transpose(gpu(), on_device.block, reused);
          EXPECT_TRUE(same_block(to_host(gpu(), reused), expected));
          transpose(gpu(), on_device.block, reused, &positions);
          EXPECT_TRUE(same_block(to_host(gpu(), reused), expected));
          EXPECT_EQ(download(gpu(), positions), expected_positions);
        }
}

void expect_transposes_of_the_cpu(const Cuda& gpu, const std::vector<Block>& blocks, std::int64_t at_once) {
  std::vector<SharedDeviceBlock> on_device;
  for (const auto& block : blocks) on_device.emplace_back(gpu, block, 7);
  std::vector<BlockView<Cuda>*> views;
  for (auto& block : on_device) views.push_back(&block.block);
  const auto memory = transpose_all(gpu, views, at_once);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    SCOPED_TRACE(testing::Message() << "block " << b << " of " << blocks.size());
    const auto expected = transpose(blocks[b]);
    const auto& made = views[b]->transposed;
    const auto starts = download(gpu, made.indptr, expected.indptr.size());
    for (std::size_t j = 0; j < starts.size(); ++j)
      ASSERT_EQ(starts[j] - starts[0], expected.indptr[j]) << "row " << j;
    const auto entries = static_cast<std::size_t>(blocks[b].entries());
    EXPECT_EQ(download(gpu, made.indices + starts[0], entries), expected.indices);
    if (blocks[b].has_values())
      EXPECT_EQ(download(gpu, made.values + starts[0], entries), expected.values);
    else
      EXPECT_EQ(made.values, nullptr);
  }
}

TEST_F(TransposeCuda, ManyAtOnceAreEachThatOfTheCpu) {
  expect_transposes_of_the_cpu(gpu(), {}, 9);
  std::mt19937_64 random(test_seed(32));
  std::vector<Block> blocks;
  for (const std::int64_t rows : {0, 1, 7, 300})
    for (const std::int64_t columns : {0, 1, 64, 1000}) {
      blocks.push_back(random_block_matrix(rows, columns, 5, random));
      if (columns == 64) blocks.back().values.clear();
    }
  for (const std::int64_t at_once : {1, 500, 1 << 23}) expect_transposes_of_the_cpu(gpu(), blocks, at_once);
}

}  // namespace
}  // namespace espalier
