// ranks: 1
// Laws: accuracy and macro-F1 are scikit-learn's; counts of parts add up to the counts of
// the whole.
#include "espalier/train/metrics.hpp"

#include <gtest/gtest.h>

#include "dense/random_matrices.hpp"
#include "mpi_test.hpp"
#include "oracle/fixture.hpp"

namespace espalier {
namespace {

/// Logits whose largest entry is the prediction.
Matrix<float> logits_of(const std::vector<std::int32_t>& predictions, std::int64_t classes) {
  Matrix<float> logits(static_cast<std::int64_t>(predictions.size()), classes);
  for (std::int64_t i = 0; i < logits.rows; ++i)
    for (std::int64_t c = 0; c < classes; ++c)
      logits(i, c) = c == predictions[static_cast<std::size_t>(i)] ? 1.0f : -1.0f;
  return logits;
}

TEST(Metrics, AgreeWithScikitLearn) {
  for (const auto& json : read_fixture("metrics")) {
    const std::int64_t classes = json.at("classes");
    const auto counts =
        class_counts(Cpu{1}, logits_of(json.at("predictions").get<std::vector<std::int32_t>>(), classes),
                     json.at("labels").get<std::vector<std::int32_t>>());
    EXPECT_DOUBLE_EQ(accuracy(counts), json.at("accuracy").get<double>());
    EXPECT_DOUBLE_EQ(macro_f1(counts), json.at("macro_f1").get<double>());
  }
}

TEST(Metrics, CountsAddUp) {
  std::mt19937_64 random(test_seed(5));
  const auto logits = random_matrix<float>(60, 7, random);
  std::vector<std::int32_t> labels(60);
  for (auto& label : labels) label = static_cast<std::int32_t>(random() % 8) - 1;
  const auto whole = class_counts(Cpu{1}, logits, labels);
  std::vector<std::int64_t> parts(whole.size(), 0);
  for (std::int64_t begin = 0; begin < 60; begin += 17) {
    const std::int64_t rows = std::min<std::int64_t>(17, 60 - begin);
    Matrix<float> part(rows, 7);
    std::copy_n(logits.row(begin), rows * 7, part.row(0));
    const auto counts = class_counts(
        Cpu{1}, part,
        std::span(labels).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(rows)));
    std::ranges::transform(parts, counts, parts.begin(), std::plus());
  }
  EXPECT_EQ(parts, whole);
}

TEST(Metrics, ConfusionCountsHaveThePredictionOfEachLabel) {
  EXPECT_EQ(
      confusion_counts(Cpu{1}, logits_of({0, 0, 1, 2, 1}, 3), std::vector<std::int32_t>{0, 1, 1, -1, 2}),
      (std::vector<std::int64_t>{1, 0, 0, 1, 1, 0, 0, 1, 0}));
  std::mt19937_64 random(test_seed(5));
  const auto logits = random_matrix<float>(60, 7, random);
  std::vector<std::int32_t> labels(60);
  for (auto& label : labels) label = static_cast<std::int32_t>(random() % 8) - 1;
  const auto confusion = confusion_counts(Cpu{1}, logits, labels);
  const auto counts = class_counts(Cpu{1}, logits, labels);
  for (std::size_t c = 0; c < 7; ++c) {
    std::int64_t row = 0, column = 0;
    for (std::size_t other = 0; other < 7; ++other)
      row += confusion[c * 7 + other], column += confusion[other * 7 + c];
    const auto right = confusion[c * 7 + c];
    EXPECT_EQ((std::vector{right, column - right, row - right}),
              (std::vector(counts.begin() + 3 * static_cast<std::ptrdiff_t>(c),
                           counts.begin() + 3 * static_cast<std::ptrdiff_t>(c) + 3)));
  }
}

TEST(Metrics, NothingCountedIsZeroAndTiesGoToTheLowestClass) {
  const std::vector<std::int64_t> none(6, 0);
  EXPECT_EQ(accuracy(none), 0);
  EXPECT_EQ(macro_f1(none), 0);
  Matrix<float> tie(1, 2);
  tie.data = {3, 3};
  EXPECT_EQ(accuracy(class_counts(Cpu{1}, tie, std::vector<std::int32_t>{0})), 1);
}

}  // namespace
}  // namespace espalier
