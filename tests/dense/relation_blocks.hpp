// Blocks whose entries belong to relations, and minibatches of vertices of several types, for
// tests.
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "dense/random_matrices.hpp"
#include "espalier/base/buffer.hpp"

namespace espalier {

/// A relation for each entry, ascending in a row; none repeats or all do, as chance has it.
inline Buffer<std::uint8_t> random_relations(const Block& block, std::int64_t relations,
                                             std::mt19937_64& random) {
  Buffer<std::uint8_t> of_entries;
  for (std::int64_t row = 0; row < block.rows; ++row) {
    const auto begin = static_cast<std::ptrdiff_t>(of_entries.size());
    for (std::int64_t e = 0; e < block.row_size(row); ++e)
      of_entries.push_back(static_cast<std::uint8_t>(random() % static_cast<std::uint64_t>(relations)));
    std::sort(of_entries.begin() + begin, of_entries.end());
  }
  return of_entries;
}

/// For arrays where a block begins behind `before` entries of others, whose relation is none.
inline Buffer<std::uint8_t> behind(std::int64_t before, const Buffer<std::uint8_t>& relations) {
  Buffer<std::uint8_t> all(static_cast<std::size_t>(before), std::uint8_t{255});
  all.insert(all.end(), relations.begin(), relations.end());
  return all;
}

/// The view with relations beside its entries; both must stay.
template <class Space>
BlockView<Space> with_relations(BlockView<Space> block, const auto& relations) {
  block.relations = Beside<const std::uint8_t>(relations);
  return block;
}

/// The types of a minibatch's vertices, as samplers make them: the seeds, frontiers.back(), in no
/// order; behind them what each layer adds, ascending, in runs of its own.
inline std::vector<TypeRun> random_type_runs(const std::vector<std::int64_t>& frontiers, int types,
                                             std::mt19937_64& random) {
  std::vector<TypeRun> runs;
  std::int64_t place = 0;
  for (std::size_t layer = frontiers.size(); layer-- > 0;) {
    std::vector<int> added;
    for (auto k = place; k < frontiers[layer]; ++k)
      added.push_back(static_cast<int>(random() % static_cast<std::uint64_t>(types)));
    if (layer + 1 < frontiers.size()) std::ranges::sort(added);
    for (std::size_t k = 0; k < added.size(); ++k, ++place)
      if (k > 0 && runs.back().type == added[k])
        runs.back().end = place + 1;
      else
        runs.push_back({place, place + 1, added[k]});
  }
  return runs;
}

/// What stands beside a minibatch's entries and vertices where there are several
/// relations or types.
struct RelationsAndTypes {
  std::vector<Buffer<std::uint8_t>> relations;  ///< of each block
  std::vector<TypeRun> runs;

  RelationsAndTypes() = default;
  RelationsAndTypes(const std::vector<Block>& blocks, const std::vector<std::int64_t>& frontiers,
                    std::int64_t relation_count, int types, std::mt19937_64& random) {
    for (const Block& block : blocks)
      if (relation_count > 1) relations.push_back(random_relations(block, relation_count, random));
    if (types > 1) runs = random_type_runs(frontiers, types, random);
  }
  /// The runs that a block's columns have: runs end where a layer's vertices do.
  std::span<const TypeRun> runs_of(std::int64_t columns) const {
    const auto last = std::ranges::find_if(runs, [&](const TypeRun& run) { return run.end > columns; });
    return {runs.begin(), last};
  }
  /// Of blocks that lie by themselves.
  void show(std::vector<BlockView<>>& blocks) const {
    for (std::size_t l = 0; l < blocks.size(); ++l) {
      if (!relations.empty()) blocks[l].relations = Beside<const std::uint8_t>(relations[l]);
      blocks[l].runs = runs_of(blocks[l].columns);
    }
  }
};

}  // namespace espalier
