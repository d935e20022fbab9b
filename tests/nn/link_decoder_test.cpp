// ranks: 1
// Laws: the network's scores are its formula and its gradients their differences; a sum's are those
// of link_scores; a score depends on its link alone; threads change no bit; gradients of tensors
// are replaced, those of rows added to; no links give gradients of 0.
#include "espalier/nn/link_decoder.hpp"

#include "espalier/nn/network.hpp"
#include "mpi_test.hpp"
#include "nn/link_decoder_cases.hpp"

namespace espalier {
namespace {

/// All numbers that scores are a function of: rows, then tensors, one after another.
using Numbers = std::vector<std::vector<double>>;

Numbers numbers_of(const DecoderCase& c) {
  Numbers all{{c.links.h.data.begin(), c.links.h.data.end()}};
  for (const auto& tensor : c.tensors) all.emplace_back(tensor.data.begin(), tensor.data.end());
  return all;
}

double score_of_link(const DecoderCase& c, const Numbers& x, std::size_t i) {
  const auto width = static_cast<std::size_t>(c.links.h.columns);
  const auto &h = x[0], &relations = x[1], &hidden = x[2], &hidden_bias = x[3], &output = x[4];
  const std::size_t head = c.links.heads[i] * width, tail = c.links.tails[i] * width,
                    relation = c.links.of[i] * width;
  double score = x[5][0];
  for (std::size_t unit = 0; unit < width; ++unit) {
    double z = hidden_bias[unit];
    for (std::size_t j = 0; j < width; ++j)
      z += h[head + j] * relations[relation + j] * h[tail + j] * hidden[j * width + unit];
    score += std::max(z, 0.0) * output[unit];
  }
  return score;
}

double sum_of_scores(const DecoderCase& c, const Numbers& x) {
  double sum = 0;
  for (std::size_t i = 0; i < c.links.heads.size(); ++i)
    sum += double{c.links.dscores.data[i]} * score_of_link(c, x, i);
  return sum;
}

TEST(LinkDecoder, ANetworksScoresAreItsFormulaAndGradientsTheirDifferences) {
  constexpr double kStep = 1e-6;
  std::mt19937_64 random(test_seed(71));
  for (const std::int64_t width : {1, 3, 8, 17})
    for (const std::int64_t count : {1, 9, 40}) {
      SCOPED_TRACE(testing::Message() << width << " wide, " << count << " links");
      const DecoderCase c("mlp", 7, width, 3, count, random);
      const auto results = on_cpu(c);
      auto x = numbers_of(c);
      for (std::size_t i = 0; i < c.links.heads.size(); ++i)
        EXPECT_NEAR(results.scores.data[i], score_of_link(c, x, i), 2e-6 * static_cast<double>(width));
      for (std::size_t k = 0; k < x.size(); ++k)
        for (std::size_t e = 0; e < x[k].size(); ++e) {
          const double here = x[k][e];
          x[k][e] = here + kStep;
          const double above = sum_of_scores(c, x);
          x[k][e] = here - kStep;
          const double below = sum_of_scores(c, x);
          x[k][e] = here;
          const double before = k == 0 ? double{c.links.h_before.data[e]} : 0.0;
          const auto& gradient = k == 0 ? results.dh : results.gradients[k - 1];
          EXPECT_NEAR(gradient.data[e], before + (above - below) / (2 * kStep), 2e-5)
              << "number " << e << " of " << (k == 0 ? "rows" : "tensor ") << k;
        }
    }
}

TEST(LinkDecoder, OfASumIsLinkScores) {
  std::mt19937_64 random(test_seed(72));
  for (const char* name : {"dot", "distmult", "rotate"}) {
    DecoderCase c(name, 13, 8, 3, 40, random);
    std::ranges::fill(c.links.relations_before.data, 0.0f);
    const auto results = on_cpu(c);
    const auto expected = on_cpu(c.score, c.links);
    EXPECT_TRUE(same_numbers(results.scores, expected.scores));
    EXPECT_TRUE(same_numbers(results.dh, expected.dh));
    if (!c.tensors.empty()) EXPECT_TRUE(same_numbers(results.gradients[0], expected.drelations));
  }
}

TEST(LinkDecoder, AScoreDependsOnItsLinkAlone) {
  std::mt19937_64 random(test_seed(73));
  const DecoderCase c("mlp", 30, 20, 4, 300, random);
  const std::vector<ConstMatrixView<float>> tensors(c.tensors.begin(), c.tensors.end());
  const auto decoder = make_link_decoder(Cpu{1}, c.score);
  const auto all = on_cpu(c);
  for (const std::int64_t from : {0, 1, 17, 299})
    for (const std::int64_t count : {1, 5, 64}) {
      if (from + count > c.links.links()) continue;
      Buffer<float> scores(static_cast<std::size_t>(count));
      decoder->forward(
          Cpu{1}, c.links.h, tensors,
          {count, c.links.heads.data() + from, c.links.tails.data() + from, c.links.of.data() + from},
          scores.data());
      for (std::int64_t k = 0; k < count; ++k) EXPECT_EQ(scores[k], all.scores.data[from + k]);
    }
}

TEST(LinkDecoder, ThreadsDoNotMatter) {
  std::mt19937_64 random(test_seed(74));
  const DecoderCase c("mlp", 300, 34, 3, 5000, random);
  const auto one = on_cpu(c);
  for (const int threads : {2, 5}) {
    const auto results = on_cpu(c, threads);
    EXPECT_TRUE(same_numbers(results.scores, one.scores));
    EXPECT_TRUE(same_numbers(results.dh, one.dh));
    for (std::size_t k = 0; k < one.gradients.size(); ++k)
      EXPECT_TRUE(same_numbers(results.gradients[k], one.gradients[k])) << k;
  }
}

TEST(LinkDecoder, WithoutLinksGradientsOfTensorsAreZero) {
  std::mt19937_64 random(test_seed(75));
  for (const char* name : {"distmult", "mlp"}) {
    const auto results = on_cpu(DecoderCase(name, 5, 6, 2, 0, random));
    for (const auto& gradient : results.gradients)
      for (const float x : gradient.data) EXPECT_EQ(x, 0) << name;
  }
}

TEST(LinkDecoder, SaysWhatTensorsItTrains) {
  const auto names = [](const char* score) {
    std::string all;
    for (const auto& tensor : link_tensors({&link_score_kind_of(score, "score")}, 5, 8))
      all += std::string(tensor.name) + " " + std::to_string(tensor.rows) + " " +
             std::to_string(tensor.columns) + ", ";
    return all;
  };
  EXPECT_EQ(names("dot"), "");
  EXPECT_EQ(names("rotate"), "relations 5 4, ");
  EXPECT_EQ(names("mlp"), "relations 5 8, hidden 8 8, hidden_bias 1 8, output 8 1, output_bias 1 1, ");
}

TEST(LinkDecoder, AllButBiasesDecayWithEveryScore) {
  ModelConfig model;
  model.hidden = 8;
  for (const auto& kind : link_score_kinds()) {
    const Network<float> network(Cpu{1}, network_shape(model, 4, 8, link_tensors({&kind}, 5, 8)), 1);
    for (const auto& parameter : network.parameters())
      if (parameter.name.starts_with("task."))
        EXPECT_EQ(parameter.decays, !parameter.name.ends_with("bias")) << kind.name << " " << parameter.name;
  }
}

}  // namespace
}  // namespace espalier
