// Rows of a random graph with hubs, made row by row: no file, no list of edges, every rank makes
// what it holds.
//
// Vertex v stands at a place x in (0, 1) of a ranking by popularity, w(x) = (1 - g) x^-g, mean 1
// (g: `skew`; Chung and Lu 2002 with a power law of exponent 1 + 1/g). Row v has d w(x) distinct
// columns (`hubs_are_long`, as in a symmetric graph: who is met often has many neighbours) or d (as
// in a graph of citations), drawn in proportion to w. Ids are scrambled, so that hubs lie anywhere.
// A row is a function of (shape, v).
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "espalier/base/philox.hpp"
#include "espalier/graph/scramble.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier::bench {

struct GraphShape {
  std::int64_t nodes = 1 << 14;
  double degree = 16;
  double skew = 0.4;
  bool hubs_are_long = true;
};

class SkewedRows {
 public:
  explicit SkewedRows(const GraphShape& shape)
      : shape_(shape), ids_(shape.nodes, {.purpose = Purpose::kGenerateEdges, .layer = 2}) {}

  /// Rows [begin, end): sizes and columns, one row after another.
  void make(std::int64_t begin, std::int64_t end, Buffer<std::int32_t>& sizes,
            Buffer<std::int32_t>& columns) const {
    std::vector<std::int32_t> row;
    for (auto v = begin; v < end; ++v) {
      make_row(v, row);
      sizes.push_back(static_cast<std::int32_t>(row.size()));
      columns.insert(columns.end(), row.begin(), row.end());
    }
  }

  /// `count` distinct vertices of the graph, ascending.
  std::vector<std::int64_t> choose_vertices(std::int64_t count) const {
    const Scramble order(shape_.nodes, {.purpose = Purpose::kGenerateSplit, .layer = 2});
    std::vector<std::int64_t> chosen;
    for (std::int64_t k = 0; k < std::min(count, shape_.nodes); ++k) chosen.push_back(order(k));
    std::ranges::sort(chosen);
    return chosen;
  }

 private:
  static constexpr int kRounds = 8;  // of drawing again what was drawn twice

  std::int64_t size_of(std::int64_t v, double fraction) const {
    const double x = (static_cast<double>(ids_.inverse(v)) + 0.5) / static_cast<double>(shape_.nodes);
    const double weight = shape_.hubs_are_long ? (1 - shape_.skew) * std::pow(x, -shape_.skew) : 1;
    return std::min(static_cast<std::int64_t>(shape_.degree * weight + fraction), shape_.nodes / 2);
  }

  void make_row(std::int64_t v, std::vector<std::int32_t>& row) const {
    const RandomStream stream = {
        .purpose = Purpose::kGenerateEdges, .layer = 3, .row = static_cast<std::uint64_t>(v)};
    std::uint64_t drawn = 0;
    const auto size = size_of(v, to_unit_double(random64(stream, drawn++)));
    row.clear();
    r123array4x64 block{};
    for (int round = 0; round < kRounds && std::ssize(row) < size; ++round) {
      for (auto missing = size - std::ssize(row); missing > 0; --missing, ++drawn) {
        if (row.empty() || drawn % 4 == 0) block = random_block(stream, drawn / 4);
        row.push_back(column_of(to_unit_double(block.v[drawn % 4])));
      }
      std::ranges::sort(row);
      row.erase(std::unique(row.begin(), row.end()), row.end());
    }
  }

  // By the inverse of the ranking's distribution, F(x) = x^(1 - g).
  std::int32_t column_of(double u) const {
    const double x = std::pow(u, 1 / (1 - shape_.skew));
    const auto place = static_cast<std::int64_t>(x * static_cast<double>(shape_.nodes));
    return static_cast<std::int32_t>(ids_(std::min(place, shape_.nodes - 1)));
  }

  GraphShape shape_;
  Scramble ids_;
};

}  // namespace espalier::bench
