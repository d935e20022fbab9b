// ranks: 1
// Law: the segments of a block on a GPU, and the entries of a relation by source, are the CPU's.
#include "dense/device_matrices.hpp"
#include "mpi_test.hpp"
#include "sparse/relation_segments_cases.hpp"

namespace espalier {
namespace {

class RelationSegmentsCuda : public CudaTest {};

TEST_F(RelationSegmentsCuda, CoverAnyBlock) {
  for (const std::int64_t before : {0, 9})
    for_each_related_block(test_seed(43), [&](const Block& block, const auto& of_entries,
                                              std::int64_t relations) {
      const SharedDeviceBlock stored(gpu(), block, before);
      const auto of_device = upload(gpu(), behind(before, of_entries));
      expect_segments_and_order(gpu(), block, of_entries, relations, with_relations(stored.block, of_device));
    });
}

}  // namespace
}  // namespace espalier
