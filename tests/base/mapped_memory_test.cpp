// Laws: blocks begin at huge pages and do not overlap; what is mapped is never more than the most
// that was in use at once; pages that were freed come back as they are, not cleared, until they are
// given back. Random sizes and orders, each block full of its own number.
#include "../../src/base/mapped_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace espalier {
namespace {

struct Block {
  std::uint64_t* begin;
  std::size_t bytes;
  std::uint64_t number;

  std::size_t words() const { return bytes / sizeof(std::uint64_t); }
  void fill() const { std::fill(begin, begin + words(), number); }
  bool is_whole() const {
    return std::all_of(begin, begin + words(), [&](auto word) { return word == number; });
  }
};

TEST(MappedMemory, BlocksAreApartAndNoMoreIsMappedThanWasInUseAtOnce) {
  MappedMemory memory;
  memory.keep(true);
  std::mt19937_64 random(1);
  std::vector<Block> blocks;
  std::size_t most = 0;
  for (std::uint64_t step = 1; step <= 300; ++step) {
    if (blocks.size() < 6 && (blocks.empty() || random() % 2 == 0)) {
      const std::size_t bytes = 8 * (1 + random() % (std::size_t{1} << 20));
      blocks.push_back({static_cast<std::uint64_t*>(memory.allocate(bytes)), bytes, step});
      ASSERT_NE(blocks.back().begin, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks.back().begin) % kHugePage, 0u);
      blocks.back().fill();
    } else {
      const auto which = blocks.begin() + static_cast<std::ptrdiff_t>(random() % blocks.size());
      EXPECT_TRUE(which->is_whole()) << "block " << which->number << ", step " << step;
      memory.free(which->begin, which->bytes);
      blocks.erase(which);
    }
    most = std::max(most, memory.in_use());
    ASSERT_LE(memory.in_use() + memory.kept(), most) << step;
  }
  for (const auto& block : blocks) EXPECT_TRUE(block.is_whole()) << block.number;
}

TEST(MappedMemory, FreedPagesComeBackCutOrContinued) {
  MappedMemory memory;
  memory.keep(true);
  auto* const first = static_cast<std::uint64_t*>(memory.allocate(4 * kHugePage));
  first[0] = 7;
  first[2 * kHugePage / 8] = 8;
  memory.free(first, 4 * kHugePage);
  EXPECT_EQ(memory.kept(), 4 * kHugePage);
  auto* const cut = static_cast<std::uint64_t*>(memory.allocate(2 * kHugePage));
  EXPECT_EQ(cut[0], 7u);
  EXPECT_EQ(memory.kept(), 2 * kHugePage);
  auto* const continued = static_cast<std::uint64_t*>(memory.allocate(3 * kHugePage));
  EXPECT_EQ(continued[0], 8u);
  EXPECT_EQ(continued[2 * kHugePage / 8], 0u) << "a new page";
  EXPECT_EQ(memory.kept(), 0u);
  memory.free(cut, 2 * kHugePage);
  memory.free(continued, 3 * kHugePage);
  memory.give_back();
  EXPECT_EQ(memory.kept(), 0u);
  EXPECT_EQ(*static_cast<std::uint64_t*>(memory.allocate(kHugePage)), 0u) << "a new page";
}

TEST(MappedMemory, KeepsNothingUnlessToldTo) {
  MappedMemory memory;
  memory.free(memory.allocate(kHugePage), kHugePage);
  EXPECT_EQ(memory.kept(), 0u);
  EXPECT_EQ(memory.in_use(), 0u);
}

}  // namespace
}  // namespace espalier
