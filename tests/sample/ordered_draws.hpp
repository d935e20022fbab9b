// The law of drawing without replacement, one position after another by its weight, enumerated from
// the definition, for tests.
#pragma once

#include <cstdint>
#include <vector>

namespace espalier {

/// visit(order, probability, left) for every way to draw `s` of these weights one after another;
/// order: positions; left: the weight that is left before each draw. Weights of 0 are never drawn.
template <class Weight, class Visit>
void for_each_draw(const std::vector<Weight>& weights, std::int64_t s, const Visit& visit) {
  std::vector<std::size_t> order;
  std::vector<Weight> left;
  std::vector<bool> drawn(weights.size(), false);
  const auto descend = [&](const auto& self, double probability) -> void {
    if (std::ssize(order) == s) return visit(order, probability, left);
    left.push_back(0);
    for (std::size_t k = 0; k < weights.size(); ++k)
      if (!drawn[k]) left.back() += weights[k];
    for (std::size_t k = 0; k < weights.size(); ++k) {
      if (drawn[k] || weights[k] == 0) continue;
      drawn[k] = true;
      order.push_back(k);
      self(self, probability * static_cast<double>(weights[k]) / static_cast<double>(left.back()));
      order.pop_back();
      drawn[k] = false;
    }
    left.pop_back();
  };
  descend(descend, 1.0);
}

/// Des Raj's factor of each draw of an order: (left before it / its weight + s - j) / s.
template <class Weight>
std::vector<double> des_raj_factors(const std::vector<Weight>& weights, const std::vector<std::size_t>& order,
                                    const std::vector<Weight>& left) {
  const auto s = static_cast<double>(order.size());
  std::vector<double> factors;
  for (std::size_t j = 0; j < order.size(); ++j)
    factors.push_back((static_cast<double>(left[j]) / static_cast<double>(weights[order[j]]) + s -
                       static_cast<double>(j + 1)) /
                      s);
  return factors;
}

}  // namespace espalier
