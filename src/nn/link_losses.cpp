// A thread has whole examples.
#include "espalier/nn/link_losses.hpp"

#include "espalier/base/buffer.hpp"
#include "espalier/dense/column_sums.hpp"
#include "interleaved_sum.hpp"
#include "link_loss_rules.hpp"

namespace espalier {

namespace {

struct ByThread {
  template <class Term>
  double add(std::int64_t count, const Term& term) const {
    return interleaved_sum(count, term);
  }
  template <class Number>
  double largest(double first, std::int64_t count, const Number& number) const {
    for (std::int64_t j = 0; j < count; ++j) first = first < number(j) ? number(j) : first;
    return first;
  }
};

}  // namespace

double link_losses(const Cpu& cpu, const LinkLoss& loss, std::int64_t count, std::int64_t negatives,
                   const float* positive, const float* negative, double scale, float* dpositive,
                   float* dnegative) {
  const LinkLossNumbers numbers{loss.margin, loss.temperature};
  const auto losses = workspace<struct ExampleLosses, double>(static_cast<std::size_t>(count));
  with_rules_of(loss, [&]<class Rules>(Rules) {
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (count * negatives > 1024)
    for (std::int64_t i = 0; i < count; ++i) {
      const auto of = loss_of_example<Rules>(ByThread{}, numbers, positive[i], negative + i * negatives,
                                             negatives, scale, dnegative + i * negatives);
      dpositive[i] = static_cast<float>(scale * of.gradient);
      losses[i] = of.loss;
    }
  });
  double sum = 0;
  sum_over_rows(Cpu{1}, count, {&sum, 1}, [&](std::int64_t i, double* to) { *to += losses[i]; });
  return sum;
}

}  // namespace espalier
