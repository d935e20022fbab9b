// ranks: 1
// Laws: scores are the formulas of their papers and gradients their differences; rows that no link
// names keep their gradient; threads change no bit; a distance of 0 has gradient 0; rows of any
// size give numbers.
#include "espalier/nn/link_scores.hpp"

#include "espalier/dense/column_sums.hpp"
#include "mpi_test.hpp"
#include "nn/link_scores_cases.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

std::vector<double> row_in_double(const Matrix<float>& m, std::int64_t i) {
  return {m.row(i), m.row(i) + m.columns};
}

/// The three rows of a link: head, relation, tail.
std::array<std::vector<double>, 3> rows_of(const LinkCase& c, std::size_t i) {
  return {row_in_double(c.h, c.heads[i]), row_in_double(c.relations, c.of[i]),
          row_in_double(c.h, c.tails[i])};
}

double formula(const LinkScore& score, const std::array<std::vector<double>, 3>& x) {
  return score_by_formula(score, x[0], x[1], x[2]);
}

/// What links add to the gradients, by differences of the formula.
std::pair<Matrix<double>, Matrix<double>> gradients_by_differences(const LinkScore& score,
                                                                   const LinkCase& c) {
  constexpr double kStep = 1e-7;
  Matrix<double> dh(c.h.rows, c.h.columns), drelations(c.relations.rows, c.relations.columns);
  for (auto* m : {&dh, &drelations}) std::ranges::fill(m->data, 0.0);
  for (std::size_t i = 0; i < c.heads.size(); ++i) {
    auto x = rows_of(c, i);
    double* const to[] = {dh.row(c.heads[i]), drelations.row(c.of[i]), dh.row(c.tails[i])};
    for (std::size_t row = 0; row < 3; ++row)
      for (std::size_t at = 0; at < x[row].size(); ++at) {
        const double here = x[row][at];
        x[row][at] = here + kStep;
        const double above = formula(score, x);
        x[row][at] = here - kStep;
        const double below = formula(score, x);
        x[row][at] = here;
        to[row][at] += double{c.dscores.data[i]} * (above - below) / (2 * kStep);
      }
  }
  return {dh, drelations};
}

Matrix<double> sum_of(const Matrix<float>& a, const Matrix<double>& b) {
  Matrix<double> sum = b;
  for (std::size_t e = 0; e < sum.data.size(); ++e) sum.data[e] += double{a.data[e]};
  return sum;
}

/// Widths beside those of registers that a kind takes.
std::vector<std::int64_t> widths_of(const LinkScoreKind& kind) {
  std::vector<std::int64_t> widths;
  for (const std::int64_t width : {1, 2, 5, 16, 31, 32, 33, 62, 64, 66, 100})
    if (kind.takes_width(width)) widths.push_back(width);
  return widths;
}

TEST(LinkScores, AreTheFormulasAndGradientsTheirDifferences) {
  std::mt19937_64 random(test_seed(61));
  for_each_link_score([&](const LinkScore& score) {
    for (const auto width : widths_of(*score.kind))
      for (const std::int64_t links : {0, 1, 40}) {
        SCOPED_TRACE(testing::Message() << width << " wide, " << links << " links");
        const LinkCase c(*score.kind, 13, width, 3, links, random);
        const auto results = on_cpu(score, c);
        for (std::size_t i = 0; i < c.heads.size(); ++i) {
          const double expected = formula(score, rows_of(c, i));
          EXPECT_NEAR(results.scores.data[i], expected, 3e-7 * (1 + std::abs(expected)));
        }
        const auto [dh, drelations] = gradients_by_differences(score, c);
        EXPECT_LT(largest_difference(results.dh, sum_of(c.h_before, dh)), 2e-6);
        EXPECT_LT(largest_difference(results.drelations, sum_of(c.relations_before, drelations)), 2e-6);
      }
  });
}

/// Of one link of rows 0 and 1 with gradient 1, added to nothing.
LinkResults of_one_link(const LinkScore& score, const Buffer<float>& head, const Buffer<float>& relation,
                        const Buffer<float>& tail) {
  std::mt19937_64 random(1);
  LinkCase c(*score.kind, 2, std::ssize(head), 1, 1, random);
  c.heads = {0};
  c.tails = {1};
  std::ranges::copy(head, c.h.row(0));
  std::ranges::copy(tail, c.h.row(1));
  std::ranges::copy(relation, c.relations.row(0));
  c.dscores.data = {1};
  for (auto* m : {&c.h_before, &c.relations_before}) std::ranges::fill(m->data, 0.0f);
  return on_cpu(score, c);
}

LinkScore score_named(const char* name, int norm = 1) {
  return {&link_score_kind_of(name, "score"), norm};
}

TEST(LinkScores, ThreadsDoNotMatter) {
  std::mt19937_64 random(test_seed(62));
  for_each_link_score([&](const LinkScore& score) {
    const LinkCase c(*score.kind, 300, 34, 3, 5000, random);  // several chunks of each relation
    const auto one = on_cpu(score, c);
    for (const int threads : {2, 5}) expect_same_bits(on_cpu(score, c, threads), one);
  });
}

TEST(LinkScores, ALinkWithoutRelationsIsOfTheFirst) {
  std::mt19937_64 random(test_seed(63));
  const auto score = score_named("distmult");
  const LinkCase c(*score.kind, 20, 8, 1, 50, random);
  auto links = c.view();
  links.relations = nullptr;
  expect_same_bits(by_link_scores(Cpu{1}, score, c, links), on_cpu(score, c));
}

TEST(LinkScores, RowsThatNoLinkNamesKeepTheirGradient) {
  std::mt19937_64 random(test_seed(64));
  for_each_link_score([&](const LinkScore& score) {
    LinkCase c(*score.kind, 20, 8, 4, 30, random);
    for (auto* list : {&c.heads, &c.tails, &c.of})
      for (auto& name : *list) name = name == 2 ? 1 : name;
    c.h_before(2, 3) = -0.0f;
    const auto results = on_cpu(score, c);
    EXPECT_EQ(std::memcmp(results.dh.row(2), c.h_before.row(2), 8 * sizeof(float)), 0);
    if (c.relations.columns == 0) return;
    EXPECT_EQ(std::memcmp(results.drelations.row(2), c.relations_before.row(2),
                          static_cast<std::size_t>(c.relations.columns) * sizeof(float)),
              0);
  });
}

TEST(LinkScores, ADistanceOfZeroHasGradientZero) {
  for (const int norm : {1, 2})
    for (const char* name : {"transe", "rotate"}) {
      const auto score = score_named(name, norm);
      Buffer<float> none(static_cast<std::size_t>(score.kind->relation_width(4)), 0.0f);
      const auto results = of_one_link(score, {1, -2, 3, 0}, none, {1, -2, 3, 0});
      EXPECT_EQ(results.scores.data[0], 0) << name;
      for (const float x : results.dh.data) EXPECT_EQ(x, 0) << name;
      for (const float x : results.drelations.data) EXPECT_EQ(x, 0) << name;
    }
}

/// What no finite row may become.
void expect_numbers(const Matrix<float>& m) {
  EXPECT_TRUE(std::ranges::none_of(m.data, [](float x) { return std::isnan(x); }));
}

TEST(LinkScores, RowsOfAnySizeGiveNumbers) {
  std::mt19937_64 random(test_seed(65));
  for_each_link_score([&](const LinkScore& score) {
    for (const float size : {1e-45f, 1e-30f, 1e-10f, 1e10f, 1e30f, 3e38f}) {
      SCOPED_TRACE(size);
      LinkCase c(*score.kind, 12, 34, 2, 300, random);
      for (auto* m : {&c.h, &c.relations})
        for (float& x : m->data) x *= size;
      const auto results = on_cpu(score, c);
      expect_numbers(results.scores);
      expect_numbers(results.dh);
      expect_numbers(results.drelations);
    }
  });
}

TEST(LinkScores, KindsSayWhatRowsTheyTake) {
  EXPECT_EQ(score_named("dot").kind->relation_width(10), 0);
  EXPECT_EQ(score_named("distmult").kind->relation_width(10), 10);
  EXPECT_EQ(score_named("complex").kind->relation_width(10), 10);
  EXPECT_EQ(score_named("rotate").kind->relation_width(10), 5);
  EXPECT_TRUE(score_named("transe").kind->takes_width(7));
  EXPECT_FALSE(score_named("complex").kind->takes_width(7));
  EXPECT_EQ(message_of(ExitCode::kUsage, [] { link_score_kind_of("distmul", "train.link_score ="); }),
            "train.link_score = distmul: not one of dot, distmult, complex, transe, rotate, mlp; did you "
            "mean distmult?");
}

TEST(LinkPlaces, HandChecked) {
  const Buffer<std::int32_t> heads{2, 0, 2}, tails{0, 0, 3}, relations{1, 0, 1};
  LinkPlaces places;
  find_link_places(Cpu{1}, {3, heads.data(), tails.data(), relations.data()}, 4, 3, places);
  EXPECT_EQ(places.by_row.begins, (Buffer<std::int64_t>{0, 3, 3, 5, 6}));
  EXPECT_EQ(places.by_row.members, (Buffer<std::int32_t>{1, 2, 3, 0, 4, 5}));
  EXPECT_EQ(places.by_relation.begins, (Buffer<std::int64_t>{0, 1, 3, 3}));
  EXPECT_EQ(places.by_relation.members, (Buffer<std::int32_t>{1, 0, 2}));
  EXPECT_EQ(places.chunks_before, (Buffer<std::int64_t>{0, 1, 2, 2}));
}

}  // namespace
}  // namespace espalier
