#include "extract.hpp"

#include <algorithm>

#include "espalier/base/error.hpp"
#include "espalier/base/id_map.hpp"

namespace espalier {

namespace {

void check_columns(const Buffer<std::int64_t>& vertices) {
  ESPALIER_CHECK(std::ssize(vertices) < (std::int64_t{1} << 31), "a block of {} columns; use smaller batches",
                 std::ssize(vertices));
}

}  // namespace

std::vector<Minibatch> begin_minibatches(std::span<const SeedBatch> batches, std::size_t layers) {
  std::vector<Minibatch> minibatches(batches.size());
  for (std::size_t b = 0; b < batches.size(); ++b) {
    minibatches[b].number = batches[b].number;
    minibatches[b].vertices.assign(batches[b].seeds.begin(), batches[b].seeds.end());
    minibatches[b].blocks.resize(layers);
  }
  return minibatches;
}

StackedFrontier stack(const std::vector<Minibatch>& minibatches) {
  StackedFrontier frontier;
  for (const auto& minibatch : minibatches) frontier.add(minibatch.number, minibatch.vertices);
  return frontier;
}

template <class Index>
Block extract_block(std::span<const std::int64_t> offsets, std::span<const Index> picks,
                    std::span<const float> values, Buffer<std::int64_t>& vertices) {
  const auto rows = std::ssize(offsets) - 1;
  Block block;
  block.rows = rows;
  block.indptr.resize(offsets.size());
  for (std::size_t r = 0; r < offsets.size(); ++r) block.indptr[r] = offsets[r] - offsets[0];
  block.values.assign(values.begin(), values.end());

  // Positions of known vertices first, then a provisional one for each new vertex in order of appearance.
  IdMap position_of(rows + std::ssize(picks));
  for (const auto vertex : vertices) position_of.insert(vertex);
  ESPALIER_CHECK(position_of.size() == rows, "a frontier of {} rows holds {} distinct vertices", rows,
                 position_of.size());
  block.indices.resize(picks.size());
  for (std::size_t k = 0; k < picks.size(); ++k) {
    const auto position = position_of.insert(picks[k]);
    block.indices[k] = static_cast<std::int32_t>(position);
    if (position == std::ssize(vertices)) vertices.push_back(picks[k]);
  }

  check_columns(vertices);

  // New vertices in ascending id, and the provisional positions follow.
  Buffer<std::int64_t> provisional(vertices.begin() + rows, vertices.end());
  std::sort(vertices.begin() + rows, vertices.end());
  for (auto at = rows; at < std::ssize(vertices); ++at)
    position_of.assign(vertices[static_cast<std::size_t>(at)], at);
  Buffer<std::int32_t> final_position(provisional.size());
  for (std::size_t k = 0; k < provisional.size(); ++k)
    final_position[k] = static_cast<std::int32_t>(position_of.find(provisional[k]));
  for (auto& column : block.indices)
    if (column >= rows) column = final_position[static_cast<std::size_t>(column - rows)];

  block.columns = std::ssize(vertices);
  return block;
}

template <class Index>
Buffer<std::int32_t> extend_frontier(std::span<const Index> picks, Buffer<std::int64_t>& vertices) {
  IdMap position_of(std::ssize(vertices) + std::ssize(picks));
  for (const auto vertex : vertices) position_of.insert(vertex);
  Buffer<std::int32_t> places(picks.size());
  for (std::size_t k = 0; k < picks.size(); ++k) {
    const auto position = position_of.insert(picks[k]);
    places[k] = static_cast<std::int32_t>(position);
    if (position == std::ssize(vertices)) vertices.push_back(picks[k]);
  }
  check_columns(vertices);
  return places;
}

#define ESPALIER_INSTANTIATE(Index)                                                   \
  template Block extract_block(std::span<const std::int64_t>, std::span<const Index>, \
                               std::span<const float>, Buffer<std::int64_t>&);        \
  template Buffer<std::int32_t> extend_frontier(std::span<const Index>, Buffer<std::int64_t>&);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
