// The kernels of pruning: which rows are needed, the lists of them, and their entries. Sums over
// positions, and a sort; on a GPU a few lanes share a row's entries. For prune.both.cu only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "espalier/base/arrays.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/base/kernels.hpp"
#include "espalier/base/write_alike.hpp"
#include "espalier/history/prune.hpp"

namespace espalier {

/// By positions in F[l].
struct PositionsOf {
  const std::int64_t* vertices;
  const std::uint8_t* hits;  ///< or null
};

/// A list D[l] that is written.
struct ListArrays {
  std::int64_t rows;  ///< N[l+1] of it, the first
  std::int64_t *positions, *vertices;
  std::uint8_t* hits;       ///< or null
  std::int32_t* column_of;  ///< [|F[l]|] of the positions that are in the list

  /// The k-th is what stands at `position`.
  ESPALIER_HD void put(std::int64_t k, std::int64_t position, const PositionsOf& from) const {
    positions[k] = position;
    vertices[k] = from.vertices[position];
    if (hits != nullptr) hits[k] = from.hits[position];
    column_of[position] = static_cast<std::int32_t>(k);
  }
};

/// A list D[l] that is dealt.
struct ListView {
  const std::int64_t* vertices;
  const std::int64_t* positions;      ///< null: the columns
  const std::uint8_t* hits;           ///< null: none
  const std::int64_t* cached_before;  ///< with hits
  std::int64_t size;
};

/// Where the rows of one layer are written; as in PrunedLayer.
struct LayerLists {
  std::int64_t *place, *computed[3], *cached[3];  ///< vertices, positions, columns
};

/// Where entries are written.
struct EntriesTo {
  std::int32_t* indices;
  Beside<float> values;
  Beside<std::uint8_t> relations;
};

/// What a block has beside its rows; small, for kernels.
struct EntriesOf {
  const std::int32_t* indices;
  Beside<const float> values;
  Beside<const std::uint8_t> relations;
};

/// An entry as it is, with another column.
ESPALIER_HD inline void copy_entry(const EntriesOf& from, std::int64_t e, const std::int32_t* column_of,
                                   std::int64_t at, const EntriesTo& to) {
  to.indices[at] = column_of[from.indices[e]];
  if (to.values != nullptr) to.values[at] = from.values[e];
  if (to.relations != nullptr) to.relations[at] = from.relations[e];
}

/// Row `column` of a list where it belongs.
ESPALIER_HD inline void deal_row(const ListView& list, std::int64_t column, const LayerLists& to) {
  const bool is_cached = list.hits != nullptr && list.hits[column] != 0;
  const auto cached = list.hits == nullptr ? 0 : list.cached_before[column];
  const auto number = is_cached ? cached : column - cached;
  to.place[column] = is_cached ? ~number : number;
  auto* const* const lists = is_cached ? to.cached : to.computed;
  lists[0][number] = list.vertices[column];
  lists[1][number] = list.positions == nullptr ? column : list.positions[column];
  lists[2][number] = column;
}

inline constexpr int kLanesOfRow = 8;  // threads that share a row's entries

/// function(row, lane, lanes) for each row, whose `lanes` share its entries.
template <class Function>
void for_lanes_of_rows(const Cpu& cpu, const char* name, std::int64_t rows, std::int64_t entries,
                       const Function& function) {
  for_rows(cpu, name, rows, entries, [=](std::int64_t row) { function(row, 0, 1); });
}
template <class Function>
void for_lanes_of_rows(const Cuda& cuda, const char* name, std::int64_t rows, std::int64_t /*entries*/,
                       const Function& function) {
  for_each(cuda, name, rows * kLanesOfRow, [=] ESPALIER_DEVICE(std::int64_t thread) {
    function(thread / kLanesOfRow, static_cast<int>(thread % kLanesOfRow), kLanesOfRow);
  });
}

/// states [block.columns] = those of the rows of H[l] that the rows of B[l+1] with state kComputed
/// (above; null: all) need. hits: null, or [block.columns].
/// Lanes that meet in a state agree on it; on the CPU they are one thread's.
template <class Space>
void find_states(const Space& space, const BlockView<Space>& block, const RowState* above,
                 const std::uint8_t* hits, Array<Space, RowState>& states) {
  states.resize(block.columns);
  static_assert(static_cast<int>(RowState::kUnneeded) == 0);
  fill_zero(space, states);
  auto* const state = states.data();
  const auto* const indptr = block.indptr;
  const auto* const indices = block.indices;
  const std::int64_t of_one_thread = 0;
  for_lanes_of_rows(space, "find_states", block.rows, of_one_thread,
                    [=] ESPALIER_DEVICE(std::int64_t row, int lane, int lanes) {
                      if (above != nullptr && above[row] != RowState::kComputed) return;
                      const auto needed = [&](std::int64_t i) {
                        return hits != nullptr && hits[i] != 0 ? RowState::kCached : RowState::kComputed;
                      };
                      if (lane == 0) write_alike(state + row, needed(row));
                      const auto end = indptr[row + 1];
                      for (auto e = indptr[row] + lane; e < end; e += lanes)
                        write_alike(state + indices[e], needed(indices[e]));
                    });
}

/// others, resized: the positions in F[l] of the needed rows that are not among the computed of
/// F[l+1] (`above` [rows]; null: all are), ascending by vertex. On a GPU the host waits.
/// The CPU merges: those among the first `rows` are few and in any order, the others ascend. A GPU
/// sorts all of them.
template <class Space>
void list_others(const Space& space, const Array<Space, RowState>& states, const RowState* above,
                 std::int64_t rows, std::span<const std::int64_t> vertices,
                 Array<Space, std::int64_t>& others) {
  if constexpr (std::is_same_v<Space, Cpu>) {
    others.clear();
    const auto by_vertex = [&](std::int64_t a, std::int64_t b) { return vertices[a] < vertices[b]; };
    if (above != nullptr) {
      for (std::int64_t i = 0; i < rows; ++i)
        if (states[i] != RowState::kUnneeded && above[i] != RowState::kComputed) others.push_back(i);
      std::sort(others.begin(), others.end(), by_vertex);
    }
    const auto within = std::ssize(others);
    for (auto i = rows; i < std::ssize(states); ++i)
      if (states[i] != RowState::kUnneeded) others.push_back(i);
    std::inplace_merge(others.begin(), others.begin() + within, others.end(), by_vertex);
  } else {
    const auto size = std::ssize(states);
    Array<Space, std::int64_t> flags(size), places(size + 1);
    auto* const flag = flags.data();
    const auto* const state = states.data();
    for_each(space, "list_others: mark", size, [=] ESPALIER_DEVICE(std::int64_t i) {
      const bool is_row = i < rows && (above == nullptr || above[i] == RowState::kComputed);
      flag[i] = state[i] != RowState::kUnneeded && !is_row;
    });
    exclusive_sum(space, flag, places.data(), size);
    const auto count = read_at(space, places.data(), std::span(&size, 1))[0];
    Array<Space, std::uint64_t> keys(count), sorted(count);
    Array<Space, std::int64_t> unsorted(count);
    auto* const key = keys.data();
    auto* const position = unsorted.data();
    const auto* const place = places.data();
    const auto* const vertex = vertices.data();
    for_each(space, "list_others: list", size, [=] ESPALIER_DEVICE(std::int64_t i) {
      if (flag[i] == 0) return;
      key[place[i]] = static_cast<std::uint64_t>(vertex[i]);
      position[place[i]] = i;
    });
    others.resize(count);
    sort_pairs(space, key, sorted.data(), position, others.data(), count, 63);
  }
}

/// to.positions [rows + others]: first those of the rows (null: 0, 1, ..), then the others. What
/// stands at them, and where each position has gone.
template <class Space>
void write_list(const Space& space, const std::int64_t* rows, const Array<Space, std::int64_t>& others,
                const PositionsOf& from, const ListArrays& to) {
  const auto* const other = others.data();
  for_each(space, "write_list", to.rows + std::ssize(others), [=] ESPALIER_DEVICE(std::int64_t k) {
    to.put(k, k >= to.rows ? other[k - to.rows] : rows == nullptr ? k : rows[k], from);
  });
}

/// before [count + 1], resized: how many flags are set before each.
template <class Space>
void count_flags(const Space& space, const std::uint8_t* flags, std::int64_t count,
                 Array<Space, std::int64_t>& before) {
  Array<Space, std::int64_t> ones(count);
  auto* const one = ones.data();
  for_each(space, "count_flags", count, [=] ESPALIER_DEVICE(std::int64_t k) { one[k] = flags[k] != 0; });
  before.resize(count + 1);
  exclusive_sum(space, one, before.data(), count);
}

/// The rows of a list where they go.
template <class Space>
void deal_rows(const Space& space, const ListView& list, const LayerLists& to) {
  for_each(space, "deal_rows", list.size,
           [=] ESPALIER_DEVICE(std::int64_t column) { deal_row(list, column, to); });
}

/// before [rows + 1], resized: the entries before each of these rows of a block (null: 0, 1, ..).
template <class Space>
void number_entries(const Space& space, const BlockView<Space>& block, const std::int64_t* positions,
                    std::int64_t rows, Array<Space, std::int64_t>& before) {
  Array<Space, std::int64_t> sizes(rows);
  auto* const size = sizes.data();
  const auto* const indptr = block.indptr;
  for_each(space, "number_entries", rows, [=] ESPALIER_DEVICE(std::int64_t k) {
    const auto row = positions == nullptr ? k : positions[k];
    size[k] = indptr[row + 1] - indptr[row];
  });
  before.resize(rows + 1);
  exclusive_sum(space, size, before.data(), rows);
}

/// Their `entries`, at those places, with other columns.
template <class Space>
void copy_rows(const Space& space, const BlockView<Space>& block, const std::int64_t* positions,
               std::int64_t rows, const std::int64_t* before, std::int64_t entries,
               const std::int32_t* column_of, const EntriesTo& to) {
  const auto* const indptr = block.indptr;
  const EntriesOf from = {block.indices, block.values, block.relations};
  for_lanes_of_rows(space, "copy_rows", rows, entries,
                    [=] ESPALIER_DEVICE(std::int64_t k, int lane, int lanes) {
                      const auto row = positions == nullptr ? k : positions[k];
                      const auto begin = indptr[row], end = indptr[row + 1];
                      for (auto e = begin + lane; e < end; e += lanes)
                        copy_entry(from, e, column_of, before[k] + e - begin, to);
                    });
}

}  // namespace espalier
