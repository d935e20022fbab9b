// Minibatches with hits for the tests of pruning in every space, what comes of them brought to the
// host, and what loops over sets of vertices say it must be.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "dense/relation_blocks.hpp"
#include "espalier/base/arrays.hpp"
#include "espalier/history/prune.hpp"

namespace espalier {

/// How a random minibatch is made.
struct PruneShape {
  std::vector<std::int64_t> frontiers;  ///< |F[0]|, .., |F[L]|
  int picks = 4;                        ///< entries of a row, at most
  std::int64_t relations = 1;
  int types = 1;
  bool values = true;
  double hit_share = 0.3;  ///< of every list
};

/// Arrays of the host; blocks lie in the middle of common arrays.
struct PruneCase {
  PruneShape shape;
  Buffer<std::int64_t> vertices;
  std::vector<Block> blocks;
  std::vector<std::int64_t> before;  ///< entries of others in front of each block
  RelationsAndTypes typed;
  std::vector<std::int64_t> type_ends;     ///< empty: one type
  std::vector<Buffer<std::uint8_t>> hits;  ///< [L-1]

  std::size_t layers() const { return blocks.size(); }
  std::int64_t size(std::size_t l) const { return shape.frontiers[l]; }

  PruneCase(const PruneShape& of, std::mt19937_64& random) : shape(of) {
    std::set<std::int64_t> ids;
    while (std::ssize(ids) < shape.frontiers[0]) ids.insert(static_cast<std::int64_t>(random() % kIds));
    vertices.assign(ids.begin(), ids.end());
    std::shuffle(vertices.begin(), vertices.end(), random);
    for (std::size_t l = 1; l < shape.frontiers.size(); ++l)  // what a layer adds ascends
      std::sort(vertices.begin() + size(l), vertices.begin() + size(l - 1));
    for (std::size_t l = 1; l < shape.frontiers.size(); ++l) {
      Block block;
      do block = random_block_matrix(size(l), size(l - 1), shape.picks, random);
      while (block.entries() < block.columns - block.rows);
      give_every_new_column_an_entry(block, random);
      if (!shape.values) block.values.clear();
      blocks.push_back(std::move(block));
      before.push_back(static_cast<std::int64_t>(random() % 9));
    }
    typed = RelationsAndTypes(blocks, shape.frontiers, shape.relations, 1, random);
    if (shape.types > 1) give_types();
    for (std::size_t l = 1; l < layers(); ++l) {
      hits.emplace_back();
      for (std::int64_t i = 0; i < size(l); ++i)
        hits.back().push_back(static_cast<double>(random() % 1000) < 1000 * shape.hit_share);
    }
  }

 private:
  static constexpr std::uint64_t kIds = std::uint64_t{1} << 40;

  // Each type has a range of ids; what a layer adds begins runs of its own.
  void give_types() {
    for (int type = 1; type <= shape.types; ++type)
      type_ends.push_back(static_cast<std::int64_t>(kIds) / shape.types * type + shape.types);
    for (std::int64_t k = 0; k < std::ssize(vertices); ++k) {
      const auto type =
          static_cast<int>(std::ranges::upper_bound(type_ends, vertices[k]) - type_ends.begin());
      const bool begins = std::ranges::find(shape.frontiers, k) != shape.frontiers.end();
      if (k > 0 && !begins && typed.runs.back().type == type)
        typed.runs.back().end = k + 1;
      else
        typed.runs.push_back({k, k + 1, type});
    }
  }

  static void give_every_new_column_an_entry(Block& block, std::mt19937_64& random) {
    std::vector<std::int64_t> filled;
    for (std::int64_t e = 0; e < block.entries(); ++e) filled.push_back(e);
    std::shuffle(filled.begin(), filled.end(), random);
    for (auto column = block.rows; column < block.columns; ++column)
      block.indices[filled[column - block.rows]] = static_cast<std::int32_t>(column);
  }
};

/// Its arrays in a space.
template <class Space>
struct PruneInput {
  struct Arrays {
    Array<Space, std::int64_t> indptr;
    Array<Space, std::int32_t> indices;
    Array<Space, float> values;
    Array<Space, std::uint8_t> relations;
  };
  std::vector<Arrays> arrays;
  Array<Space, std::int64_t> vertices;
  std::vector<Array<Space, std::uint8_t>> hit_arrays;
  std::vector<std::span<const std::uint8_t>> hits;
  MinibatchOn<Space> minibatch;

  PruneInput(const Space& space, const PruneCase& of) : arrays(of.layers()) {
    const auto put = [&]<class T>(const Buffer<T>& from) { return copy_to(space, std::span<const T>(from)); };
    vertices = put(of.vertices);
    minibatch.number = 17;
    minibatch.type_ends = {space, of.type_ends};
    minibatch.vertices = {vertices.data(), vertices.size()};
    for (std::size_t l = 0; l < of.layers(); ++l) {
      const SharedBlock shared(of.blocks[l], of.before[l]);
      auto& to = arrays[l];
      to.indptr = put(shared.arrays.indptr);
      to.indices = put(shared.arrays.indices);
      to.values = put(shared.arrays.values);
      if (!of.typed.relations.empty()) to.relations = put(behind(of.before[l], of.typed.relations[l]));
      const auto& block = of.blocks[l];
      minibatch.blocks.emplace_back(block.rows, block.columns, block.entries(), to.indptr.data(),
                                    to.indices.data(), Beside<const float>(of.shape.values, to.values),
                                    Beside<const std::uint8_t>(!of.typed.relations.empty(), to.relations));
      minibatch.blocks.back().runs = of.typed.runs_of(block.columns);
    }
    for (const auto& flags : of.hits) {
      hit_arrays.push_back(put(flags));
      hits.emplace_back(hit_arrays.back().data(), flags.size());
    }
  }
};

// ---- Results on the host ------------------------------------------------------------------------

/// One entry: of which vertex, with which value and relation.
using HostEntry = std::tuple<std::int64_t, float, int>;

struct HostRows {
  Buffer<std::int64_t> vertices, positions, columns;
  friend bool operator==(const HostRows&, const HostRows&) = default;
};

struct HostPruned {
  struct Layer {
    Buffer<std::int64_t> place;
    HostRows computed, cached;
    bool in_order;
    friend bool operator==(const Layer&, const Layer&) = default;
  };
  std::vector<Layer> layers;
  std::vector<Block> blocks;
  std::vector<Buffer<std::uint8_t>> relations;
  std::vector<std::vector<TypeRun>> runs;
  PrunedSize before, after;

  std::int64_t vertex(std::size_t l, std::int64_t column) const {
    const auto place = layers[l].place[column];
    return place < 0 ? layers[l].cached.vertices[~place] : layers[l].computed.vertices[place];
  }
};

template <class Space, class T>
Buffer<T> read(const Space& space, const T* from, std::int64_t count) {
  Buffer<T> to(static_cast<std::size_t>(count));
  copy_from(space, from, count, to.data());
  return to;
}

template <class Space, class T>
Buffer<T> read(const Space& space, std::span<const T> from) {
  return read(space, from.data(), std::ssize(from));
}

template <class Space>
HostPruned to_host(const Space& space, const PrunedMinibatchOn<Space>& pruned) {
  HostPruned host;
  host.before = pruned.before;
  host.after = pruned.after;
  const auto rows = [&](const PrunedRows& of) -> HostRows {
    return {read(space, of.vertices), read(space, of.positions), read(space, of.columns)};
  };
  for (const auto& layer : pruned.layers)
    host.layers.push_back(
        {read(space, layer.place), rows(layer.computed), rows(layer.cached), layer.in_order});
  for (const auto& block : pruned.blocks) {
    Block copy;
    copy.rows = block.rows;
    copy.columns = block.columns;
    copy.indptr = read(space, block.indptr, block.rows + 1);
    copy.indices = read(space, block.indices, block.entries());
    copy.weighted = block.has_values();
    if (block.has_values()) copy.values = read(space, block.values.data(), block.entries());
    host.blocks.push_back(std::move(copy));
    host.relations.push_back(block.has_relations() ? read(space, block.relations.data(), block.entries())
                                                   : Buffer<std::uint8_t>());
    host.runs.emplace_back(block.runs.begin(), block.runs.end());
  }
  return host;
}

inline bool same_runs(std::span<const TypeRun> a, std::span<const TypeRun> b) {
  return std::ranges::equal(a, b, [](const TypeRun& x, const TypeRun& y) {
    return x.begin == y.begin && x.end == y.end && x.type == y.type;
  });
}

inline void expect_same(const HostPruned& a, const HostPruned& b) {
  EXPECT_EQ(a.layers, b.layers);
  EXPECT_EQ(a.relations, b.relations);
  ASSERT_EQ(a.blocks.size(), b.blocks.size());
  for (std::size_t l = 0; l < a.blocks.size(); ++l) {
    EXPECT_TRUE(same_block(a.blocks[l], b.blocks[l])) << "block " << l;
    EXPECT_TRUE(same_runs(a.runs[l], b.runs[l])) << "block " << l;
  }
  EXPECT_EQ(a.after.inputs, b.after.inputs);
  EXPECT_EQ(a.after.rows, b.after.rows);
  EXPECT_EQ(a.after.entries, b.after.entries);
}

// ---- What it must be ----------------------------------------------------------------------------

/// Sets of global ids, from the seeds down.
struct NeededSets {
  std::vector<std::set<std::int64_t>> computed, cached;  ///< [L + 1]

  explicit NeededSets(const PruneCase& of) : computed(of.layers() + 1), cached(of.layers() + 1) {
    std::map<std::int64_t, std::int64_t> position;
    for (const auto v : of.vertices) position.emplace(v, std::ssize(position));
    const auto seeds = of.size(of.layers());
    computed.back().insert(of.vertices.begin(), of.vertices.begin() + seeds);
    for (auto l = of.layers(); l-- > 0;) {
      std::set<std::int64_t> needed = computed[l + 1];
      for (const auto v : computed[l + 1])
        for (const auto column : of.blocks[l].row_indices(position.at(v))) needed.insert(of.vertices[column]);
      for (const auto v : needed)
        (l > 0 && of.hits[l - 1][position.at(v)] != 0 ? cached : computed)[l].insert(v);
    }
  }
};

inline std::vector<HostEntry> entries_of_row(const Block& block, const Buffer<std::uint8_t>* relations,
                                             std::int64_t row, const auto& vertex) {
  std::vector<HostEntry> entries;
  for (auto e = block.row_begin(row); e < block.row_end(row); ++e)
    entries.emplace_back(vertex(block.indices[e]), block.has_values() ? block.values[e] : 1.0f,
                         relations == nullptr ? 0 : (*relations)[e]);
  return entries;
}

/// Lists, places, blocks and runs against the sets and the blocks as they were.
inline void expect_pruned(const PruneCase& of, const HostPruned& pruned) {
  const NeededSets sets(of);
  const auto layers = of.layers();
  PrunedSize after;
  std::map<std::int64_t, int> type_of;
  for (const auto& run : of.typed.runs)
    for (auto k = run.begin; k < run.end; ++k) type_of[of.vertices[k]] = run.type;
  ASSERT_EQ(pruned.layers.size(), layers);
  for (std::size_t l = 0; l < layers; ++l) {
    SCOPED_TRACE(fmt::format("layer {}", l));
    const auto& layer = pruned.layers[l];
    EXPECT_EQ(std::ssize(layer.place), std::ssize(sets.computed[l]) + std::ssize(sets.cached[l]));
    for (const bool is_cached : {false, true}) {
      const auto& rows = is_cached ? layer.cached : layer.computed;
      const auto& expected = is_cached ? sets.cached[l] : sets.computed[l];
      EXPECT_EQ(rows.vertices.size(), expected.size());
      EXPECT_EQ(std::set<std::int64_t>(rows.vertices.begin(), rows.vertices.end()), expected);
      EXPECT_TRUE(std::ranges::is_sorted(rows.columns)) << "in the order of D[l]";
      for (std::int64_t k = 0; k < std::ssize(rows.vertices); ++k) {
        EXPECT_EQ(of.vertices[rows.positions[k]], rows.vertices[k]);
        EXPECT_EQ(layer.place[rows.columns[k]], is_cached ? ~k : k);
      }
    }
    bool in_order = true;
    for (std::int64_t k = 0; k < std::ssize(layer.place); ++k) in_order = in_order && layer.place[k] == k;
    if (layer.in_order) EXPECT_TRUE(in_order);
    if (l == 0) EXPECT_TRUE(layer.in_order);
    after.inputs = l == 0 ? std::ssize(layer.place) : after.inputs;

    const auto& block = pruned.blocks[l];  // B'[l+1]
    EXPECT_EQ(block.columns, std::ssize(layer.place));
    EXPECT_EQ(block.rows, std::ssize(sets.computed[l + 1]));
    EXPECT_EQ(block.indptr[0], 0);
    EXPECT_EQ(block.indptr[block.rows], block.entries());
    EXPECT_EQ(block.has_values(), of.shape.values);
    after.rows += block.rows;
    after.entries += block.entries();
    std::set<std::int64_t> read;
    for (std::int64_t row = 0; row < block.rows; ++row) {
      const auto position = l + 1 == layers ? row : pruned.layers[l + 1].computed.positions[row];
      EXPECT_EQ(pruned.vertex(l, row), of.vertices[position]) << "rows are the first columns";
      read.insert(of.vertices[position]);
      const auto entries = entries_of_row(block, of.typed.relations.empty() ? nullptr : &pruned.relations[l],
                                          row, [&](std::int64_t column) { return pruned.vertex(l, column); });
      EXPECT_EQ(entries,
                entries_of_row(of.blocks[l], of.typed.relations.empty() ? nullptr : &of.typed.relations[l],
                               position, [&](std::int64_t column) { return of.vertices[column]; }));
      for (const auto& entry : entries) read.insert(std::get<0>(entry));
    }
    EXPECT_EQ(std::ssize(read), block.columns) << "every column is read";

    // Columns behind the rows ascend; runs cover all of them.
    for (auto k = block.rows + 1; k < block.columns; ++k)
      EXPECT_LT(pruned.vertex(l, k - 1), pruned.vertex(l, k));
    std::int64_t end = 0;
    for (const auto& run : pruned.runs[l]) {
      EXPECT_EQ(run.begin, end);
      EXPECT_LT(run.begin, run.end);
      EXPECT_TRUE(run.end <= block.rows || run.begin >= block.rows) << "a run ends where the rows do";
      for (; end < run.end; ++end) EXPECT_EQ(type_of.at(pruned.vertex(l, end)), run.type);
    }
    EXPECT_EQ(end, of.typed.runs.empty() ? 0 : block.columns);
  }
  EXPECT_EQ(pruned.after.inputs, after.inputs);
  EXPECT_EQ(pruned.after.rows, after.rows);
  EXPECT_EQ(pruned.after.entries, after.entries);
  PrunedSize before = {std::ssize(of.vertices)};
  for (const auto& block : of.blocks) before.rows += block.rows, before.entries += block.entries();
  EXPECT_EQ(pruned.before.inputs, before.inputs);
  EXPECT_EQ(pruned.before.rows, before.rows);
  EXPECT_EQ(pruned.before.entries, before.entries);
}

// ---- A network of integers ----------------------------------------------------------------------

/// H[l](v) = 3 H[l-1](v) + the sum over entries of (1 + relation) H[l-1](u), modulo 2^64; what the
/// cache has of H[l](v) is a number that only (l, v) decide.
inline std::uint64_t remembered(std::size_t l, std::int64_t vertex) {
  return (static_cast<std::uint64_t>(vertex) + 1) * (2 * l + 0x9e3779b97f4a7c15u);
}

/// Of the seeds, with rows in the places that `pruned` says.
inline std::vector<std::uint64_t> outputs_of(const HostPruned& pruned) {
  std::vector<std::uint64_t> h;
  for (const auto v : pruned.layers[0].computed.vertices) h.push_back(remembered(0, v));
  for (std::size_t l = 0; l < pruned.blocks.size(); ++l) {
    const auto& block = pruned.blocks[l];
    const auto source = [&](std::int64_t column) {
      const auto place = pruned.layers[l].place[column];
      return place < 0 ? remembered(l, pruned.layers[l].cached.vertices[~place]) : h[place];
    };
    std::vector<std::uint64_t> next;
    for (std::int64_t row = 0; row < block.rows; ++row) {
      next.push_back(3 * source(row));
      for (auto e = block.row_begin(row); e < block.row_end(row); ++e)
        next.back() +=
            (1 + (pruned.relations[l].empty() ? 0 : pruned.relations[l][e])) * source(block.indices[e]);
    }
    h = std::move(next);
  }
  return h;
}

/// By recursion over vertices: who hits is not looked into.
struct RecursiveOutputs {
  const PruneCase& of;
  std::map<std::pair<std::size_t, std::int64_t>, std::uint64_t> known;

  std::uint64_t h(std::size_t l, std::int64_t i) {
    if (l == 0 || (l < of.layers() && of.hits[l - 1][i] != 0)) return remembered(l, of.vertices[i]);
    const auto found = known.find({l, i});
    if (found != known.end()) return found->second;
    auto sum = 3 * h(l - 1, i);
    const auto& block = of.blocks[l - 1];
    for (auto e = block.row_begin(i); e < block.row_end(i); ++e)
      sum +=
          (1 + (of.typed.relations.empty() ? 0 : of.typed.relations[l - 1][e])) * h(l - 1, block.indices[e]);
    return known[{l, i}] = sum;
  }
  std::vector<std::uint64_t> seeds() {
    std::vector<std::uint64_t> all;
    for (std::int64_t i = 0; i < of.size(of.layers()); ++i) all.push_back(h(of.layers(), i));
    return all;
  }
};

/// One minibatch by all of these.
template <class Space>
HostPruned expect_prunes(const Space& space, const PruneCase& of) {
  const PruneInput<Space> input(space, of);
  const auto pruned = to_host(space, prune(space, input.minibatch, input.hits));
  expect_pruned(of, pruned);
  EXPECT_EQ(outputs_of(pruned), (RecursiveOutputs{of, {}}.seeds()));
  return pruned;
}

/// Two, three and four layers, of few and many picks, with and without values, relations, types;
/// from no hits to nothing but hits.
inline std::vector<PruneShape> prune_shapes() {
  std::vector<PruneShape> shapes;
  for (const auto& frontiers : std::vector<std::vector<std::int64_t>>{
           {9, 5}, {40, 12, 4}, {300, 120, 30, 7}, {400, 300, 120, 40, 9}, {30, 30, 30, 30}})
    for (const auto& [relations, types] : {std::pair{1, 1}, {1, 3}, {5, 4}})
      for (const double share : {0.0, 0.1, 0.5, 0.9, 1.0}) {
        shapes.push_back({.frontiers = frontiers,
                          .picks = 12,
                          .relations = relations,
                          .types = types,
                          .values = relations == 5 || types == 1,
                          .hit_share = share});
      }
  shapes.push_back({.frontiers = {0, 0, 0}});
  shapes.push_back({.frontiers = {1, 1, 1}, .picks = 0});  // rows without entries
  shapes.push_back({.frontiers = {3000, 700, 90, 11}, .picks = 40, .hit_share = 0.2});
  return shapes;
}

inline std::string name_of(const PruneShape& shape) {
  return fmt::format("frontiers {} relations {} types {} hits {}", fmt::join(shape.frontiers, " "),
                     shape.relations, shape.types, shape.hit_share);
}

}  // namespace espalier
