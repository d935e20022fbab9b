// ranks: 1
// Law: graph files are made of Philox4x64-10 as published, keyed as documented: a file of a seed
// stays what it is.
#include "espalier/graph/file_stream.hpp"

#include <gtest/gtest.h>

#include <array>

namespace espalier {
namespace {

// The rounds written out from the paper, as an oracle that shares no code with Random123.
std::array<std::uint64_t, 4> philox_by_hand(std::array<std::uint64_t, 4> c, std::array<std::uint64_t, 2> k) {
  __extension__ using Wide = unsigned __int128;
  for (int round = 0; round < 10; ++round) {
    const Wide a = static_cast<Wide>(0xD2E7470EE14C6C93) * c[0],
               b = static_cast<Wide>(0xCA5A826395121157) * c[2];
    c = {static_cast<std::uint64_t>(b >> 64) ^ c[1] ^ k[0], static_cast<std::uint64_t>(b),
         static_cast<std::uint64_t>(a >> 64) ^ c[3] ^ k[1], static_cast<std::uint64_t>(a)};
    k = {k[0] + 0x9E3779B97F4A7C15, k[1] + 0xBB67AE8584CAA73B};
  }
  return c;
}

TEST(FileStream, EqualsTheRoundsWrittenOut) {
  // Random123's kat_vectors, philox4x64 with 10 rounds.
  EXPECT_EQ(philox_by_hand({0, 0, 0, 0}, {0, 0}),
            (std::array<std::uint64_t, 4>{0x16554d9eca36314c, 0xdb20fe9d672d0fdc, 0xd7e772cee186176b,
                                          0x7e68b68aec7ba23b}));
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::uint64_t x = i * 0x9E3779B97F4A7C15;
    const FileStream stream{x, FilePurpose::kRelabel, x ^ 5, x * 3, x * 7};
    const auto wanted = philox_by_hand({i, x * 7, x * 3, x ^ 5}, {x, std::uint64_t{16} << 56});
    const auto block = file_block(stream, i);
    for (std::size_t k = 0; k < 4; ++k) {
      EXPECT_EQ(block.v[k], wanted[k]);
      EXPECT_EQ(file_word(stream, 4 * i + k), wanted[k]) << "draw d is word d % 4 of block d / 4";
    }
  }
}

}  // namespace
}  // namespace espalier
