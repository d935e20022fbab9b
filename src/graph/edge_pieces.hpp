// Edges on their way from a file to whoever takes them in pieces.
#pragma once

#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "espalier/base/error.hpp"
#include "espalier/graph/edge_source.hpp"

namespace espalier {

/// A weight as the graph file stores it; counts one that becomes 0. Calls `fail` with the words
/// where it cannot be one.
template <class Fail>
float stored_weight(double value, Fail fail, std::int64_t& vanished) {
  const auto weight = static_cast<float>(value);
  if (!(weight >= 0 && std::isfinite(weight)))
    fail(fmt::format("weight {} is not a finite number of at least 0", value));
  vanished += weight == 0 && value != 0;
  return weight;
}

class EdgePieces {
 public:
  EdgePieces(bool weighted, const std::function<void(const EdgePiece&)>& use, bool timed = false,
             bool marked = false)
      : weighted_(weighted), timed_(timed), marked_(marked), use_(use) {
    sources_.reserve(kMost);
    targets_.reserve(kMost);
    if (weighted) weights_.reserve(kMost);
    if (timed) times_.reserve(kMost);
  }
  void add(std::int64_t source, std::int64_t target, float weight, std::int64_t time = 0,
           std::uint8_t mark = 0) {
    if (sources_.size() == kMost) finish();
    sources_.push_back(source);
    targets_.push_back(target);
    if (weighted_) weights_.push_back(weight);
    if (timed_) times_.push_back(time);
    if (marked_) marks_.push_back(mark);
  }
  /// For stored_weight() of an edge that is added next.
  std::int64_t& vanished() { return vanished_; }
  /// Hands over what is left.
  void finish() {
    if (!sources_.empty()) use_({sources_, targets_, weights_, std::exchange(vanished_, 0), times_, marks_});
    sources_.clear();
    targets_.clear();
    weights_.clear();
    times_.clear();
    marks_.clear();
  }

 private:
  static constexpr std::size_t kMost = std::size_t{1} << 14;

  bool weighted_, timed_, marked_;
  const std::function<void(const EdgePiece&)>& use_;
  std::vector<std::int64_t> sources_, targets_;
  std::vector<float> weights_;
  std::vector<std::int64_t> times_;
  std::vector<std::uint8_t> marks_;
  std::int64_t vanished_ = 0;
};

}  // namespace espalier
