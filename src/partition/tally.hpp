// Sums by a small number, of one row after another: dense, with a list of what was touched, so that
// clearing costs what adding did.
#pragma once

#include <cstdint>
#include <vector>

#include "espalier/base/buffer.hpp"

namespace espalier {

class Tally {
 public:
  /// Of numbers 0 .. size - 1.
  explicit Tally(std::int64_t size) : sums_(static_cast<std::size_t>(size), 0) {}

  /// weight > 0.
  void add(std::int64_t number, std::int64_t weight) {
    if (sums_[number] == 0) touched_.push_back(number);
    sums_[number] += weight;
  }
  std::int64_t operator[](std::int64_t number) const { return sums_[number]; }
  /// The numbers with a sum, in the order in which they were first added to.
  const std::vector<std::int64_t>& touched() const { return touched_; }
  void clear() {
    for (const auto number : touched_) sums_[number] = 0;
    touched_.clear();
  }

 private:
  Buffer<std::int64_t> sums_;
  std::vector<std::int64_t> touched_;
};

}  // namespace espalier
