// Pruning on a GPU: a few lanes for each row, sums over positions, a sort.
#include "espalier/base/arrays.hpp"
#include "espalier/base/device_algorithms.hpp"
#include "espalier/base/launch.hpp"
#include "prune.inl.hpp"

namespace espalier {

namespace {

constexpr int kLanesOfRow = 8;  // threads that share a row's entries

/// function(row, lane) by kLanesOfRow neighbouring threads for each row.
template <class Function>
struct OfRowAndLane {
  Function function;
  __device__ void operator()(std::int64_t thread) const {
    function(thread / kLanesOfRow, static_cast<int>(thread % kLanesOfRow));
  }
};

template <class Function>
void for_each_row(const Cuda& cuda, const char* name, std::int64_t rows, const Function& function) {
  for_each(cuda, name, rows * kLanesOfRow, OfRowAndLane<Function>{function});
}

}  // namespace

// Threads that meet in a state agree on it.
void find_states(const Cuda& cuda, const BlockView<Cuda>& block, const RowState* above,
                 const std::uint8_t* hits, DeviceArray<RowState>& states) {
  states.resize(block.columns);
  static_assert(static_cast<int>(RowState::kUnneeded) == 0);
  fill_zero(cuda, states);
  auto* const state = states.data();
  const auto* const indptr = block.indptr;
  const auto* const indices = block.indices;
  for_each_row(cuda, "find_states", block.rows, [=] __device__(std::int64_t row, int lane) {
    if (above != nullptr && above[row] != RowState::kComputed) return;
    const auto needed = [&](std::int64_t i) {
      return hits != nullptr && hits[i] != 0 ? RowState::kCached : RowState::kComputed;
    };
    if (lane == 0) state[row] = needed(row);
    const auto end = indptr[row + 1];
    for (auto e = indptr[row] + lane; e < end; e += kLanesOfRow) state[indices[e]] = needed(indices[e]);
  });
}

// All of them are sorted: which of them ascend already the host does not know.
void list_others(const Cuda& cuda, const DeviceArray<RowState>& states, const RowState* above,
                 std::int64_t rows, std::span<const std::int64_t> vertices,
                 DeviceArray<std::int64_t>& others) {
  const auto size = std::ssize(states);
  DeviceArray<std::int64_t> flags(size), places(size + 1);
  auto* const flag = flags.data();
  const auto* const state = states.data();
  for_each(cuda, "list_others: mark", size, [=] __device__(std::int64_t i) {
    const bool is_row = i < rows && (above == nullptr || above[i] == RowState::kComputed);
    flag[i] = state[i] != RowState::kUnneeded && !is_row;
  });
  exclusive_sum(cuda, flag, places.data(), size);
  const auto count = read_at(cuda, places.data(), std::span(&size, 1))[0];
  DeviceArray<std::uint64_t> keys(count), sorted(count);
  DeviceArray<std::int64_t> unsorted(count);
  auto* const key = keys.data();
  auto* const position = unsorted.data();
  const auto* const place = places.data();
  const auto* const vertex = vertices.data();
  for_each(cuda, "list_others: list", size, [=] __device__(std::int64_t i) {
    if (flag[i] == 0) return;
    key[place[i]] = static_cast<std::uint64_t>(vertex[i]);
    position[place[i]] = i;
  });
  others.resize(count);
  sort_pairs(cuda, key, sorted.data(), position, others.data(), count, 63);
}

void write_list(const Cuda& cuda, const std::int64_t* rows, const DeviceArray<std::int64_t>& others,
                const PositionsOf& from, const ListArrays& to) {
  const auto* const other = others.data();
  for_each(cuda, "write_list", to.rows + std::ssize(others), [=] __device__(std::int64_t k) {
    to.put(k, k >= to.rows ? other[k - to.rows] : rows == nullptr ? k : rows[k], from);
  });
}

void count_flags(const Cuda& cuda, const std::uint8_t* flags, std::int64_t count,
                 DeviceArray<std::int64_t>& before) {
  DeviceArray<std::int64_t> ones(count);
  auto* const one = ones.data();
  for_each(cuda, "count_flags", count, [=] __device__(std::int64_t k) { one[k] = flags[k] != 0; });
  before.resize(count + 1);
  exclusive_sum(cuda, one, before.data(), count);
}

void deal_rows(const Cuda& cuda, const ListView& list, const LayerLists& to) {
  for_each(cuda, "deal_rows", list.size, [=] __device__(std::int64_t column) { deal_row(list, column, to); });
}

void number_entries(const Cuda& cuda, const BlockView<Cuda>& block, const std::int64_t* positions,
                    std::int64_t rows, DeviceArray<std::int64_t>& before) {
  DeviceArray<std::int64_t> sizes(rows);
  auto* const size = sizes.data();
  const auto* const indptr = block.indptr;
  for_each(cuda, "number_entries", rows, [=] __device__(std::int64_t k) {
    const auto row = positions == nullptr ? k : positions[k];
    size[k] = indptr[row + 1] - indptr[row];
  });
  before.resize(rows + 1);
  exclusive_sum(cuda, size, before.data(), rows);
}

void copy_rows(const Cuda& cuda, const BlockView<Cuda>& block, const std::int64_t* positions,
               std::int64_t rows, const std::int64_t* before, const std::int32_t* column_of,
               const EntriesTo& to) {
  const auto* const indptr = block.indptr;
  const EntriesOf from = {block.indices, block.values, block.relations};
  for_each_row(cuda, "copy_rows", rows, [=] __device__(std::int64_t k, int lane) {
    const auto row = positions == nullptr ? k : positions[k];
    const auto begin = indptr[row], end = indptr[row + 1];
    for (auto e = begin + lane; e < end; e += kLanesOfRow)
      copy_entry(from, e, column_of, before[k] + e - begin, to);
  });
}

template PrunedMinibatchOn<Cuda> prune(const Cuda&, const MinibatchOn<Cuda>&, HistoryHits);
template NeededSampleOn<Cuda> sample_needed(const Cuda&, SamplerOn<Cuda>&, std::size_t,
                                            std::span<const SeedBatch>, std::uint64_t, std::uint64_t,
                                            const FindHits<Cuda>&);

}  // namespace espalier
