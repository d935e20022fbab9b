// ranks: 1
// Laws: losses are their formulas and gradients the differences of these, where self-adversarial
// weights are constants; threads change no bit; a loss is a mean over negatives; scores of any size
// give numbers.
#include "espalier/nn/link_losses.hpp"

#include "mpi_test.hpp"
#include "nn/link_losses_cases.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

using Scores = std::vector<double>;  ///< of an example: the positive, then its negatives

double minus_log_sigmoid(double x) {
  return -std::log(1 / (1 + std::exp(-x)));
}

/// exp(by x) of the negatives, divided by their sum.
Scores softmax_of_negatives(const Scores& x, double by) {
  Scores weights;
  double sum = 0;
  for (std::size_t j = 1; j < x.size(); ++j) sum += std::exp(by * x[j]);
  for (std::size_t j = 1; j < x.size(); ++j) weights.push_back(std::exp(by * x[j]) / sum);
  return weights;
}

/// `weights`: of the negatives, for the loss that has some.
double loss_by_formula(const LinkLoss& loss, const Scores& x, const Scores& weights) {
  const std::string_view name = loss.kind->name;
  const auto k = static_cast<double>(x.size() - 1);
  double sum = 0, all = std::exp(x[0]);
  for (std::size_t j = 1; j < x.size(); ++j) {
    if (name == "sigmoid") sum += minus_log_sigmoid(-x[j]) / k;
    if (name == "margin") sum += std::max(0.0, loss.margin - x[0] + x[j]) / k;
    if (name == "self_adversarial") sum += weights[j - 1] * minus_log_sigmoid(-x[j] - loss.margin);
    all += std::exp(x[j]);
  }
  if (name == "sigmoid") sum += minus_log_sigmoid(x[0]);
  if (name == "self_adversarial") sum += minus_log_sigmoid(x[0] + loss.margin);
  if (name == "softmax") sum -= std::log(std::exp(x[0]) / all);
  return sum;
}

TEST(LinkLosses, AreTheFormulasAndGradientsTheirDifferences) {
  constexpr double kScale = 0.3, kStep = 1e-6;
  std::mt19937_64 random(test_seed(71));
  for_each_link_loss([&](const LinkLoss& loss) {
    for (const std::int64_t examples : {0, 1, 70})
      for (const std::int64_t negatives : {1, 2, 31, 32, 33, 100}) {
        SCOPED_TRACE(testing::Message() << examples << " examples, " << negatives << " negatives");
        const ExampleScores scores(examples, negatives, 3, random);
        const auto results = on_cpu(loss, scores, kScale);
        double sum = 0;
        for (std::int64_t i = 0; i < examples; ++i) {
          Scores x{scores.positive(i, 0)};
          x.insert(x.end(), scores.negative.row(i), scores.negative.row(i) + negatives);
          const auto weights = softmax_of_negatives(x, loss.temperature);
          sum += loss_by_formula(loss, x, weights);
          for (std::size_t j = 0; j < x.size(); ++j) {
            const double here = x[j];
            x[j] = here + kStep;
            const double above = loss_by_formula(loss, x, weights);
            x[j] = here - kStep;
            const double slope = (above - loss_by_formula(loss, x, weights)) / (2 * kStep);
            x[j] = here;
            EXPECT_NEAR(
                j == 0 ? results.dpositive(i, 0) : results.dnegative(i, static_cast<std::int64_t>(j) - 1),
                kScale * slope, 1e-7);
          }
        }
        EXPECT_NEAR(results.loss, sum, 1e-12 * (1 + sum));
      }
  });
}

TEST(LinkLosses, ThreadsDoNotMatter) {
  std::mt19937_64 random(test_seed(72));
  for_each_link_loss([&](const LinkLoss& loss) {
    const ExampleScores x(1300, 37, 5, random);
    const auto one = on_cpu(loss, x, 0.1);
    for (const int threads : {2, 5}) expect_same_bits(on_cpu(loss, x, 0.1, threads), one);
  });
}

TEST(LinkLosses, ANegativeTwiceCountsAsOnce) {
  std::mt19937_64 random(test_seed(73));
  for_each_link_loss([&](const LinkLoss& loss) {
    if (std::string_view(loss.kind->name) == "softmax") return;  // of all
    const ExampleScores once(20, 8, 2, random);
    ExampleScores twice(20, 16, 2, random);
    twice.positive = once.positive;
    for (std::int64_t i = 0; i < 20; ++i)
      for (std::int64_t j = 0; j < 16; ++j) twice.negative(i, j) = once.negative(i, j / 2);
    const auto expected = on_cpu(loss, once, 1), result = on_cpu(loss, twice, 1);
    EXPECT_NEAR(result.loss, expected.loss, 1e-12 * expected.loss);
    EXPECT_LT(largest_difference(result.dpositive, expected.dpositive), 1e-7);
    for (std::int64_t i = 0; i < 20; ++i)
      for (std::int64_t j = 0; j < 16; ++j)
        EXPECT_NEAR(result.dnegative(i, j), expected.dnegative(i, j / 2) / 2, 1e-7);
  });
}

TEST(LinkLosses, ScoresOfAnySizeGiveNumbers) {
  std::mt19937_64 random(test_seed(74));
  for_each_link_loss([&](const LinkLoss& loss) {
    for (const float size : {0.0f, 1e-45f, 1e-30f, 90.0f, 1e4f, 1e30f, 3e38f})
      for (const std::int64_t negatives : {0, 1, 40}) {
        SCOPED_TRACE(testing::Message() << size << ", " << negatives << " negatives");
        const auto results = on_cpu(loss, ExampleScores(30, negatives, size, random), 1);
        EXPECT_TRUE(std::isfinite(results.loss));
        EXPECT_GE(results.loss, 0);
        for (const auto* m : {&results.dpositive, &results.dnegative})
          EXPECT_TRUE(std::ranges::all_of(m->data, [](float x) { return std::abs(x) <= 1; }));
      }
  });
}

TEST(LinkLosses, NoNumberStaysNoNumber) {
  std::mt19937_64 random(test_seed(75));
  for_each_link_loss([&](const LinkLoss& loss) {
    ExampleScores of_positive(3, 5, 1, random), of_negative(3, 5, 1, random);
    of_positive.positive(1, 0) = of_negative.negative(1, 2) = NAN;
    EXPECT_TRUE(std::isnan(on_cpu(loss, of_positive, 1).loss));
    EXPECT_TRUE(std::isnan(on_cpu(loss, of_negative, 1).loss));
  });
}

TEST(LinkLosses, AnUnknownKindIsRefused) {
  EXPECT_EQ(message_of(ExitCode::kUsage, [] { link_loss_kind_of("sofmax", "train.link_loss ="); }),
            "train.link_loss = sofmax: not one of sigmoid, margin, softmax, self_adversarial; did you mean "
            "softmax?");
}

}  // namespace
}  // namespace espalier
