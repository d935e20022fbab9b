// ranks: 1
// Laws: ROC-AUC, average precision and F1 of each label are scikit-learn's, ties and unknown labels
// included, their averages those of OGB's evaluator and of scikit-learn; the order of vertices does
// not matter to the last bit.
#include "espalier/train/metrics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "mpi_test.hpp"
#include "oracle/fixture.hpp"

namespace espalier {
namespace {

TEST(Ranking, AgreesWithScikitLearnAndOgb) {
  for (const auto& json : read_fixture("label_metrics")) {
    const auto all_scores = json.at("scores").get<std::vector<float>>();
    const auto all_labels = json.at("labels").get<std::vector<std::uint8_t>>();
    const auto columns = json.at("columns").size(), rows = json.at("rows").get<std::size_t>();
    std::vector<LabelRanking> rankings;
    for (std::size_t k = 0; k < columns; ++k) {
      std::vector<float> scores;
      std::vector<std::uint8_t> labels;
      for (std::size_t i = 0; i < rows; ++i) {
        scores.push_back(all_scores[i * columns + k]);
        labels.push_back(all_labels[i * columns + k]);
      }
      const auto& ranking = rankings.emplace_back(rank_label(scores, labels));
      const auto& column = json.at("columns").at(k);
      EXPECT_EQ(ranking.positives, column.at("positives").get<std::int64_t>());
      EXPECT_EQ(ranking.negatives, column.at("negatives").get<std::int64_t>());
      ASSERT_EQ(ranking.has_both(), !column.at("roc_auc").is_null());
      if (!ranking.has_both()) continue;
      EXPECT_NEAR(ranking.roc_auc(), column.at("roc_auc").get<double>(), 1e-9);
      EXPECT_NEAR(ranking.average_precision, column.at("average_precision").get<double>(), 1e-9);
    }
    const auto scores = label_scores(rankings);
    EXPECT_NEAR(scores.roc_auc, json.at("roc_auc").get<double>(), 1e-9);
    EXPECT_NEAR(scores.average_precision, json.at("average_precision").get<double>(), 1e-9);
    EXPECT_NEAR(scores.micro_f1, json.at("micro_f1").get<double>(), 1e-9);
    EXPECT_NEAR(scores.macro_f1, json.at("macro_f1").get<double>(), 1e-9);
  }
}

TEST(Ranking, TheOrderOfVerticesDoesNotMatter) {
  const auto seed = test_seed(3);
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  std::vector<std::pair<float, std::uint8_t>> vertices;
  for (int i = 0; i < 500; ++i)
    vertices.emplace_back(static_cast<float>(random() % 40) - 20.0f,
                          static_cast<std::uint8_t>(random() % 7 == 0 ? 255 : random() % 2));
  vertices.emplace_back(-0.0f, std::uint8_t{1});  // equals 0
  vertices.emplace_back(std::numeric_limits<float>::quiet_NaN(), std::uint8_t{1});
  vertices.emplace_back(-std::numeric_limits<float>::infinity(), std::uint8_t{0});
  const auto rank = [&] {
    std::vector<float> scores;
    std::vector<std::uint8_t> labels;
    for (const auto& [score, label] : vertices) scores.push_back(score), labels.push_back(label);
    return rank_label(scores, labels);
  };
  const auto first = rank();
  std::int64_t doubled = 0;  // pair by pair
  for (const auto& [score, label] : vertices)
    for (const auto& [other, other_label] : vertices)
      if (label == 1 && other_label == 0) {
        const bool larger = score > other, equal = score == other;
        doubled += 2 * larger + equal;
      }
  EXPECT_EQ(first.doubled_pairs, doubled);
  for (int k = 0; k < 5; ++k) {
    std::ranges::shuffle(vertices, random);
    const auto again = rank();
    EXPECT_EQ(again.doubled_pairs, first.doubled_pairs);
    EXPECT_EQ(again.average_precision, first.average_precision);
    EXPECT_EQ(again.true_positives, first.true_positives);
  }
}

TEST(Ranking, WhatNoLabelDefinesIsNotANumber) {
  const std::vector<float> scores{1, 2};
  const auto all = rank_label(scores, std::vector<std::uint8_t>{1, 1}),
             none = rank_label(scores, std::vector<std::uint8_t>{255, 255});
  EXPECT_FALSE(all.has_both());
  const auto some = label_scores(std::vector{all, none}), nothing = label_scores(std::vector{none});
  EXPECT_TRUE(std::isnan(some.roc_auc) && std::isnan(some.average_precision));
  EXPECT_EQ(some.macro_f1, 1) << "over labels that anything is known of";
  EXPECT_EQ(some.micro_f1, 1);
  EXPECT_TRUE(std::isnan(nothing.macro_f1));
  EXPECT_TRUE(std::isnan(label_scores({}).roc_auc));
}

}  // namespace
}  // namespace espalier
