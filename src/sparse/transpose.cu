// By a stable sort: entries come in their order, so sorting their positions by column alone
// leaves each row of the transpose in ascending column, equal ones in the order they had. Rows
// and values follow by position. Of many blocks, one after another, columns are counted on from
// block to block.
#include "espalier/sparse/transpose.hpp"

#include <bit>
#include <vector>

#include "espalier/base/device_algorithms.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {
namespace {

constexpr std::int64_t kMostEntries = std::int64_t{1} << 31;

/// A block, and how many entries and columns there are before its own.
struct PlacedBlock {
  BlockView<Cuda> block;
  std::int64_t entries, columns;
};

/// Blocks one after another.
struct BlockList {
  std::vector<PlacedBlock> blocks = {};
  std::int64_t entries = 0, columns = 0;  ///< of all of them
  bool weighted = false;                  ///< has any of them values?

  void add(const BlockView<Cuda>& block) {
    blocks.push_back({block, entries, columns});
    blocks.back().block.runs = {};  // of the host
    entries += block.entries();
    columns += block.columns;
    weighted = weighted || block.has_values();
  }
};

/// Of each entry its column, row, value and position.
struct EntryList {
  DeviceArray<std::uint32_t> columns;
  DeviceArray<std::int32_t> rows, positions;
  DeviceArray<float> values;

  explicit EntryList(const BlockList& of)
      : columns(of.entries), rows(of.entries), positions(of.entries), values(of.weighted ? of.entries : 0) {}
};

/// The place of an entry's block in a list.
struct EntriesBefore {
  const PlacedBlock* blocks;
  __device__ std::int64_t operator[](std::int64_t at) const { return blocks[at].entries; }
};

void list_entries(const Cuda& cuda, const BlockList& of, EntryList& list) {
  DeviceArray<PlacedBlock> on_device;
  upload(cuda, std::span<const PlacedBlock>(of.blocks), on_device);
  const auto* const blocks = on_device.data();
  const auto count = std::ssize(of.blocks);
  auto* const columns = list.columns.data();
  auto *const rows = list.rows.data(), *const positions = list.positions.data();
  auto* const values = list.values.data();
  for_each(cuda, "transpose: entries", of.entries, [=] __device__(std::int64_t k) {
    const auto& from = blocks[segment_of(EntriesBefore{blocks}, count, k)];
    const auto entry = from.block.indptr[0] + k - from.entries;
    columns[k] = static_cast<std::uint32_t>(from.columns + from.block.indices[entry]);
    rows[k] = static_cast<std::int32_t>(segment_of(from.block.indptr, from.block.rows, entry));
    positions[k] = static_cast<std::int32_t>(k);
    if (from.block.values != nullptr) values[k] = from.block.values[entry];
  });
}

/// Into arrays that are large enough. `positions`: where the entries were among all.
void transpose_list(const Cuda& cuda, const BlockList& of, std::int64_t* indptr, std::int32_t* indices,
                    float* values, std::int32_t* positions) {
  EntryList list(of);
  list_entries(cuda, of, list);
  DeviceArray<std::uint32_t> sorted(of.entries);
  sort_pairs(cuda, list.columns.data(), sorted.data(), list.positions.data(), positions, of.entries,
             std::bit_width(static_cast<std::uint64_t>(of.columns)));
  const auto entries = of.entries;
  const auto* const column = sorted.data();
  const auto* const row = list.rows.data();
  const auto* const value = of.weighted ? list.values.data() : nullptr;
  // Behind the entries: where rows of the transpose begin.
  for_each(cuda, "transpose: follow positions", entries + of.columns + 1, [=] __device__(std::int64_t k) {
    if (k >= entries) {
      indptr[k - entries] = count_below(column, entries, static_cast<std::uint32_t>(k - entries));
      return;
    }
    indices[k] = row[positions[k]];
    if (value != nullptr) values[k] = value[positions[k]];
  });
}

/// The transposes of a list.
struct Transposes {
  DeviceArray<std::int64_t> indptr;
  DeviceArray<std::int32_t> indices;
  DeviceArray<float> values;

  Transposes(const Cuda& cuda, const BlockList& of)
      : indptr(of.columns + 1), indices(of.entries), values(of.weighted ? of.entries : 0) {
    DeviceArray<std::int32_t> positions(of.entries);
    transpose_list(cuda, of, indptr.data(), indices.data(), values.data(), positions.data());
  }
};

}  // namespace

void transpose(const Cuda& cuda, const BlockView<Cuda>& block, Csr<std::int32_t, Cuda>& result,
               DeviceArray<std::int32_t>* positions) {
  ESPALIER_CHECK(block.entries() < kMostEntries, "a block of {} entries", block.entries());
  const auto entries = static_cast<std::size_t>(block.entries());
  result.rows = block.columns;
  result.columns = block.rows;
  result.indptr.resize(block.columns + 1);
  result.indices.resize(entries);
  result.values.resize(block.has_values() ? entries : 0);
  result.weighted = block.has_values();
  DeviceArray<std::int32_t> own;
  if (positions == nullptr) positions = &own;
  positions->resize(entries);
  BlockList one;
  one.add(block);
  transpose_list(cuda, one, result.indptr.data(), result.indices.data(), result.values.data(),
                 positions->data());
}

std::shared_ptr<const void> transpose_all(const Cuda& cuda, std::span<BlockView<Cuda>* const> blocks,
                                          std::int64_t at_once) {
  const auto all = std::make_shared<std::vector<Transposes>>();
  for (std::size_t first = 0, last = 0; first < blocks.size(); first = last) {
    BlockList list;
    do list.add(*blocks[last++]);
    while (last < blocks.size() &&
           list.entries + list.columns + blocks[last]->entries() + blocks[last]->columns <= at_once);
    ESPALIER_CHECK(list.entries < kMostEntries, "a block of {} entries", list.entries);
    const auto& made = all->emplace_back(cuda, list);
    for (auto k = first; k < last; ++k)
      blocks[k]->transposed = {made.indptr.data() + list.blocks[k - first].columns, made.indices.data(),
                               blocks[k]->has_values() ? made.values.data() : nullptr};
  }
  return all;
}

}  // namespace espalier
