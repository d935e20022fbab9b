// Gradients of needed rows for the tests of the policy in every space.
#pragma once

#include <cmath>
#include <random>
#include <set>
#include <vector>

#include "espalier/base/arrays.hpp"
#include "espalier/history/history_policy.hpp"

namespace espalier {

/// Rows in the order of columns; computed and cached ones number their lists as they come.
struct PolicyCase {
  Buffer<std::int64_t> place, computed, cached;
  Buffer<std::int64_t> positions;   // of computed rows in the list
  Buffer<std::uint8_t> recomputed;  // by position
  Matrix<float> gradient;

  PolicyCase(std::int64_t rows, std::int64_t width, double cached_share, std::mt19937_64& random)
      : gradient(rows, width) {
    std::set<std::int64_t> ids;
    while (std::ssize(ids) < rows) ids.insert(static_cast<std::int64_t>(random() % (std::uint64_t{1} << 40)));
    std::vector<std::int64_t> vertices(ids.begin(), ids.end());
    std::shuffle(vertices.begin(), vertices.end(), random);
    for (const auto v : vertices) {
      const bool is_cached = static_cast<double>(random() % 1000) < 1000 * cached_share;
      auto& list = is_cached ? cached : computed;
      place.push_back(is_cached ? ~std::ssize(list) : std::ssize(list));
      list.push_back(v);
    }
    for (std::int64_t k = 0; k < std::ssize(computed); ++k) positions.push_back(2 * k + 1);
    for (std::int64_t at = 0; at < 2 * std::ssize(computed) + 1; ++at)
      recomputed.push_back(static_cast<std::uint8_t>(random() % 3 == 0));
    // Of many magnitudes, so that another order of additions gives other bits.
    for (auto& x : gradient.data)
      x = std::ldexp(static_cast<float>(static_cast<double>(random() % (1u << 24)) / (1u << 23)) - 1,
                     static_cast<int>(random() % 24) - 12);
  }

  std::int64_t rows() const { return gradient.rows; }
  std::int64_t vertex(std::int64_t c) const { return place[c] < 0 ? cached[~place[c]] : computed[place[c]]; }
  bool seen(std::int64_t c) const { return place[c] < 0 || recomputed[positions[place[c]]] != 0; }
  void make_row(std::int64_t c, float value) {
    for (std::int64_t j = 0; j < gradient.columns; ++j) gradient(c, j) = value;
  }
};

/// Its arrays in a space, and the candidates on the host.
template <class Space>
Buffer<HistoryCandidate> candidates_of(const Space& space, const PolicyCase& of) {
  const auto put = [&]<class T>(const Buffer<T>& from) { return copy_to(space, std::span<const T>(from)); };
  const auto place = put(of.place), computed = put(of.computed), cached = put(of.cached);
  const auto gradient = put(of.gradient.data);
  const auto positions = put(of.positions);
  const auto recomputed = put(of.recomputed);
  PrunedLayer layer;
  layer.place = {place.data(), place.size()};
  layer.computed.vertices = {computed.data(), computed.size()};
  layer.computed.positions = {positions.data(), positions.size()};
  layer.cached.vertices = {cached.data(), cached.size()};
  Array<Space, HistoryCandidate> candidates;
  score_rows(space, layer, ConstMatrixView<float, Space>(of.rows(), of.gradient.columns, gradient.data()),
             candidates, recomputed.data());
  return copy_from(space, candidates);
}

}  // namespace espalier
