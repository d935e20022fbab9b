// ranks: 1
// Law: no result depends on how many lanes a register has, nor on whether the machine can multiply
// and add in one instruction.
#include <gtest/gtest.h>

#include "dense/kernels_by_width.inl.hpp"
#include "mpi_test.hpp"

// Sixteen bytes and no fused instruction, as the oldest x86-64 processors have; sixty-four.
std::map<std::string, std::uint64_t> digests_by_16_bytes();
std::map<std::string, std::uint64_t> digests_by_64_bytes();

namespace espalier {
namespace {

void expect_same(const Digests& other) {
  const auto here = digests_of_leaves();
  ASSERT_EQ(here.size(), other.size());
  for (const auto& [name, digest] : here) EXPECT_EQ(other.at(name), digest) << name;
}

TEST(Width, SixteenBytesWithoutFusedInstructionsGiveTheSameBits) {
  expect_same(digests_by_16_bytes());
}

TEST(Width, SixtyFourBytesGiveTheSameBits) {
  expect_same(digests_by_64_bytes());
}

}  // namespace
}  // namespace espalier
