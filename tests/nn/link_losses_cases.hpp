// Scores of examples and of their negatives with every loss, for the tests of both spaces.
#pragma once

#include <gtest/gtest.h>

#include "dense/random_matrices.hpp"
#include "espalier/nn/link_losses.hpp"

namespace espalier {

/// Calls check(loss) for every kind.
template <class Check>
void for_each_link_loss(const Check& check) {
  for (const auto& kind : link_loss_kinds()) {
    SCOPED_TRACE(kind.name);
    check(LinkLoss{&kind, kind.has_margin ? 0.7 : 1, kind.has_temperature ? 1.3 : 1});
  }
}

struct ExampleScores {
  Matrix<float> positive, negative;  ///< [examples, 1], [examples, negatives]

  /// Of size `size`.
  ExampleScores(std::int64_t examples, std::int64_t negatives, float size, std::mt19937_64& random)
      : positive(random_matrix<float>(examples, 1, random)),
        negative(random_matrix<float>(examples, negatives, random)) {
    for (auto* m : {&positive, &negative})
      for (float& x : m->data) x *= size;
  }
};

struct LossResults {
  double loss;
  Matrix<float> dpositive, dnegative;
};

inline LossResults on_cpu(const LinkLoss& loss, const ExampleScores& x, double scale, int threads = 1) {
  LossResults r{0, x.positive, x.negative};
  r.loss = link_losses(Cpu{threads}, loss, x.positive.rows, x.negative.columns, x.positive.data.data(),
                       x.negative.data.data(), scale, r.dpositive.data.data(), r.dnegative.data.data());
  return r;
}

inline void expect_same_bits(const LossResults& a, const LossResults& b) {
  EXPECT_EQ(std::bit_cast<std::uint64_t>(a.loss), std::bit_cast<std::uint64_t>(b.loss));
  EXPECT_TRUE(same_bits(a.dpositive, b.dpositive));
  EXPECT_TRUE(same_bits(a.dnegative, b.dnegative));
}

}  // namespace espalier
