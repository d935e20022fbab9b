// Pruning on the CPU.
#include "prune.inl.hpp"

#include "espalier/sample/local_ids.hpp"

namespace espalier {

void find_states(const Cpu&, const BlockView<Cpu>& block, const RowState* above, const std::uint8_t* hits,
                 Buffer<RowState>& states) {
  states.assign(static_cast<std::size_t>(block.columns), RowState::kUnneeded);
  const auto need = [&](std::int64_t i) {
    states[i] = hits != nullptr && hits[i] != 0 ? RowState::kCached : RowState::kComputed;
  };
  for (std::int64_t row = 0; row < block.rows; ++row) {
    if (above != nullptr && above[row] != RowState::kComputed) continue;
    need(row);
    for (const auto column : block.row_indices(row)) need(column);
  }
}

void number_rows(const Cpu&, const Buffer<RowState>& states, const ComputedRows& above,
                 Buffer<std::int32_t>& computed, Buffer<std::int32_t>& cached, Buffer<std::int32_t>& others) {
  const auto size = std::ssize(states);
  for (auto* sums : {&computed, &cached, &others}) sums->resize(size + 1);
  std::int32_t computed_before = 0, cached_before = 0, others_before = 0;
  for (std::int64_t i = 0; i <= size; ++i) {
    computed[i] = computed_before;
    cached[i] = cached_before;
    others[i] = others_before;
    if (i == size) break;
    computed_before += states[i] == RowState::kComputed;
    cached_before += states[i] == RowState::kCached;
    others_before += states[i] != RowState::kUnneeded && !above.has(i);
  }
}

void number_entries(const Cpu&, const BlockView<Cpu>& block, const ComputedRows& rows,
                    Buffer<std::int64_t>& before) {
  before.resize(block.rows + 1);
  before[0] = 0;
  for (std::int64_t row = 0; row < block.rows; ++row)
    before[row + 1] = before[row] + (rows.has(row) ? block.row_size(row) : 0);
}

std::vector<std::int64_t> read_numbers(const Cpu&, std::span<const NumberAt> numbers) {
  std::vector<std::int64_t> read;
  for (const auto& number : numbers) read.push_back(number());
  return read;
}

void write_lists(const Cpu&, const Buffer<RowState>& states, std::span<const std::int64_t> vertices,
                 const std::int32_t* computed, const std::int32_t* cached, const ColumnNumbers& column,
                 const LayerLists& to) {
  for (std::int64_t i = 0; i < std::ssize(states); ++i)
    if (states[i] != RowState::kUnneeded)
      list_row(i, vertices[i], states[i] == RowState::kCached, computed, cached, column(i), to);
}

void write_block(const Cpu& cpu, const BlockView<Cpu>& block, const ComputedRows& rows,
                 const Buffer<std::int64_t>& entries, const ColumnNumbers& column, const BlockArrays& to) {
  const EntriesOf from = {block.indices, block.values, block.relations};
#pragma omp parallel for num_threads(threads_for(cpu, entries.back()).threads) schedule(static)
  for (std::int64_t row = 0; row < block.rows; ++row) {
    if (!rows.has(row)) continue;
    to.indptr[rows.number(row)] = entries[row];
    for (auto e = block.row_begin(row); e < block.row_end(row); ++e)
      copy_entry(from, e, column, entries[row] + e - block.row_begin(row), to);
  }
  to.indptr[rows.number(block.rows)] = entries.back();
}

void end_rows(const Cpu&, std::int64_t rows, const std::int64_t* start, const RowState* states,
              Buffer<std::int64_t>& end) {
  end.resize(rows);
  for (std::int64_t row = 0; row < rows; ++row)
    end[row] = start[states == nullptr || states[row] == RowState::kComputed ? row + 1 : row];
}

template PrunedMinibatchOn<Cpu> prune(const Cpu&, const Minibatch&, HistoryHits);
template Csr2MinibatchOn<Cpu> prune_in_place(const Cpu&, const Minibatch&, HistoryHits);

}  // namespace espalier
