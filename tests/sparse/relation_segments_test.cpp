// ranks: 1
// Laws: the segments of a block cover its entries, each once; those of a relation ascend by row,
// and each is all that the relation has in the row; the entries of a relation, by source, are
// each of them once; where in common arrays the block lies does not matter; a block without
// relations has one.
#include "sparse/relation_segments_cases.hpp"

#include "mpi_test.hpp"

namespace espalier {
namespace {

TEST(RelationSegments, CoverAnyBlock) {
  for_each_related_block(test_seed(41), [](const Block& block, const auto& of_entries,
                                           std::int64_t relations) {
    expect_segments_and_order(Cpu{2}, block, of_entries, relations, with_relations<Cpu>(block, of_entries));
    const SharedBlock shared(block, 77);
    const auto in_common = behind(77, of_entries);
    expect_segments_and_order(Cpu{2}, block, of_entries, relations,
                              with_relations<Cpu>(shared.block, in_common));
  });
}

TEST(RelationSegments, WithoutRelationsAllEntriesAreOfRelation0) {
  std::mt19937_64 random(test_seed(42));
  const Block block = random_block_matrix(60, 30, 9, random);
  const Buffer<std::uint8_t> of_entries(static_cast<std::size_t>(block.entries()), 0);
  expect_segments_and_order<Cpu>(Cpu{2}, block, of_entries, 3, block);
}

}  // namespace
}  // namespace espalier
