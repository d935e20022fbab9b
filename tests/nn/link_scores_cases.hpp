// Links with rows, and what formulas of complex numbers give in double, for the tests of both
// spaces.
#pragma once

#include <gtest/gtest.h>

#include <complex>
#include <string_view>

#include "dense/random_matrices.hpp"
#include "espalier/nn/link_scores.hpp"
#include "space_arrays.hpp"

namespace espalier {

/// Calls check(score) for every kind that is a sum, and every norm it has.
template <class Check>
void for_each_link_score(const Check& check) {
  for (const auto& kind : link_score_kinds())
    for (const int norm : {1, 2})
      if (!kind.has_network && (norm == 1 || kind.has_norm)) {
        SCOPED_TRACE(testing::Message() << kind.name << " of norm " << norm);
        check(LinkScore{&kind, norm});
      }
}

struct LinkCase {
  Matrix<float> h, relations;                ///< [rows, width], [R, relation_width]
  Buffer<std::int32_t> heads, tails, of;     ///< [links]; `of`: relations
  Matrix<float> dscores;                     ///< [links, 1]
  Matrix<float> h_before, relations_before;  ///< what gradients are added to

  LinkCase(const LinkScoreKind& kind, std::int64_t rows, std::int64_t width, std::int64_t count_relations,
           std::int64_t links, std::mt19937_64& random)
      : h(random_matrix<float>(rows, width, random)),
        relations(random_matrix<float>(count_relations, kind.relation_width(width), random)),
        dscores(random_matrix<float>(links, 1, random)),
        h_before(random_matrix<float>(rows, width, random)),
        relations_before(random_matrix<float>(count_relations, relations.columns, random)) {
    const auto below = [&](std::int64_t most) {
      return static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(most));
    };
    for (std::int64_t i = 0; i < links; ++i) {
      heads.push_back(below(rows));
      tails.push_back(below(rows));
      of.push_back(below(count_relations));
    }
  }
  std::int64_t links() const { return std::ssize(heads); }
  LinksView view() const { return {links(), heads.data(), tails.data(), of.data()}; }
};

/// Scores and gradients of a case.
struct LinkResults {
  Matrix<float> scores, dh, drelations;
};

/// `links`: those of the case, in memory of the space.
template <class Space>
LinkResults by_link_scores(const Space& space, const LinkScore& score, const LinkCase& c,
                           const LinksView& links) {
  const auto bring = [&](const Matrix<float>& m) { return matrix_on(space, m); };
  const auto h = bring(c.h), relations = bring(c.relations), dscores = bring(c.dscores);
  auto scores = bring(c.dscores), dh = bring(c.h_before), drelations = bring(c.relations_before);
  LinkPlacesOn<Space> places;
  link_scores(space, score, h, relations, links, scores.data.data());
  find_link_places(space, links, c.h.rows, c.relations.columns == 0 ? 0 : c.relations.rows, places);
  link_scores_backward(space, score, h, relations, links, places, scores.data.data(), dscores.data.data(), dh,
                       drelations);
  return {matrix_from(space, scores), matrix_from(space, dh), matrix_from(space, drelations)};
}

inline LinkResults on_cpu(const LinkScore& score, const LinkCase& c, int threads = 1) {
  return by_link_scores(Cpu{threads}, score, c, c.view());
}

inline void expect_same_bits(const LinkResults& a, const LinkResults& b) {
  EXPECT_TRUE(same_numbers(a.scores, b.scores));
  EXPECT_TRUE(same_numbers(a.dh, b.dh));
  EXPECT_TRUE(same_numbers(a.drelations, b.drelations));
}

/// The score of rows as they lie in memory, by complex arithmetic where there is any.
inline double score_by_formula(const LinkScore& score, const std::vector<double>& h,
                               const std::vector<double>& r, const std::vector<double>& t) {
  const std::string_view name = score.kind->name;
  const auto n = h.size() / static_cast<std::size_t>(score.kind->numbers);
  const auto number = [n](const std::vector<double>& row, std::size_t j) {
    return row.size() == n ? std::complex<double>(row[j]) : std::complex<double>(row[j], row[n + j]);
  };
  double sum = 0;
  for (std::size_t j = 0; j < n; ++j) {
    const auto a = number(h, j), b = number(t, j);
    if (name == "dot") sum += (a * b).real();
    if (name == "distmult" || name == "complex") sum += (a * number(r, j) * std::conj(b)).real();
    if (name == "transe") sum += std::pow(std::abs(a + number(r, j) - b), score.norm);
    if (name == "rotate") sum += std::pow(std::abs(a * std::polar(1.0, r[j]) - b), score.norm);
  }
  return score.kind->has_norm ? -std::pow(sum, 1.0 / score.norm) : sum;
}

}  // namespace espalier
