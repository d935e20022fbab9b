// ranks: 1
// Laws of attention over a block: weights of a row and a head sum to 1, equal entries
// have equal weights, an entry (i, i) has none of its own; what is dropped stands in the sign and
// is what the mask says; sums and gradients are those of a list of edges in double; scores of any
// size overflow nothing; NaN stays where it belongs. Threads, places of blocks: layer_test.cpp.
#include "espalier/nn/edge_softmax.hpp"

#include <gtest/gtest.h>

#include "mpi_test.hpp"
#include "nn/edge_softmax_cases.hpp"

namespace espalier {
namespace {

TEST(EdgeSoftmax, WeightsOfARowSumToOne) {
  std::mt19937_64 random(test_seed(3));
  for (const std::int64_t heads : {1, 2, 3, 7, 8, 16})
    for (const int most : {0, 1, 5, 40}) {
      AttentionCase<float> c(attention_block(50, 70, most, random), heads, 1, 0, random);
      c.run();
      ASSERT_TRUE(c.weights.rows == c.block.entries() + 50 && c.weights.columns == heads);
      for (std::int64_t i = 0; i < 50; ++i)
        for (std::int64_t h = 0; h < heads; ++h) {
          double sum = 0;
          std::vector<float> of_source(70, -1);
          for (std::int64_t k = 0; k < c.weights_of(i); ++k) {
            const float weight = c.weights(c.first_weight(i) + k, h);
            const auto j = c.source_of(i, k);
            sum += weight;
            EXPECT_GE(weight, 0);
            if (j == i && k < c.block.row_size(i)) {
              EXPECT_EQ(weight, 0);
              continue;
            }
            EXPECT_GT(weight, 0);
            if (of_source[j] >= 0) EXPECT_EQ(weight, of_source[j]) << "one source, one weight";
            of_source[j] = weight;
          }
          EXPECT_NEAR(sum, 1, 45 * 0x1p-24) << heads << " heads, row " << i;
        }
    }
}

TEST(EdgeSoftmax, ScoresOfAnySizeOverflowNothing) {
  std::mt19937_64 random(test_seed(4));
  AttentionCase<float> c(attention_block(40, 60, 6, random), 3, 2, 0, random);
  for (float& x : c.p.data) x *= 1e5f;
  c.run();
  for (const auto* m : {&c.weights, &c.z, &c.dweights, &c.dtarget, &c.dsource, &c.dp})
    for (const float x : m->data) ASSERT_TRUE(std::isfinite(x));
  for (std::int64_t i = 0; i < 40; ++i) {
    float sum = 0;
    for (std::int64_t k = 0; k < c.weights_of(i); ++k) sum += c.weights(c.first_weight(i) + k, 1);
    EXPECT_NEAR(sum, 1, 1e-6);
  }
}

// Element `at` of a row's weights takes 32 bits of the row's stream, as elsewhere (nn/dropout.hpp).
TEST(EdgeSoftmax, DropsWhatTheMaskSays) {
  std::mt19937_64 random(test_seed(5));
  for (const std::int64_t heads : {1, 3, 8}) {
    const Block block = attention_block(300, 400, 9, random);
    auto again = random;
    AttentionCase<float> whole(block, heads, 2, 0, random), dropped(block, heads, 2, 0.4, again);
    whole.run();
    dropped.run();
    std::int64_t kept = 0;
    for (std::int64_t i = 0; i < 300; ++i) {
      auto stream = dropped.mask;
      stream.row = static_cast<std::uint64_t>(i);
      for (std::int64_t at = 0; at < dropped.weights_of(i) * heads; ++at) {
        const auto words = random_block(stream, static_cast<std::uint64_t>(at / 8));
        const auto half = words.v[at % 8 / 2] >> (at % 2 * 16) & 0xffffu;
        const bool keeps = half >= std::round(0.4 * 0x1p16);
        kept += keeps;
        const float weight = dropped.weights.data[dropped.first_weight(i) * heads + at];
        EXPECT_EQ(std::signbit(weight), !keeps);
        EXPECT_EQ(std::abs(weight), whole.weights.data[dropped.first_weight(i) * heads + at]);
      }
    }
    const auto count = static_cast<double>(dropped.weights.data.size());
    EXPECT_NEAR(static_cast<double>(kept) / count, 0.6, 5 * std::sqrt(0.24 / count));
  }
}

/// What the case must have, in double, from a list of edges and from the signs of its weights.
struct Expected {
  Matrix<double> z, dtarget, dsource, dp, da;

  template <class T>
  explicit Expected(const AttentionCase<T>& c)
      : z(c.block.rows, c.heads * c.width),
        dtarget(c.block.rows, c.heads),
        dsource(c.block.columns, c.heads),
        dp(c.block.columns, c.heads * c.width),
        da(c.heads, c.width) {
    for (auto* m : {&z, &dtarget, &dsource, &dp, &da}) std::ranges::fill(m->data, 0.0);
    for (std::int64_t h = 0; h < c.heads; ++h)
      for (std::int64_t i = 0; i < c.block.rows; ++i) add_row(c, i, h);
    for (std::int64_t h = 0; h < c.heads; ++h)
      for (std::int64_t at = 0; at < c.width; ++at)
        for (std::int64_t j = 0; j < c.block.columns; ++j) {
          da(h, at) += dsource(j, h) * static_cast<double>(c.p(j, h * c.width + at));
          dp(j, h * c.width + at) += dsource(j, h) * static_cast<double>(c.a_source(h, at));
          if (j < c.block.rows)
            dp(j, h * c.width + at) += dtarget(j, h) * static_cast<double>(c.a_target(h, at));
        }
  }

  /// By the Jacobian of a softmax, edge by edge: ds_k = sum_l g_l w_l ([k = l] - w_k).
  template <class T>
  void add_row(const AttentionCase<T>& c, std::int64_t i, std::int64_t h) {
    std::vector<double> score, weight, gradient;
    std::vector<std::int64_t> edge;
    for (std::int64_t k = 0; k < c.weights_of(i); ++k)
      if (k == c.block.row_size(i) || c.source_of(i, k) != i) edge.push_back(k);
    double sum = 0;
    for (const auto k : edge) {
      score.push_back(product(c.p.row(c.source_of(i, k)), c.a_source, c, h) +
                      product(c.p.row(i), c.a_target, c, h));
      weight.push_back(std::exp(score.back() > 0 ? score.back() : 0.2 * score.back()));
      sum += weight.back();
    }
    for (std::size_t e = 0; e < edge.size(); ++e) {
      weight[e] /= sum;
      const bool kept = !std::signbit(c.weights(c.first_weight(i) + edge[e], h));
      const double scale = kept ? 1 / (1 - c.rate) : 0;
      gradient.push_back(0);
      const auto j = c.source_of(i, edge[e]);
      for (std::int64_t at = h * c.width; at < (h + 1) * c.width; ++at) {
        z(i, at) += scale * weight[e] * static_cast<double>(c.p(j, at));
        dp(j, at) += scale * weight[e] * static_cast<double>(c.dz(i, at));
        gradient[e] += scale * static_cast<double>(c.dz(i, at)) * static_cast<double>(c.p(j, at));
      }
    }
    for (std::size_t k = 0; k < edge.size(); ++k) {
      double by_score = 0;
      for (std::size_t l = 0; l < edge.size(); ++l)
        by_score += gradient[l] * weight[l] * ((k == l) - weight[k]);
      by_score *= score[k] > 0 ? 1 : 0.2;
      dsource(c.source_of(i, edge[k]), h) += by_score;
      dtarget(i, h) += by_score;
    }
  }

  template <class T>
  static double product(const T* row, const Matrix<T>& a, const AttentionCase<T>& c, std::int64_t h) {
    double sum = 0;
    for (std::int64_t at = 0; at < c.width; ++at)
      sum += static_cast<double>(row[h * c.width + at]) * static_cast<double>(a(h, at));
    return sum;
  }
};

template <class T>
void expect_sums_of_edges(AttentionCase<T>& c, double tolerance) {
  c.run();
  const Expected expected(c);
  EXPECT_LT(largest_difference(c.z, expected.z), tolerance);
  EXPECT_LT(largest_difference(c.dtarget, expected.dtarget), tolerance);
  EXPECT_LT(largest_difference(c.dsource, expected.dsource), tolerance);
  EXPECT_LT(largest_difference(c.dp, expected.dp), tolerance);
  EXPECT_LT(largest_difference(c.da, expected.da), tolerance * static_cast<double>(1 + c.block.rows));
}

TEST(EdgeSoftmax, SumsAndGradientsAreThoseOfAListOfEdges) {
  const auto seed = test_seed(6);
  std::mt19937_64 random(seed);
  for (const std::int64_t rows : {0, 1, 30})
    for (const std::int64_t heads : {1, 3, 16})
      for (const std::int64_t width : {1, 3, 7, 8, 9, 17})
        for (const double rate : {0.0, 0.5}) {
          SCOPED_TRACE(testing::Message() << rows << " rows, " << heads << " x " << width << ", rate " << rate
                                          << ", seed " << seed);
          AttentionCase<double> exact(attention_block(rows, 45, 6, random), heads, width, rate, random);
          expect_sums_of_edges(exact, 1e-13 * static_cast<double>(width));
          AttentionCase<float> rounded(attention_block(rows, 45, 6, random), heads, width, rate, random);
          expect_sums_of_edges(rounded, 2e-5);
        }
}

/// Which rows have a NaN in the columns of head h?
template <class T>
std::vector<bool> nan_rows(const Matrix<T>& m, std::int64_t heads, std::int64_t h) {
  const std::int64_t width = m.columns / heads;
  std::vector<bool> found;
  for (std::int64_t i = 0; i < m.rows; ++i) {
    found.push_back(false);
    for (std::int64_t c = h * width; c < (h + 1) * width; ++c)
      found.back() = found.back() || std::isnan(m(i, c));
  }
  return found;
}

TEST(EdgeSoftmax, NaNStaysInTheHeadsAndRowsThatReadIt) {
  std::mt19937_64 random(test_seed(8));
  for (const double rate : {0.0, 0.9}) {  // dropped or not: the sum of the row's weights is NaN
    AttentionCase<float> c(attention_block(80, 120, 5, random), 3, 5, rate, random);
    constexpr std::int64_t kBad = 31, kHead = 1;
    c.p(kBad, kHead * 5 + 2) = NAN;
    c.run();
    std::vector<bool> reads(80, false);
    reads[kBad] = true;
    for (std::int64_t i = 0; i < 80; ++i)
      for (const std::int32_t j : c.block.row_indices(i)) reads[i] = reads[i] || j == kBad;
    EXPECT_EQ(nan_rows(c.z, 3, kHead), reads);
    EXPECT_EQ(nan_rows(c.dtarget, 3, kHead), reads);
    for (const std::int64_t other : {0, 2})
      for (const auto* m : {&c.z, &c.dtarget, &c.dsource, &c.dp})
        EXPECT_EQ(nan_rows(*m, 3, other), std::vector<bool>(m->rows, false));
  }
}

TEST(EdgeSoftmax, GradientsKeepTheNaNAbove) {
  std::mt19937_64 random(test_seed(9));
  AttentionCase<float> c(attention_block(80, 120, 5, random), 2, 5, 0, random);
  constexpr std::int64_t kBad = 30;
  c.dz(kBad, 7) = NAN;
  c.run();
  std::vector<bool> only(80, false), sources(120, false);
  only[kBad] = true;
  for (std::int64_t k = 0; k < c.weights_of(kBad); ++k) sources[c.source_of(kBad, k)] = true;
  EXPECT_EQ(nan_rows(c.dtarget, 2, 1), only);
  EXPECT_EQ(nan_rows(c.dsource, 2, 1), sources);
  EXPECT_EQ(nan_rows(c.dp, 2, 1), sources);
  EXPECT_EQ(nan_rows(c.dp, 2, 0), std::vector<bool>(120, false));
}

TEST(EdgeSoftmax, GradientsOfScoresAreAddedInDouble) {
  Matrix<float> p(3, 1), ds(3, 1), da(1, 1);
  p.data = {1, 1, 1};
  ds.data = {0x1p30f, 1, -0x1p30f};  // float32 would lose the 1
  head_scores_backward<float>(Cpu{1}, p, ds, da);
  EXPECT_EQ(da.data[0], 1);
}

}  // namespace
}  // namespace espalier
