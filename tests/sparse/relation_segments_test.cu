// ranks: 1
// Law: the segments of a block on a GPU, and the entries of a relation by source, are the CPU's.
#include "dense/device_matrices.hpp"
#include "espalier/sparse/transpose.hpp"
#include "mpi_test.hpp"
#include "sparse/relation_segments_cases.hpp"

namespace espalier {
namespace {

class RelationSegmentsCuda : public CudaTest {};

RelationSegments to_host(const Cuda& gpu, const RelationSegmentsOn<Cuda>& found) {
  RelationSegments there;
  there.first = found.first;
  there.first_entry = found.first_entry;
  there.rows = download(gpu, found.rows);
  there.begins = download(gpu, found.begins);
  there.ends = download(gpu, found.ends);
  there.numbers = download(gpu, found.numbers);
  return there;
}

TEST_F(RelationSegmentsCuda, CoverAnyBlock) {
  std::mt19937_64 random(test_seed(43));
  for (const std::int64_t rows : {0, 1, 50})
    for (const std::int64_t columns : {1, 3, 70})
      for (const int most : {0, 1, 30})
        for (const std::int64_t relations : {1, 2, 22, 256})
          for (const std::int64_t before : {0, 9}) {
            const Block block = random_block_matrix(rows, columns, most, random);
            const auto of_entries = random_relations(block, relations, random);
            const SharedDeviceBlock stored(gpu(), block, before);
            const auto of_device = upload(gpu(), behind(before, of_entries));
            const auto view = with_relations(stored.block, of_device.data());
            RelationSegmentsOn<Cuda> found;
            find_segments(gpu(), view, relations, found);
            expect_segments(block, of_entries, relations, to_host(gpu(), found));
            Csr<std::int32_t, Cuda> transposed;
            DeviceArray<std::int64_t> positions;
            DeviceArray<std::int32_t> order;
            transpose(gpu(), view, transposed, &positions);
            order_by_source(gpu(), view, positions, found, order);
            expect_order(block, of_entries, download(gpu(), order));
          }
}

}  // namespace
}  // namespace espalier
