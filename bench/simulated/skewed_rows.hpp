// Rows of a random graph with hubs, made row by row: no file, no list of edges, every rank makes
// what it holds.
//
// Vertex v stands at a place x in (0, 1) of a ranking by popularity, w(x) = (1 - g) x^-g, mean 1
// (g: `skew`; Chung and Lu 2002 with a power law of exponent 1 + 1/g). Row v has d w(x) distinct
// columns (`hubs_are_long`, as in a symmetric graph: who is met often has many neighbours) or d (as
// in a graph of citations), drawn in proportion to w. Ids are scrambled, so that hubs lie anywhere.
// A row is a function of (shape, v).
//
// Every vertex is in one of a ring of 1,024 clusters of equal size, to which each block of 1,024
// places of the ranking gives one vertex. With `near` = 0 edges know nothing of them. Otherwise an
// edge stays near with that probability: its column, drawn as ever, gives way to the vertex of its
// block that is in a cluster at most 16 from the row's, any of these 33 alike. Hubs, the most
// popular 1/64 of the vertices, belong to everybody: they never give way, and their rows are those
// of `near` = 0. What was drawn twice is drawn again anywhere. So degrees are those of `near` = 0.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "espalier/graph/file_stream.hpp"
#include "espalier/graph/generate.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier::bench {

struct GraphShape {
  std::int64_t nodes = 1 << 14;
  double degree = 16;
  double skew = 0.4;
  bool hubs_are_long = true;
  double near = 0;  ///< probability that an edge stays near, < 1
};

class SkewedRows {
 public:
  static constexpr std::int64_t kClusters = 1 << 10;

  explicit SkewedRows(const GraphShape& shape)
      : shape_(shape),
        ids_(shape.nodes, {.purpose = FilePurpose::kGenerateEdges, .layer = 2}),
        clusters_(kClusters, {.purpose = FilePurpose::kGenerateEdges, .layer = 4}),
        hubs_(shape.nodes / 64) {}

  /// Its number in the ring.
  std::int64_t cluster_of(std::int64_t v) const { return clusters_(ids_.inverse(v) % kClusters); }

  /// How many columns row v is to have; it has fewer only where distinct ones were hard to draw.
  std::int64_t size_of(std::int64_t v) const {
    const double x = (static_cast<double>(ids_.inverse(v)) + 0.5) / static_cast<double>(shape_.nodes);
    const double weight = shape_.hubs_are_long ? (1 - shape_.skew) * std::pow(x, -shape_.skew) : 1;
    const double fraction = to_unit_double(file_word(stream_of(v), 0));
    return std::min(static_cast<std::int64_t>(shape_.degree * weight + fraction), shape_.nodes / 2);
  }

  /// Rows [begin, end): sizes and columns, one row after another; added to what is there.
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
    const Scramble order(shape_.nodes, {.purpose = FilePurpose::kGenerateSplit, .layer = 2});
    std::vector<std::int64_t> chosen;
    for (std::int64_t k = 0; k < std::min(count, shape_.nodes); ++k) chosen.push_back(order(k));
    std::ranges::sort(chosen);
    return chosen;
  }

 private:
  static constexpr int kRounds = 8;           // of drawing again what was drawn twice
  static constexpr std::int64_t kReach = 16;  // clusters to either side that are near

  static FileStream stream_of(std::int64_t v, std::uint64_t layer = 3) {
    return {.purpose = FilePurpose::kGenerateEdges, .layer = layer, .row = static_cast<std::uint64_t>(v)};
  }

  void make_row(std::int64_t v, std::vector<std::int32_t>& row) const {
    const auto stream = stream_of(v);
    std::uint64_t drawn = 1;  // the first is the size's
    const auto size = size_of(v), place = ids_.inverse(v);
    const bool stays_near = shape_.near > 0 && place >= hubs_;
    row.clear();
    r123array4x64 block{};
    for (int round = 0; round < kRounds && std::ssize(row) < size; ++round) {
      for (auto missing = size - std::ssize(row); missing > 0; --missing, ++drawn) {
        if (row.empty() || drawn % 4 == 0) block = file_block(stream, drawn / 4);
        auto column = place_of(to_unit_double(block.v[drawn % 4]));
        if (stays_near && round == 0) column = moved_near(v, place, drawn, column);
        row.push_back(static_cast<std::int32_t>(ids_(column)));
      }
      std::ranges::sort(row);
      row.erase(std::unique(row.begin(), row.end()), row.end());
    }
  }

  // By the inverse of the ranking's distribution, F(x) = x^(1 - g).
  std::int64_t place_of(double u) const {
    const double x = std::pow(u, 1 / (1 - shape_.skew));
    return std::min(static_cast<std::int64_t>(x * static_cast<double>(shape_.nodes)), shape_.nodes - 1);
  }

  // The place of a column of row v: as drawn, or one of the same block in a cluster near v's.
  std::int64_t moved_near(std::int64_t v, std::int64_t place, std::uint64_t draw, std::int64_t column) const {
    const double u = to_unit_double(file_word(stream_of(v, 5), draw));
    if (column < hubs_ || u >= shape_.near) return column;
    const auto step = static_cast<std::int64_t>(u / shape_.near * (2 * kReach + 1)) - kReach;
    const auto cluster = (clusters_(place % kClusters) + step + kClusters) % kClusters;
    const auto moved = column / kClusters * kClusters + clusters_.inverse(cluster);
    return moved < shape_.nodes ? moved : column;
  }

  GraphShape shape_;
  Scramble ids_;       // place in the ranking -> id
  Scramble clusters_;  // place in a block -> cluster
  std::int64_t hubs_;  // the first places of the ranking
};

}  // namespace espalier::bench
