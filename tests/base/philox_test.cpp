// Laws: the generator is Philox4x32-10 as published; draws for different purposes, rows, layers,
// relations, batches, epochs, seeds differ; bounded draws are uniform and stay below their bound.
#include "espalier/base/philox.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <set>
#include <utility>

#include "espalier/base/random_blocks.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

constexpr std::uint64_t kOnes = ~std::uint64_t{0};

// Random123's kat_vectors, philox4x32 with 10 rounds.
TEST(Philox, KnownAnswers) {
  struct Case {
    StreamKey key;
    std::array<std::uint32_t, 4> counter, wanted;
  };
  const Case cases[] = {{{0, 0}, {0, 0, 0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
                        {{0xffffffff, 0xffffffff},
                         {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
                        {{0xa4093822, 0x299f31d0},
                         {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
  for (const auto& c : cases) {
    const auto block = philox_block(c.key, c.counter[0], c.counter[1], c.counter[2], c.counter[3]);
    for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(block.v[k], c.wanted[k]) << k;
  }
}

// The rounds written out from the paper, as an oracle that shares no code with Random123.
std::array<std::uint32_t, 4> philox_by_hand(std::array<std::uint32_t, 4> c, std::array<std::uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    const auto a = std::uint64_t{0xD2511F53} * c[0], b = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(b),
         static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(a)};
    k = {k[0] + 0x9E3779B9, k[1] + 0xBB67AE85};
  }
  return c;
}

// What base/philox.hpp says of keys, counters and words.
TEST(Philox, StreamsAreLaidOutAsDocumented) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::uint64_t x = i * 0x9E3779B97F4A7C15;
    const RandomStream stream{x, Purpose::kShuffle, x ^ 5, x >> 32, x >> 40, x * 7, x >> 33};
    const auto key = philox_by_hand(
        {low(2 | stream.layer << 8), low(stream.relation), low(stream.epoch), high(stream.epoch)},
        {low(x), high(x)});
    const auto block_of = [&](std::uint64_t block) {
      return philox_by_hand({low(stream.row), high(stream.row), low(stream.batch), low(block)},
                            {key[0], key[1]});
    };
    const auto wanted = block_of(i), lows = block_of(i + (std::uint64_t{1} << 31));
    const auto block = random_block(stream, i);
    for (std::size_t k = 0; k < 4; ++k) {
      EXPECT_EQ(block.v[k], wanted[k]);
      EXPECT_EQ(random32(stream, 4 * i + k), wanted[k]);
      EXPECT_EQ(random64(stream, 4 * i + k), std::uint64_t{wanted[k]} << 32 | lows[k]);
    }
  }
}

// A point is that of the whole word, whether its low half was asked for or not.
TEST(Philox, APointNeedsTheLowHalfOnlyWhereItCarries) {
  std::mt19937_64 random(test_seed(6));
  std::int64_t asked = 0, not_asked = 0;
  for (int trial = 0; trial < 200000; ++trial) {
    const auto bound = 1 + (random() >> (trial % 5 == 0 ? random() % 64 : 32 + random() % 32));
    const auto low = static_cast<std::uint32_t>(trial % 3 == 0 ? ~random() >> 60 : random());
    // Every other one just below a border between two points, where a low half decides.
    auto high = static_cast<std::uint32_t>(random());
    if (trial % 2 == 0 && bound >> 32 == 0)
      high = static_cast<std::uint32_t>(((random() % bound + 1) << 32) / bound);
    bool ask = false;
    const auto point = point_below(high, bound, [&] {
      ask = true;
      return std::uint64_t{low};
    });
    ASSERT_EQ(point, mulhi(std::uint64_t{high} << 32 | low, bound)) << high << " " << low << " " << bound;
    ++(ask ? asked : not_asked);
    if (ask && bound >> 32 == 0)
      ASSERT_NE(mulhi(std::uint64_t{high} << 32, bound),
                mulhi((std::uint64_t{high} << 32) + 0xffffffff, bound))
          << "asked for in vain";
  }
  EXPECT_GT(asked, 10000);
  EXPECT_GT(not_asked, 10000);
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
                seen.insert(random64({seed, purpose, epoch, batch, layer, row, draw % 2}, draw));
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
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    // Words of every size, all ones among them.
    const auto word = [&](int bits) {
      const auto shift = 64 - bits + (round == 0 ? 0 : random() % static_cast<std::uint64_t>(bits));
      return (round == 0 ? ~std::uint64_t{0} : random()) >> shift;
    };
    BlockCounters counters;
    BlockKeys keys;
    for (std::size_t k = 0; k < kBlocksAtOnce; ++k) {
      counters.block[k] = word(32), counters.row[k] = word(64), counters.batch[k] = word(32);
      keys.low[k] = word(32), keys.high[k] = word(32);
    }
    const auto key_of = [&](std::size_t k) {
      return StreamKey{static_cast<std::uint32_t>(keys.low[k]), static_cast<std::uint32_t>(keys.high[k])};
    };
    std::uint32_t of_one[4 * kBlocksAtOnce], of_several[4 * kBlocksAtOnce], narrow[4 * kBlocksAtOnce];
    random_blocks(key_of(0), counters, of_one);
    random_blocks(keys, counters, of_several);
    const auto expect_wide_is_narrow = [&] { EXPECT_TRUE(std::ranges::equal(narrow, of_several)); };
    random_lanes::blocks<1>(counters, random_lanes::SeveralKeys{keys}, narrow), expect_wide_is_narrow();
#if ESPALIER_WIDEST_LANES > 4
    random_lanes::blocks<4>(counters, random_lanes::SeveralKeys{keys}, narrow), expect_wide_is_narrow();
#endif
    for (std::size_t k = 0; k < kBlocksAtOnce; ++k)
      for (const auto& [words, key] : {std::pair(of_one, key_of(0)), std::pair(of_several, key_of(k))}) {
        KeyedStream stream;
        stream.key = key;
        stream.row = counters.row[k];
        stream.batch = static_cast<std::uint32_t>(counters.batch[k]);
        const auto block = random_block(stream, counters.block[k]);
        EXPECT_TRUE(std::equal(block.begin(), block.end(), words + 4 * k))
            << "block " << k << " of round " << round;
      }
  }
}

}  // namespace
}  // namespace espalier
