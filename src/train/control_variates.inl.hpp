// Control variates from history (history.kind = "variate"), for every space: the part of
// TrainingHistoryOn that makes them. training_history.cpp and training_history.cu instantiate it.
//
// For layers l = 2 .. L, which read hidden rows, the sums B[l] H[l-1] of a sample are given
//
//     C[l] H^    C[l] = A - B[l] in the rows F[l] and the columns S (sample/control_variate.hpp)
//
// with S the rows of H[l-1] that history has, H^. F[2] has all of F[3] .. F[L] as its first
// vertices, so the whole rows of A that its vertices have serve all layers: one draw without a
// limit. C is made on the host, where it is known what is kept; rows are read and multiplied where
// the space is.
#pragma once

#include <algorithm>
#include <utility>

#include "espalier/base/arrays.hpp"
#include "espalier/dense/spmm.hpp"
#include "espalier/sample/control_variate.hpp"
#include "espalier/train/training_history.hpp"

namespace espalier {

/// A block on the host: as it is, or a copy.
template <class Space>
struct BlockOnHost {
  Buffer<std::int64_t> indptr;
  Buffer<std::int32_t> indices;
  Buffer<float> values;
  BlockView<> view;

  BlockOnHost(const Space& space, const BlockView<Space>& block) {
    if constexpr (std::is_same_v<Space, Cpu>) {
      view = block;
    } else {
      indptr.resize(block.rows + 1);
      copy_from(space, block.indptr, block.rows + 1, indptr.data());
      const auto first = indptr[0];
      for (auto& begin : indptr) begin -= first;
      indices.resize(block.entries());
      copy_from(space, block.indices + first, block.entries(), indices.data());
      values.resize(block.has_values() ? block.entries() : 0);
      if (block.has_values()) copy_from(space, block.values + first, block.entries(), values.data());
      view = {block.rows,    block.columns,  block.entries(),
              indptr.data(), indices.data(), block.has_values() ? values.data() : nullptr};
    }
  }
  BlockOnHost(const BlockOnHost&) = delete;
};

template <class Space>
Buffer<std::int64_t> list_on_host(const Space& space, std::span<const std::int64_t> list) {
  Buffer<std::int64_t> copy(list.size());
  copy_from(space, list.data(), std::ssize(list), copy.data());
  return copy;
}

/// What one layer of one minibatch adds, until rows are there.
template <class Space>
struct LayerVariate {
  ControlVariate made;
  Array<Space, std::int64_t> positions, vertices;  ///< of its columns
  Matrix<float, Space> rows;                       ///< of them

  std::span<const std::int64_t> positions_view() const { return {positions.data(), positions.size()}; }
  std::span<const std::int64_t> vertices_view() const { return {vertices.data(), vertices.size()}; }

  /// added = C H^
  void multiply(const Space& space, Matrix<float, Space>& added) const {
    const auto& block = made.block;
    const auto indptr = copy_to(space, std::span<const std::int64_t>(block.indptr));
    const auto indices = copy_to(space, std::span<const std::int32_t>(block.indices));
    const auto values = copy_to(space, std::span<const float>(block.values));
    added.resize(block.rows, rows.columns);
    spmm<float>(space,
                BlockView<Space>(block.rows, block.columns, block.entries(), indptr.data(), indices.data(),
                                 values.data()),
                rows, added);
  }
};

/// The vertices of whole rows as a minibatch whose lists F[1] .. F[L] are all of them: any of them
/// may be asked for in any layer.
template <class Space>
MinibatchOn<Space> lists_of(const MinibatchOn<Space>& whole, std::size_t layers) {
  MinibatchOn<Space> lists = {whole.number, whole.vertices, {}, whole.memory};
  lists.blocks.resize(layers);
  for (auto& block : lists.blocks) block.rows = std::ssize(whole.vertices);
  return lists;
}

/// Of the layers 2 .. L of a minibatch, without rows. whole: the rows of A of F[2]; found: of its
/// lists_of.
template <class Space>
std::vector<LayerVariate<Space>> variates_of(const Space& space, const MinibatchOn<Space>& minibatch,
                                             const MinibatchOn<Space>& whole,
                                             const HistoryFoundOn<Space>& found) {
  const auto sources = list_on_host(space, minibatch.vertices),
             vertices = list_on_host(space, whole.vertices);
  const BlockOnHost<Space> rows(space, whole.blocks[0]);
  std::vector<LayerVariate<Space>> variates(minibatch.blocks.size() - 1);
  for (std::size_t l = 1; l <= variates.size(); ++l) {
    auto& variate = variates[l - 1];
    const BlockOnHost<Space> sampled(space, minibatch.blocks[l]);
    auto known = copy_from(space, found.hits[l - 1]);
    known.resize(vertices.size(), 0);  // of a layer that is not kept
    variate.made = control_variate(sampled.view, sources, rows.view, vertices, known);
    std::vector<std::int64_t> of_columns;
    for (const auto position : variate.made.positions) of_columns.push_back(vertices[position]);
    variate.vertices = copy_to(space, std::span<const std::int64_t>(of_columns));
    variate.positions = copy_to(space, std::span<const std::int64_t>(variate.made.positions));
  }
  return variates;
}

/// Nothing is left out of the minibatch; what its layers ask of history are entries of whole rows.
template <class Space>
HistoryCounts counts_of(const MinibatchOn<Space>& minibatch,
                        const std::vector<LayerVariate<Space>>& variates) {
  const auto inputs = std::ssize(minibatch.vertices), entries = minibatch.sampled_edges();
  HistoryCounts counts = {
      .inputs_before = inputs, .inputs = inputs, .entries_before = entries, .entries = entries};
  for (const auto& variate : variates) {
    counts.needed += variate.made.entries;
    counts.hits += variate.made.known;
  }
  return counts;
}

template <class Space>
std::vector<MinibatchOn<Space>> TrainingHistoryOn<Space>::draw_whole_rows(
    const Space& space, std::span<const MinibatchOn<Space>> minibatches) const {
  std::vector<Buffer<std::int64_t>> lists;
  std::vector<SeedBatch> batches;
  for (const auto& minibatch : minibatches)
    lists.push_back(list_on_host(space, minibatch.vertices.first(minibatch.blocks[1].rows)));
  for (std::size_t m = 0; m < minibatches.size(); ++m) batches.push_back({minibatches[m].number, lists[m]});
  return whole_rows_->sample(space, batches, 0, 0);  // nothing is left to chance
}

template <class Space>
void TrainingHistoryOn<Space>::begin_variates(const Space& space,
                                              std::span<const MinibatchOn<Space>> minibatches,
                                              PrunedStepOn<Space>& step, std::string_view label) {
  const auto whole = draw_whole_rows(space, minibatches);
  std::vector<MinibatchOn<Space>> asked;
  for (std::size_t m = 0; m < whole.size(); ++m)
    asked.push_back(lists_of(whole[m], minibatches[m].blocks.size()));
  std::vector<HistoryFoundOn<Space>> found(minibatches.size());
  auto* const of_grid = std::get_if<GridHistoryOn<Space>>(&cache_);
  if (of_grid != nullptr) of_grid->find(space, asked, found, label);

  std::vector<std::vector<LayerVariate<Space>>> variates(minibatches.size());
  for_each_minibatch(space, minibatches.size(), [&](const Space& share, std::size_t m) {
    const auto* const lane = of_grid == nullptr ? &lane_of(minibatches[m].number) : nullptr;
    if (lane != nullptr) found[m] = lane->find(share, asked[m]);
    variates[m] = variates_of(share, minibatches[m], whole[m], found[m]);
    for (std::size_t l = 1; lane != nullptr && l <= variates[m].size(); ++l) {
      auto& variate = variates[m][l - 1];
      lane->read(share, found[m], static_cast<int>(l), variate.positions_view(), variate.rows);
    }
  });
  if (of_grid != nullptr) {
    std::vector<HistoryReadOn<Space>> wanted;
    for (auto& of_minibatch : variates)
      for (std::size_t l = 1; l <= of_minibatch.size(); ++l) {
        auto& variate = of_minibatch[l - 1];
        wanted.push_back({static_cast<int>(l), variate.vertices_view(), &variate.rows});
      }
    of_grid->read(space, wanted, label);
  }

  step.added.resize(minibatches.size());
  for_each_minibatch(space, minibatches.size(), [&](const Space& share, std::size_t m) {
    step.added[m].resize(variates[m].size() + 1);
    for (std::size_t l = 1; l <= variates[m].size(); ++l)
      if (variates[m][l - 1].made.block.entries() > 0) variates[m][l - 1].multiply(share, step.added[m][l]);
  });
  for (std::size_t m = 0; m < minibatches.size(); ++m)
    step.counts.add(counts_of(minibatches[m], variates[m]));
}

template <class Space>
void TrainingHistoryOn<Space>::note(const Space& space, std::int64_t step,
                                    const MinibatchOn<Space>& minibatch, Network<float, Space>& network,
                                    HistoryCounts& counts) {
  const auto vertices = list_on_host(space, minibatch.vertices.first(minibatch.blocks[0].rows));
  for (const int layer : shape_.layers) {
    std::vector<HistoryWrite> writes;
    for (std::int64_t row = 0; row < minibatch.blocks[layer - 1].rows; ++row)
      writes.push_back({vertices[row], 0, row});
    counts.written += std::ssize(writes);
    write(space, step, minibatch.number, layer, writes, network.computed_rows(layer));
  }
}

}  // namespace espalier
