// Leaving entries out of blocks: a row after the other, a thread for each on a GPU.
#include <utility>

#include "espalier/base/arrays.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/kernels.hpp"
#include "espalier/sample/epoch_sampler.hpp"

namespace espalier {

/// Ascending entries that go, in memory of the space. Small: copied into kernels.
struct ExcludedEdges {
  const SeedPair* pairs = nullptr;
  std::int64_t count = 0;

  /// The first that is not before an entry.
  ESPALIER_HD std::int64_t first(std::int64_t row, std::int64_t column, int relation) const {
    std::int64_t low = 0, high = count;
    while (low < high) {
      const auto middle = low + (high - low) / 2;
      const auto& pair = pairs[middle];
      const bool before = pair.row != row         ? pair.row < row
                          : pair.column != column ? pair.column < column
                                                  : pair.relation < relation;
      (before ? low : high) = before ? middle + 1 : middle;
    }
    return low;
  }
  /// relation -1: of any.
  ESPALIER_HD bool has(std::int64_t row, std::int64_t column, int relation) const {
    const auto at = first(row, column, relation);
    return at < count && pairs[at].row == row && pairs[at].column == column &&
           (relation < 0 || pairs[at].relation == relation);
  }
};

/// A block that loses entries, and where those go that stay.
struct ThinnedBlock {
  const std::int64_t* indptr = nullptr;
  const std::int32_t* indices = nullptr;
  const float* values = nullptr;            ///< or null
  const std::uint8_t* relations = nullptr;  ///< or null
  ExcludedEdges excluded_edges = {};
  bool adds_self = false;  ///< MinibatchOn::adds_self

  ESPALIER_HD bool is_self(std::int64_t row, std::int64_t entry) const {
    return adds_self && indices[entry] == row;
  }
  ESPALIER_HD bool stays(std::int64_t row, std::int64_t entry) const {
    return is_self(row, entry) ||
           !excluded_edges.has(row, indices[entry], relations == nullptr ? -1 : relations[entry]);
  }
  ESPALIER_HD std::int64_t count(std::int64_t row) const {
    std::int64_t kept = 0;
    for (auto e = indptr[row]; e < indptr[row + 1]; ++e) kept += stays(row, e) ? 1 : 0;
    return kept;
  }
  /// Writes a row's entries from place `to` on.
  ESPALIER_HD void write(std::int64_t row, std::int64_t to, std::int32_t* new_indices, float* new_values,
                         std::uint8_t* new_relations) const {
    const auto last = indptr[row + 1];
    for (auto begin = indptr[row], end = begin; begin < last; begin = end) {
      double sum = 0, rest = 0;  // of one relation, but for the vertex itself
      for (; end < last && (relations == nullptr || relations[end] == relations[begin]); ++end) {
        if (is_self(row, end)) continue;
        const auto value = values == nullptr ? 1.0 : static_cast<double>(values[end]);
        sum += value;
        if (stays(row, end)) rest += value;
      }
      const double factor = rest != 0 ? sum / rest : 1;
      for (auto e = begin; e < end; ++e) {
        if (!stays(row, e)) continue;
        new_indices[to] = indices[e];
        if (values != nullptr)
          new_values[to] =
              is_self(row, e) ? values[e] : static_cast<float>(static_cast<double>(values[e]) * factor);
        if (relations != nullptr) new_relations[to] = relations[e];
        ++to;
      }
    }
  }
};

namespace {

/// indptr [rows + 1], resized: where the rows begin of what stays.
void count_kept(const Space& space, const ThinnedBlock& block, std::int64_t rows, std::int64_t entries,
                Array<Space, std::int64_t>& indptr) {
  Array<Space, std::int64_t> sizes(rows);
  auto* const size = sizes.data();
  for_rows(space, "count_kept", rows, entries,
           [=] ESPALIER_DEVICE(std::int64_t row) { size[row] = block.count(row); });
  indptr.resize(rows + 1);
  exclusive_sum(space, size, indptr.data(), rows);
}

void write_kept(const Space& space, const ThinnedBlock& block, std::int64_t rows, std::int64_t entries,
                const std::int64_t* indptr, std::int32_t* indices, float* values, std::uint8_t* relations) {
  for_rows(space, "write_kept", rows, entries, [=] ESPALIER_DEVICE(std::int64_t row) {
    block.write(row, indptr[row], indices, values, relations);
  });
}

/// What the blocks of a minibatch point to when they have lost entries.
struct ThinnedMemory {
  struct Layer {
    Array<Space, std::int64_t> indptr;
    Array<Space, std::int32_t> indices;
    Array<Space, float> values;
    Array<Space, std::uint8_t> relations;
  };
  std::vector<Layer> layers;
  Array<Space, SeedPair> pairs;
  std::shared_ptr<const void> before;
};

void thin(const Space& space, std::span<const SeedPair> pairs, MinibatchOn<Space>& minibatch) {
  auto memory = std::make_shared<ThinnedMemory>();
  memory->layers.resize(minibatch.blocks.size());
  memory->pairs = copy_to(space, pairs);
  for (std::size_t l = 0; l < minibatch.blocks.size(); ++l) {
    auto& block = minibatch.blocks[l];
    auto& layer = memory->layers[l];
    const ThinnedBlock thinned = {block.indptr,
                                  block.indices,
                                  block.values,
                                  block.relations,
                                  {memory->pairs.data(), std::ssize(pairs)},
                                  minibatch.adds_self};
    count_kept(space, thinned, block.rows, block.entries(), layer.indptr);
    const auto entries = read_at(space, layer.indptr.data(), std::span(&block.rows, 1))[0];
    layer.indices.resize(entries);
    if (block.has_values()) layer.values.resize(entries);
    if (block.has_relations()) layer.relations.resize(entries);
    write_kept(space, thinned, block.rows, entries, layer.indptr.data(), layer.indices.data(),
               layer.values.data(), layer.relations.data());
    block.entry_count = entries;
    block.indptr = layer.indptr.data();
    block.indices = layer.indices.data();
    block.values = {block.has_values(), layer.values};
    block.relations = {block.has_relations(), layer.relations};
  }
  memory->before = std::exchange(minibatch.memory, nullptr);
  minibatch.memory = std::move(memory);
}

}  // namespace

template <class Space>
void exclude_edges(const Space& space, std::span<const SeedBatch> batches,
                   std::vector<MinibatchOn<Space>>& minibatches) {
  ESPALIER_CHECK(batches.size() == minibatches.size(), "{} minibatches of {} batches", minibatches.size(),
                 batches.size());
  for (std::size_t b = 0; b < batches.size(); ++b) {
    if (!batches[b].excluded_edges().empty()) thin(space, batches[b].excluded_edges(), minibatches[b]);
    minibatches[b].examples_digest = batches[b].digest;
  }
}

template void exclude_edges(const Space&, std::span<const SeedBatch>, std::vector<MinibatchOn<Space>>&);

}  // namespace espalier
