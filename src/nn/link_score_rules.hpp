// What a kind of score says of one link: rules, which the CPU's and the GPU's loops share.
//
//     score = Rules::score(sum over j of Rules::term(x, j))
//     d score / d number = Rules::outer(score) Rules::slope<row, part>(x, j)
//
// where j counts the numbers of a row, real or complex, and `part` is 0 for real parts, 1 for
// imaginary ones.
//
// Rules have kNumbers and kRelationNumbers as LinkScoreKind has them, and kRotations: are rows of
// relations angles? Then x.rotation is what they turn by: cosines, and behind them sines.
#pragma once

#include <cstdint>

#include "espalier/base/elementary.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/nn/link_scores.hpp"

namespace espalier {

enum class LinkRow { kHead, kRelation, kTail };

/// The three rows of a link.
struct LinkRows {
  const float *head, *relation, *tail;
  std::int64_t count;      ///< numbers of a vertex's row: imaginary parts stand so far
                           ///< behind real ones
  const double* rotation;  ///< [2 count], or null

  ESPALIER_HD double h(std::int64_t j) const { return static_cast<double>(head[j]); }
  ESPALIER_HD double r(std::int64_t j) const { return static_cast<double>(relation[j]); }
  ESPALIER_HD double t(std::int64_t j) const { return static_cast<double>(tail[j]); }
  ESPALIER_HD double cosine(std::int64_t j) const { return rotation[j]; }
  ESPALIER_HD double sine(std::int64_t j) const { return rotation[count + j]; }
  ESPALIER_HD double h_imaginary(std::int64_t j) const { return h(count + j); }
  ESPALIER_HD double r_imaginary(std::int64_t j) const { return r(count + j); }
  ESPALIER_HD double t_imaginary(std::int64_t j) const { return t(count + j); }
};

/// All of them, as loops read them.
struct LinkRowsOf {
  LinksView links;
  const float *h, *relations;  ///< [rows, width], [R, relation_width]
  std::int64_t width, relation_width, count;
  const double* rotations = nullptr;  ///< [R, 2 count], of rules that have some

  ESPALIER_HD LinkRows operator()(std::int64_t i) const {
    const std::int64_t relation = links.relation(i);
    return {h + links.heads[i] * width, relations + relation * relation_width, h + links.tails[i] * width,
            count, rotations == nullptr ? nullptr : rotations + relation * 2 * count};
  }
};

/// The slope by number c of a row as it lies in memory.
template <class Rules, LinkRow kRow>
ESPALIER_HD inline double slope_at(const LinkRows& x, std::int64_t c) {
  constexpr int kNumbers = kRow == LinkRow::kRelation ? Rules::kRelationNumbers : Rules::kNumbers;
  if constexpr (kNumbers == 1)
    return Rules::template slope<kRow, 0>(x, c);
  else
    return c < x.count ? Rules::template slope<kRow, 0>(x, c)
                       : Rules::template slope<kRow, 1>(x, c - x.count);
}

/// What the slopes of a link are multiplied with: the same for all numbers, or a row.
struct OfAScore {
  double by;
  ESPALIER_HD double operator()(std::int64_t) const { return by; }
};
struct OfProducts {
  const float* by;
  ESPALIER_HD double operator()(std::int64_t c) const { return static_cast<double>(by[c]); }
};

/// That of link i, of gradients by scores, or by products.
template <class Rules>
struct ByScores {
  const float *scores, *dscores;
  ESPALIER_HD OfAScore operator()(std::int64_t i) const {
    return {static_cast<double>(dscores[i]) * Rules::outer(static_cast<double>(scores[i]))};
  }
};
struct ByProducts {
  const float* dproducts;
  std::int64_t width;
  ESPALIER_HD OfProducts operator()(std::int64_t i) const { return {dproducts + i * width}; }
};

/// Number j of what `angles` [count] turn by: to [2 count].
ESPALIER_HD inline void find_rotation(const float* angles, std::int64_t count, std::int64_t j, double* to) {
  const auto [sine, cosine] = sine_and_cosine(static_cast<double>(angles[j]));
  to[j] = cosine;
  to[count + j] = sine;
}

}  // namespace espalier
