// ranks: 1
// Laws of LABOR-0: a neighbour is included with probability min(1, s/d); inclusion is shared by the
// rows of one batch and layer, and independent between neighbours, layers, batches, epochs and
// seeds; estimates of the mean and of the GCN matrix are unbiased (unbiased_test.cpp) and keep the
// diagonal; fewer distinct inputs than GraphSAGE. With share_batches = k: a batch of number n is,
// bit for bit, what number n / k draws without, so k batches of the same seeds are one; fewer
// distinct inputs of k.
//
// Statistical limits are 5 standard deviations: a false alarm once in 1.7 10^6 per number, some
// 300 of them.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "espalier/base/error.hpp"
#include "espalier/base/philox.hpp"
#include "mpi_test.hpp"
#include "sample/sampling_laws.hpp"

namespace espalier {
namespace {

constexpr std::int64_t kLaborTrials = 20000;

// Vertices 0 and 10 have nine neighbours each and share 5 .. 9; vertex 11 has four.
SparseMatrix three_rows(const Grid& grid) {
  std::vector<Ids> rows(15);
  rows[0] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  rows[10] = {5, 6, 7, 8, 9, 11, 12, 13, 14};
  rows[11] = {5, 6, 7, 12};
  return matrix_of(grid, rows);
}

void expect_frequency(std::int64_t count, double probability) {
  const auto trials = static_cast<double>(kLaborTrials);
  EXPECT_NEAR(static_cast<double>(count), trials * probability,
              5 * std::sqrt(trials * probability * (1 - probability)));
}

TEST(LaborInclusion, HasProbabilityFanoutOverDegree) {
  const Grid grid(test_world(), 1);
  const auto a = three_rows(grid);
  const auto seed = test_seed(1);
  SCOPED_TRACE(seed);
  const Ids seeds = {0, 10, 11, 1}, degrees = {9, 9, 4, 0};
  for (const std::int64_t fanout : {1, 3, 4, 8, 9, 12, -1}) {
    const auto sampler = make_sampler("labor", a, {.fanout = {fanout}});
    std::vector<std::map<std::int64_t, std::int64_t>> seen(4);
    sample_batches(*sampler, seeds, kLaborTrials, seed, [&](const Minibatch& minibatch) {
      for (std::size_t r = 0; r < 4; ++r) {
        const auto picks = fanout < 0 ? degrees[r] : std::min(fanout, degrees[r]);
        for (const auto& [u, value] : row_of(minibatch, minibatch.blocks[0], static_cast<std::int64_t>(r))) {
          ++seen[r][u];
          EXPECT_EQ(value, static_cast<float>(1.0 / static_cast<double>(picks)));
        }
      }
    });
    for (std::size_t r = 0; r < 4; ++r) {
      EXPECT_EQ(std::ssize(seen[r]), degrees[r]) << "each neighbour, nothing else";
      for (const auto u : a.local.row_indices(seeds[r]))
        expect_frequency(
            seen[r][u],
            fanout < 0 ? 1 : std::min(1.0, static_cast<double>(fanout) / static_cast<double>(degrees[r])));
    }
  }
}

// Rows of equal degree agree about every neighbour that they share; a row with a larger s/d
// includes what the other does.
TEST(LaborInclusion, IsSharedByTheRowsOfABatchAndLayer) {
  const Grid grid(test_world(), 1);
  const auto a = three_rows(grid);
  const auto sampler = make_sampler("labor", a, {.fanout = {3}});
  std::int64_t shared = 0, more = 0;
  sample_batches(*sampler, {10, 0, 11}, 2000, test_seed(2), [&](const Minibatch& minibatch) {
    const auto of_10 = row_of(minibatch, minibatch.blocks[0], 0),
               of_0 = row_of(minibatch, minibatch.blocks[0], 1),
               of_11 = row_of(minibatch, minibatch.blocks[0], 2);
    for (std::int64_t u = 5; u <= 9; ++u) {
      EXPECT_EQ(of_10.contains(u), of_0.contains(u)) << u;
      shared += of_0.contains(u);
    }
    for (const std::int64_t u : {5, 6, 7}) {
      EXPECT_TRUE(!of_0.contains(u) || of_11.contains(u)) << "3/4 is more than 3/9";
      more += of_11.contains(u) && !of_0.contains(u);
    }
  });
  EXPECT_GT(shared, 0);
  EXPECT_GT(more, 0);
}

// Both included with probability p^2: of two neighbours in a row; of one neighbour in two layers,
// in batches b and b + 1, in two epochs, and with two seeds.
TEST(LaborInclusion, IsIndependentOtherwise) {
  const Grid grid(test_world(), 1);
  const auto a = three_rows(grid);
  const auto seed = test_seed(3);
  SCOPED_TRACE(seed);
  const auto sampler = make_sampler("labor", a, {.fanout = {3, 3}});
  const auto sample = [&](std::uint64_t with_seed, std::uint64_t epoch) {
    std::vector<std::pair<Row, Row>> rows;  // layer 2, layer 1
    const auto visit = [&](const Minibatch& minibatch) {
      rows.emplace_back(row_of(minibatch, minibatch.blocks[1], 0), row_of(minibatch, minibatch.blocks[0], 0));
    };
    sample_batches(*sampler, {0}, kLaborTrials + 1, with_seed, visit, epoch);
    return rows;
  };
  const auto rows = sample(seed, 0), of_epoch = sample(seed, 1), of_seed = sample(seed + 1, 0);
  for (std::int64_t u = 1; u <= 9; ++u) {
    std::int64_t layers = 0, batches = 0, epochs = 0, seeds = 0, neighbours = 0;
    for (std::size_t t = 0; t < static_cast<std::size_t>(kLaborTrials); ++t) {
      if (!rows[t].first.contains(u)) continue;
      layers += rows[t].second.contains(u);
      batches += rows[t + 1].first.contains(u);
      epochs += of_epoch[t].first.contains(u);
      seeds += of_seed[t].first.contains(u);
      neighbours += rows[t].first.contains(u % 9 + 1);
    }
    for (const auto count : {layers, batches, epochs, seeds, neighbours}) expect_frequency(count, 1.0 / 9);
  }
}

// Entry by entry, by numbers that are made here from the definition: of rows that see every column
// many times, of a few whose neighbours are fewer than blocks of columns, and of some in between.
TEST(LaborInclusion, IsThatOfTheDocumentedNumbers) {
  const Grid grid(test_world(), 1);
  constexpr std::uint64_t kSeed = 9, kEpoch = 4;
  constexpr std::int64_t kFanout = 7;
  const auto sampler_of = [&](const SparseMatrix& a) {
    return make_sampler("labor", a, {.fanout = {kFanout}});
  };
  for (const auto& [columns, rows, batches] :
       {std::array<std::int64_t, 3>{700, 700, 6}, {20000, 12, 40}, {20000, 60, 9}}) {
    const auto a = random_matrix(grid, columns, 60, false, 5);
    Ids seeds(static_cast<std::size_t>(rows));
    std::iota(seeds.begin(), seeds.end(), columns - rows);  // vertex 0 has all for neighbours
    const auto sampler = sampler_of(a);
    std::int64_t decided_by_low_bits = 0;
    for (std::int64_t number = 0; number < batches; ++number) {
      const SeedBatch batch = {number, seeds};
      const auto minibatch = std::move(sampler->sample({1}, {&batch, 1}, kSeed, kEpoch)[0]);
      const KeyedStream stream = RandomStream{.seed = kSeed,
                                              .purpose = Purpose::kSample,
                                              .epoch = kEpoch,
                                              .batch = static_cast<std::uint64_t>(number),
                                              .layer = 1};
      // Bytes of a block, word after word, low ones first.
      const auto byte_of = [&](std::int64_t row, std::uint64_t block, std::int64_t k) {
        const auto words = random_block(stream.of_row(row), block);
        return std::uint64_t{words.v[static_cast<std::size_t>(k / 4)]} >> k % 4 * 8 & 255;
      };
      for (std::int64_t r = 0; r < rows; ++r) {
        const auto neighbours = a.local.row_indices(seeds[static_cast<std::size_t>(r)]);
        const auto d = std::ssize(neighbours);
        const auto row = row_of(minibatch, minibatch.blocks[0], r);
        for (const auto u : neighbours) {
          // The top byte, then words 0 and 1 of block 1 but for their last byte.
          auto number_of_u = byte_of(u / 16, 0, u % 16) << 56;
          for (int k = 0; k < 4; ++k) number_of_u |= byte_of(u, 1, k) << (24 + 8 * k);
          for (int k = 5; k < 8; ++k) number_of_u |= byte_of(u, 1, k) << 8 * (k - 5);
          const bool wanted =
              d <= kFanout || mulhi(number_of_u, static_cast<std::uint64_t>(d)) < std::uint64_t{kFanout};
          decided_by_low_bits +=
              d > kFanout && number_of_u >> 56 == static_cast<std::uint64_t>(256 * kFanout / d);
          ASSERT_EQ(row.contains(u), wanted) << "batch " << number << ", row " << r << ", neighbour " << u;
        }
      }
    }
    EXPECT_GT(decided_by_low_bits, 50) << columns << " columns, " << rows << " rows";
  }
}

// ---- Values --------------------------------------------------------------------------------

TEST(LaborBlocks, KeepTheDiagonalAndScaleTheRest) {
  const Grid grid(test_world(), 1);
  const auto m = normalize_with_self_loops(random_matrix(grid, 40, 4, true));
  const Ids seeds = {0, 1, 2, 21, 8};
  for (const std::int64_t fanout : {1, 3, 39, 100, -1}) {
    const auto sampler = make_sampler("labor", m, {.fanout = {fanout}, .aggregation = Aggregation::kMatrix});
    sample_batches(*sampler, seeds, 50, 1, [&](const Minibatch& minibatch) {
      for (std::size_t r = 0; r < seeds.size(); ++r) {
        const auto full = row_of(m, seeds[r]);
        const auto row = row_of(minibatch, minibatch.blocks[0], static_cast<std::int64_t>(r));
        const auto degree = std::ssize(full) - 1;
        EXPECT_TRUE(row.contains(seeds[r])) << "the diagonal is always there";
        if (fanout < 0 || degree <= fanout) EXPECT_EQ(row, full) << "a short row is taken whole";
        for (const auto& [u, value] : row)
          if (u == seeds[r] || fanout < 0 || degree <= fanout)
            EXPECT_EQ(value, full.at(u));
          else
            EXPECT_FLOAT_EQ(value, full.at(u) * static_cast<float>(degree) / static_cast<float>(fanout));
      }
    });
  }
}

// ---- Against GraphSAGE --------------------------------------------------------------------------

// Mean degree 30. The same fanout, as many edges in expectation next to the batch (6% is six
// standard deviations), distinctly fewer inputs.
TEST(LaborInputs, AreFewerThanThoseOfGraphSage) {
  const Grid grid(test_world(), 1);
  const auto a = random_matrix(grid, 3000, 30, false, 3);
  for (const auto& fanout : {Ids{10}, Ids{10, 5}}) {
    std::map<std::string, std::int64_t> inputs, edges;
    for (const char* kind : {"labor", "graphsage"}) {
      const auto sampler = make_sampler(kind, a, {.fanout = fanout});
      for (std::int64_t b = 0; b < 10; ++b) {
        Ids seeds;
        for (std::int64_t v = 0; v < 300; ++v) seeds.push_back(10 * v + b);
        const SeedBatch batch = {b, seeds};
        const auto minibatch = std::move(sampler->sample({1}, {&batch, 1}, 1, 1)[0]);
        inputs[kind] += std::ssize(minibatch.vertices);
        edges[kind] += minibatch.blocks.back().entries();
      }
    }
    EXPECT_LT(static_cast<double>(inputs["labor"]), 0.9 * static_cast<double>(inputs["graphsage"]));
    EXPECT_NEAR(static_cast<double>(edges["labor"]) / static_cast<double>(edges["graphsage"]), 1, 0.06);
  }
}

// ---- Batches that share draws -------------------------------------------------------------------

std::vector<Minibatch> sample_numbers(const SparseMatrix& a, std::int64_t share_batches, const Ids& numbers,
                                      const std::vector<Ids>& seeds) {
  std::vector<SeedBatch> batches;
  for (std::size_t b = 0; b < numbers.size(); ++b) batches.push_back({numbers[b], seeds[b]});
  return make_sampler("labor", a, {.fanout = {3, 2}, .share_batches = share_batches})
      ->sample({1}, batches, 8, 1);
}

std::uint64_t digest_of(const Minibatch& minibatch) {
  return sample_digests(Cpu{1}, {&minibatch, 1});
}

TEST(LaborSharing, DrawsWhatTheNumberOfTheGroupDrawsWithout) {
  const Grid grid(test_world(), 1);
  const auto a = random_matrix(grid, 300, 9, false);
  const std::int64_t most = 20;
  Ids numbers(most);
  std::iota(numbers.begin(), numbers.end(), 0);
  std::vector<Ids> seeds(most);
  for (std::int64_t b = 0; b < most; ++b)
    for (auto v = b; v < 300; v += 31) seeds[static_cast<std::size_t>(b)].push_back(v);
  for (const std::int64_t share : {1, 3, 4, 1000}) {
    Ids of_groups;
    for (const auto n : numbers) of_groups.push_back(n / share);
    const auto shared = sample_numbers(a, share, numbers, seeds),
               alone = sample_numbers(a, 1, of_groups, seeds);
    for (std::size_t b = 0; b < shared.size(); ++b) {
      EXPECT_EQ(shared[b].number, numbers[b]) << "what stands in it is its own number";
      auto expected = alone[b];
      expected.number = numbers[b];
      EXPECT_EQ(digest_of(shared[b]), digest_of(expected)) << share << " batch " << b;
      if (numbers[b] != of_groups[b]) {
        const auto own = sample_numbers(a, 1, {numbers[b]}, {seeds[b]});
        EXPECT_NE(digest_of(shared[b]), digest_of(own[0])) << "the law cannot hold by chance";
      }
    }
  }
}

TEST(LaborSharing, AGroupHasFewerDistinctInputs) {
  const Grid grid(test_world(), 1);
  const auto a = random_matrix(grid, 3000, 30, false, 3);
  const Ids numbers = {0, 1, 2, 3};
  std::vector<Ids> seeds(4);
  for (std::int64_t v = 0; v < 800; ++v) seeds[static_cast<std::size_t>(v % 4)].push_back(v);
  const auto distinct = [&](std::int64_t share) {
    std::set<std::int64_t> vertices;
    for (const auto& minibatch : sample_numbers(a, share, numbers, seeds))
      vertices.insert(minibatch.vertices.begin(), minibatch.vertices.end());
    return static_cast<double>(vertices.size());
  };
  EXPECT_LT(distinct(4), 0.85 * distinct(1));
}

TEST(Labor, RefusesWeightedDraws) {
  const Grid grid(test_world(), 1);
  const auto a = random_matrix(grid, 20, 3, true, 1);
  EXPECT_THROW(make_sampler("labor", a, {.fanout = {2}, .weighted = true}), UserError);
}

}  // namespace
}  // namespace espalier
