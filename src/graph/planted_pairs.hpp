// Pairs of vertices of one class, or of two, drawn so often that about so many distinct ones come
// out.
#pragma once

#include <cmath>
#include <cstdint>

#include "espalier/base/error.hpp"
#include "espalier/base/philox.hpp"
#include "espalier/graph/generate.hpp"

namespace espalier {

inline void check_homophily(double homophily) {
  if (!(homophily >= 0 && homophily <= 1))
    usage_error("--homophily {}: give a number from 0 to 1", homophily);
}

/// The vertices of one type stand in positions 0..n-1, and position x has class x mod C, so that
/// members of a class can be numbered without a table.
struct Positions {
  std::int64_t n, classes;

  std::int64_t size(std::int64_t k) const { return (n - k + classes - 1) / classes; }
};

/// Pairs of a source and a target, never of a vertex with itself.
class PlantedPairs {
 public:
  /// `stream`: of the draws.
  PlantedPairs(const Positions& source, const Positions& target, bool one_type, const RandomStream& stream)
      : source_(source), target_(target), one_type_(one_type), stream_(stream) {}

  /// Makes draws() as many as give so many edges, of which a fraction `homophily` joins two of one
  /// class. `ways`: 0.5 where a pair and its reverse are one edge, else 1. Calls refuse(wanted,
  /// where, pairs) where almost all pairs are wanted, or more.
  template <class Refuse>
  void want(double edges, double homophily, double ways, Refuse refuse) {
    double same_pairs = 0,
           all_pairs = ways * static_cast<double>(target_.n) * static_cast<double>(source_.n - one_type_);
    for (std::int64_t k = 0; k < target_.classes; ++k)
      same_pairs +=
          ways * static_cast<double>(target_.size(k)) * static_cast<double>(source_.size(k) - one_type_);
    // So many uniform draws of `pairs` give `wanted` distinct ones on average: wanted = pairs (1 -
    // e^(-draws / pairs)).
    const auto draws = [&](double wanted, double pairs, const char* where) {
      constexpr double kMostOfPairs = 0.95;
      if (wanted == 0) return std::int64_t{0};
      if (wanted > kMostOfPairs * pairs) refuse(wanted, where, pairs);
      return static_cast<std::int64_t>(std::llround(-pairs * std::log1p(-wanted / pairs)));
    };
    same_ = draws(homophily * edges, same_pairs, "inside classes");
    cross_ = draws((1 - homophily) * edges, all_pairs - same_pairs, "between classes");
  }

  std::int64_t draws() const { return same_ + cross_; }

  /// Positions of draw number e; the first draws join equal classes, the rest different ones.
  Edge operator()(std::int64_t e) const {
    RandomStream stream = stream_;
    stream.row = static_cast<std::uint64_t>(e);
    const auto words = random_block(stream, 0);
    const auto x = below(words.v[0], target_.n);
    return {e < same_ ? source_inside(x, words.v[1]) : source_outside(x, words.v[1]), x};
  }

 private:
  static std::int64_t below(std::uint64_t word, std::int64_t bound) {
    return static_cast<std::int64_t>(mulhi(word, static_cast<std::uint64_t>(bound)));
  }
  std::int64_t source_inside(std::int64_t x, std::uint64_t word) const {
    const auto k = x % target_.classes;
    auto member = below(word, source_.size(k) - one_type_);
    if (one_type_ && member >= x / target_.classes) ++member;  // not x itself
    return k + source_.classes * member;
  }
  std::int64_t source_outside(std::int64_t x, std::uint64_t word) const {
    const auto k = x % target_.classes, others = source_.classes - 1;
    const auto place = below(word, source_.n - source_.size(k));
    const auto other = place % others;  // the classes but k, in order
    return place / others * source_.classes + other + (other >= k);
  }

  Positions source_, target_;
  bool one_type_;
  RandomStream stream_;
  std::int64_t same_ = 0, cross_ = 0;
};

}  // namespace espalier
