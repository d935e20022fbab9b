// A graph whose edges have features, and minibatches over it, for the tests of every space: what
// each entry's features are is a formula of the entry.
#pragma once

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "dense/random_matrices.hpp"
#include "espalier/base/philox.hpp"
#include "espalier/feature/edge_store.hpp"
#include "espalier/graph/graph_writer.hpp"
#include "partition/owned.hpp"

namespace espalier {

/// Types a and b; of four relations two have features, of 3 and 2 numbers; one has no edge.
inline Schema edge_schema() {
  return Schema({{"a", 0, 31}, {"b", 31, 84}},
                {{"of", 0, 1}, {"beside", 1, 1}, {"to", 1, 0}, {"never", 0, 0}});
}
inline constexpr std::int64_t kEdgeWidths[] = {3, 0, 2, 0};
inline constexpr std::int64_t kEdgeWidth = 3, kEdgeVertices = 84;

/// Numbers that a float16 holds.
inline float edge_number(std::int64_t row, std::int64_t column, std::int64_t j) {
  return static_cast<float>((row * 59 + column * 31 + j * 7) % 2039 - 1000);
}

inline Csr<std::int32_t> edge_matrix() {
  const auto schema = edge_schema();
  Csr<std::int32_t> a;
  a.rows = kEdgeVertices;
  a.columns = schema.columns();
  for (std::int64_t v = 0; v < a.rows; ++v) {
    for (int r = 0; r < 3; ++r) {
      const auto& relation = schema.relations()[static_cast<std::size_t>(r)];
      if (schema.type_of(v) != relation.target) continue;
      for (auto column = schema.begin(r); column < schema.begin(r + 1); ++column)
        if (v % 7 != 2 &&
            random64({.seed = 5, .row = static_cast<std::uint64_t>(v)}, static_cast<std::uint64_t>(column)) %
                    4 ==
                0)
          a.indices.push_back(static_cast<std::int32_t>(column));
    }
    a.indptr.push_back(a.entries());
  }
  return a;
}

/// Collective. `too_many`: more features than entries.
template <class T>
void write_edges(const std::string& path, const Communicator& world, bool too_many = false) {
  const auto schema = edge_schema();
  const auto whole = edge_matrix();
  const bool writes = world.rank() == 0;
  GraphWriter writer(world, {path, true});
  writer.write_schema(schema);
  Csr<std::int32_t> none;
  none.columns = whole.columns;
  writer.write_adjacency(writes ? whole : none);
  for (const int r : {0, 2}) {
    Matrix<T> rows(0, kEdgeWidths[r]);
    const auto add = [&](std::int64_t v, std::int64_t column) {
      for (std::int64_t j = 0; j < rows.columns; ++j)
        rows.data.push_back(as_stored<T>(edge_number(v, column, j)));
      ++rows.rows;
    };
    for (std::int64_t v = 0; writes && v < whole.rows; ++v)
      for (const auto column : whole.row_indices(v))
        if (schema.relation_of(column) == r) add(v, column);
    if (writes && too_many && r == 2) add(0, 0);
    writer.write_rows(Column::kEdgeFeatures, r, writes ? rows : Matrix<T>());
  }
  writer.commit({"edges", "a test", true});
}

/// A minibatch of two blocks; the second has fewer rows. Its vertices are all there are, shuffled.
struct EdgeMinibatch {
  Buffer<std::int64_t> vertices;
  std::vector<Block> storage;
  std::vector<Buffer<std::uint8_t>> relations;
  // What is expected, block by block.
  std::vector<std::vector<std::int32_t>> entries;
  std::vector<std::vector<float>> rows;

  /// `mine`: rows are those; else any. Some entries are not in the matrix.
  EdgeMinibatch(const Csr<std::int32_t>& a, std::uint64_t seed, const std::vector<std::int64_t>& mine = {}) {
    const auto schema = edge_schema();
    vertices.resize(kEdgeVertices);
    std::iota(vertices.begin(), vertices.end(), std::int64_t{0});
    const RandomStream stream = {.seed = seed};
    for (std::size_t k = vertices.size(); k-- > 1;)
      std::swap(vertices[k], vertices[random_below(stream, k, k + 1)]);
    std::ranges::stable_partition(vertices, [&](auto v) { return std::ranges::find(mine, v) != mine.end(); });
    std::map<std::int64_t, std::int32_t> place;
    for (std::size_t k = 0; k < vertices.size(); ++k) place[vertices[k]] = static_cast<std::int32_t>(k);
    const auto all = mine.empty() ? kEdgeVertices : std::ssize(mine);
    for (const std::int64_t rows_of_block : {all * 3 / 4, all / 3}) {
      auto& block = storage.emplace_back();
      auto& of_entries = relations.emplace_back();
      auto& with = entries.emplace_back();
      auto& expected = rows.emplace_back();
      block.rows = rows_of_block;
      block.columns = kEdgeVertices;
      for (std::int64_t k = 0; k < block.rows; ++k) {
        const auto v = vertices[static_cast<std::size_t>(k)];
        const auto in_matrix = a.row_indices(v);
        for (std::int64_t column = 0; column < a.columns; ++column) {
          const bool there = std::ranges::binary_search(in_matrix, static_cast<std::int32_t>(column));
          const auto word = random64({.seed = seed, .layer = 1, .row = static_cast<std::uint64_t>(v)},
                                     static_cast<std::uint64_t>(column));
          if (there ? word % 3 == 0 : word % 97 != 0) continue;
          const int r = schema.relation_of(column);
          if (kEdgeWidths[r] > 0) {
            with.push_back(static_cast<std::int32_t>(block.entries()));
            for (std::int64_t j = 0; j < kEdgeWidth; ++j)
              expected.push_back(there && j < kEdgeWidths[r] ? edge_number(v, column, j) : 0);
          }
          block.indices.push_back(place[schema.vertex_of(column)]);
          of_entries.push_back(static_cast<std::uint8_t>(r));
        }
        block.indptr.push_back(block.entries());
      }
    }
  }
  Minibatch minibatch(std::size_t blocks = 2) const {
    Minibatch shown{0, vertices, {}, nullptr};
    for (std::size_t l = 0; l < blocks; ++l) {
      shown.blocks.emplace_back(storage[l]);
      shown.blocks.back().relations = Beside<const std::uint8_t>(relations[l]);
    }
    return shown;
  }
};

/// The vertices of a part.
inline std::vector<std::int64_t> vertices_of(const Ownership& ownership, int part) {
  std::vector<std::int64_t> vertices;
  for (std::int64_t k = 0; k < ownership.size(part); ++k) vertices.push_back(ownership.vertex(part, k));
  return vertices;
}

}  // namespace espalier
