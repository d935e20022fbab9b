// Laws: the generator is Philox4x64-10 as published; draws for different purposes, rows, layers,
// batches, epochs, seeds differ; bounded draws are uniform and stay below their bound.
#include "espalier/base/philox.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>

#include "espalier/base/random_blocks.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

constexpr std::uint64_t kOnes = ~std::uint64_t{0};

// Random123's kat_vectors, philox4x64 with 10 rounds. The key's second word is purpose <<
// 56 | epoch.
TEST(Philox, KnownAnswers) {
  struct Case {
    RandomStream stream;
    std::uint64_t block;
    std::array<std::uint64_t, 4> wanted;
  };
  const auto purpose = [](std::uint64_t number) { return static_cast<Purpose>(number); };
  const Case cases[] = {{{0, purpose(0), 0, 0, 0, 0},
                         0,
                         {0x16554d9eca36314c, 0xdb20fe9d672d0fdc, 0xd7e772cee186176b, 0x7e68b68aec7ba23b}},
                        {{kOnes, purpose(255), kOnes >> 8, kOnes, kOnes, kOnes},
                         kOnes,
                         {0x87b092c3013fe90b, 0x438c3c67be8d0224, 0x9cc7d7c69cd777b6, 0xa09caebf594f0ba0}},
                        {{0x452821e638d01377, purpose(0xbe), 0x5466cf34e90c6c, 0x082efa98ec4e6c89,
                          0xa4093822299f31d0, 0x13198a2e03707344},
                         0x243f6a8885a308d3,
                         {0xa528f45403e61d95, 0x38c72dbd566e9788, 0xa5a1610e72fd18b5, 0x57bd43b5e52b7fe6}}};
  for (const auto& c : cases) {
    const auto block = random_block(c.stream, c.block);
    for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(block.v[k], c.wanted[k]) << k;
  }
}

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

TEST(Philox, EqualsTheRoundsWrittenOut) {
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::uint64_t x = i * 0x9E3779B97F4A7C15;
    const RandomStream stream{x, Purpose::kSample, x >> 8, x ^ 5, x * 3, x * 7};
    const auto wanted = philox_by_hand({i, stream.row, stream.layer, stream.batch},
                                       {stream.seed, std::uint64_t{1} << 56 | stream.epoch});
    const auto block = random_block(stream, i);
    for (std::size_t k = 0; k < 4; ++k) {
      EXPECT_EQ(block.v[k], wanted[k]);
      EXPECT_EQ(random64(stream, 4 * i + k), wanted[k]) << "draw d is word d % 4 of block d / 4";
    }
  }
}

TEST(Philox, DifferentThingsGetDifferentDraws) {
  std::set<std::uint64_t> seen;
  std::size_t drawn = 0;
  for (const auto purpose :
       {Purpose::kSample, Purpose::kShuffle, Purpose::kDropout, Purpose::kInitialWeights, Purpose::kTest})
    for (std::uint64_t seed = 0; seed < 2; ++seed)
      for (std::uint64_t epoch = 0; epoch < 3; ++epoch)
        for (std::uint64_t batch = 0; batch < 3; ++batch)
          for (std::uint64_t layer = 0; layer < 3; ++layer)
            for (std::uint64_t row = 0; row < 20; ++row)
              for (std::uint64_t draw = 0; draw < 10; ++draw, ++drawn)
                seen.insert(random64({seed, purpose, epoch, batch, layer, row}, draw));
  EXPECT_EQ(seen.size(), drawn);
}

TEST(Philox, MulhiIsTheHighHalf) {
  EXPECT_EQ(mulhi(kOnes, kOnes), kOnes - 1);
  EXPECT_EQ(mulhi(kOnes, 1), 0u);
  EXPECT_EQ(mulhi(std::uint64_t{1} << 63, 10), 5u);
  for (const std::uint64_t bound :
       {std::uint64_t{1}, std::uint64_t{3}, std::uint64_t{1000}, std::uint64_t{1} << 40, kOnes})
    EXPECT_EQ(mulhi(kOnes, bound), bound - 1) << "the largest word gives the largest value below the bound";
}

TEST(Philox, BoundedDrawsAreUniform) {
  constexpr std::uint64_t kBound = 7, kDraws = 70000;
  std::array<double, kBound> counts{};
  for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
    const auto value = random_below({3, Purpose::kTest}, draw, kBound);
    ASSERT_LT(value, kBound);
    ++counts[value];
  }
  double chi_square = 0;
  for (const double count : counts) chi_square += (count - 10000) * (count - 10000) / 10000;
  EXPECT_LT(chi_square, 22.5) << "6 degrees of freedom, 0.1 %";
}

TEST(Philox, UnitDoublesStayInside) {
  EXPECT_GT(to_unit_double(0), 0.0);
  EXPECT_LT(to_unit_double(kOnes), 1.0);
  double sum = 0;
  for (std::uint64_t draw = 0; draw < 100000; ++draw)
    sum += to_unit_double(random64({3, Purpose::kTest}, draw));
  EXPECT_NEAR(sum / 100000, 0.5, 5 * std::sqrt(1.0 / 12 / 100000));
}

TEST(RandomBlocks, AreTheBlocksOfTheirStreams) {
  const auto seed = test_seed(5);
  SCOPED_TRACE(seed);
  RandomStream stream = {.seed = seed, .purpose = Purpose::kTest, .epoch = 3, .layer = 2};
  for (std::uint64_t round = 0; round < 200; ++round) {
    // Words of every size, all ones among them: the products of the lanes are put together
    // from parts.
    const auto word = [&](std::uint64_t draw) {
      const RandomStream sizes = {.seed = seed, .row = round};
      const auto bits = random64(sizes, 2 * draw) % 65, all = random64(sizes, 2 * draw + 1);
      return round == 0 ? ~std::uint64_t{0} : bits == 0 ? 0 : all >> (64 - bits);
    };
    BlockKeys keys;
    for (std::uint64_t k = 0; k < kBlocksAtOnce; ++k) {
      keys.block[k] = word(3 * k);
      keys.row[k] = word(3 * k + 1);
      keys.batch[k] = word(3 * k + 2);
    }
    if (round % 2 == 1)  // in the other rounds all are of the stream's layer
      for (std::size_t k = 0; k < kBlocksAtOnce; ++k) keys.layer[k] = k << 16;
    const auto layer = stream.layer;
    std::uint64_t words[4 * kBlocksAtOnce];
    random_blocks(stream, keys, words);
    for (std::size_t k = 0; k < kBlocksAtOnce; ++k) {
      stream.row = keys.row[k];
      stream.batch = keys.batch[k];
      stream.layer = layer | keys.layer[k];
      const auto block = random_block(stream, keys.block[k]);
      EXPECT_TRUE(std::equal(block.begin(), block.end(), words + 4 * k))
          << "block " << k << " of round " << round;
    }
  }
}

}  // namespace
}  // namespace espalier
