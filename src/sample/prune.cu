// Pruning on a GPU: a few lanes for each row, then sums over positions.
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

void number_rows(const Cuda& cuda, const DeviceArray<RowState>& states, const ComputedRows& above,
                 DeviceArray<std::int32_t>& computed, DeviceArray<std::int32_t>& cached,
                 DeviceArray<std::int32_t>& others) {
  const auto size = std::ssize(states);
  DeviceArray<std::int32_t> flags(3 * size);
  auto* const flag = flags.data();
  const auto* const state = states.data();
  for_each(cuda, "number_rows", size, [=] __device__(std::int64_t i) {
    flag[i] = state[i] == RowState::kComputed;
    flag[size + i] = state[i] == RowState::kCached;
    flag[2 * size + i] = state[i] != RowState::kUnneeded && !above.has(i);
  });
  for (auto* sums : {&computed, &cached, &others}) {
    sums->resize(size + 1);
    exclusive_sum(cuda,
                  flag + (sums == &computed ? 0
                          : sums == &cached ? size
                                            : 2 * size),
                  sums->data(), size);
  }
}

void number_entries(const Cuda& cuda, const BlockView<Cuda>& block, const ComputedRows& rows,
                    DeviceArray<std::int64_t>& before) {
  DeviceArray<std::int64_t> sizes(block.rows);
  auto* const size = sizes.data();
  const auto* const indptr = block.indptr;
  for_each(cuda, "number_entries", block.rows, [=] __device__(std::int64_t row) {
    size[row] = rows.has(row) ? indptr[row + 1] - indptr[row] : 0;
  });
  before.resize(block.rows + 1);
  exclusive_sum(cuda, size, before.data(), block.rows);
}

std::vector<std::int64_t> read_numbers(const Cuda& cuda, std::span<const NumberAt> numbers) {
  DeviceArray<NumberAt> asked;
  upload(cuda, numbers, asked);
  DeviceArray<std::int64_t> answers(numbers.size());
  auto* const to = answers.data();
  const auto* const from = asked.data();
  for_each(cuda, "read_numbers", std::ssize(answers), [=] __device__(std::int64_t k) { to[k] = from[k](); });
  const auto read = download(cuda, answers);
  return {read.begin(), read.end()};
}

void write_lists(const Cuda& cuda, const DeviceArray<RowState>& states,
                 std::span<const std::int64_t> vertices, const std::int32_t* computed,
                 const std::int32_t* cached, const ColumnNumbers& column, const LayerLists& to) {
  const auto* const state = states.data();
  const auto* const vertex = vertices.data();
  for_each(cuda, "write_lists", std::ssize(states), [=] __device__(std::int64_t i) {
    if (state[i] != RowState::kUnneeded)
      list_row(i, vertex[i], state[i] == RowState::kCached, computed, cached, column(i), to);
  });
}

void write_block(const Cuda& cuda, const BlockView<Cuda>& block, const ComputedRows& rows,
                 const DeviceArray<std::int64_t>& entries, const ColumnNumbers& column,
                 const BlockArrays& to) {
  const auto* const before = entries.data();
  const auto* const indptr = block.indptr;
  const EntriesOf from = {block.indices, block.values, block.relations};
  const auto count = block.rows;
  // Row `count` is the end of the last.
  for_each_row(cuda, "write_block", count + 1, [=] __device__(std::int64_t row, int lane) {
    if (row < count && !rows.has(row)) return;
    if (lane == 0) to.indptr[rows.number(row)] = before[row];
    if (row == count) return;
    const auto begin = indptr[row], end = indptr[row + 1];
    for (auto e = begin + lane; e < end; e += kLanesOfRow)
      copy_entry(from, e, column, before[row] + e - begin, to);
  });
}

void end_rows(const Cuda& cuda, std::int64_t rows, const std::int64_t* start, const RowState* states,
              DeviceArray<std::int64_t>& end) {
  end.resize(rows);
  auto* const to = end.data();
  for_each(cuda, "end_rows", rows, [=] __device__(std::int64_t row) {
    to[row] = start[states == nullptr || states[row] == RowState::kComputed ? row + 1 : row];
  });
}

template PrunedMinibatchOn<Cuda> prune(const Cuda&, const MinibatchOn<Cuda>&, HistoryHits);
template Csr2MinibatchOn<Cuda> prune_in_place(const Cuda&, const MinibatchOn<Cuda>&, HistoryHits);

}  // namespace espalier
