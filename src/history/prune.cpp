// Pruning on the CPU.
#include "prune.inl.hpp"

#include <algorithm>

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

// Those among the first `rows` are few and in any order; the others ascend.
void list_others(const Cpu&, const Buffer<RowState>& states, const RowState* above, std::int64_t rows,
                 std::span<const std::int64_t> vertices, Buffer<std::int64_t>& others) {
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
}

void write_list(const Cpu&, const std::int64_t* rows, const Buffer<std::int64_t>& others,
                const PositionsOf& from, const ListArrays& to) {
  for (std::int64_t k = 0; k < to.rows; ++k) to.put(k, rows == nullptr ? k : rows[k], from);
  for (std::int64_t k = 0; k < std::ssize(others); ++k) to.put(to.rows + k, others[k], from);
}

void count_flags(const Cpu&, const std::uint8_t* flags, std::int64_t count, Buffer<std::int64_t>& before) {
  before.resize(count + 1);
  before[0] = 0;
  for (std::int64_t k = 0; k < count; ++k) before[k + 1] = before[k] + (flags[k] != 0);
}

void deal_rows(const Cpu&, const ListView& list, const LayerLists& to) {
  for (std::int64_t column = 0; column < list.size; ++column) deal_row(list, column, to);
}

void number_entries(const Cpu&, const BlockView<Cpu>& block, const std::int64_t* positions, std::int64_t rows,
                    Buffer<std::int64_t>& before) {
  before.resize(rows + 1);
  before[0] = 0;
  for (std::int64_t k = 0; k < rows; ++k)
    before[k + 1] = before[k] + block.row_size(positions == nullptr ? k : positions[k]);
}

void copy_rows(const Cpu& cpu, const BlockView<Cpu>& block, const std::int64_t* positions, std::int64_t rows,
               const std::int64_t* before, const std::int32_t* column_of, const EntriesTo& to) {
  const EntriesOf from = {block.indices, block.values, block.relations};
#pragma omp parallel for num_threads(threads_for(cpu, before[rows]).threads) schedule(static)
  for (std::int64_t k = 0; k < rows; ++k) {
    const auto row = positions == nullptr ? k : positions[k];
    for (auto e = block.row_begin(row); e < block.row_end(row); ++e)
      copy_entry(from, e, column_of, before[k] + e - block.row_begin(row), to);
  }
}

template PrunedMinibatchOn<Cpu> prune(const Cpu&, const Minibatch&, HistoryHits);
template NeededSampleOn<Cpu> sample_needed(const Cpu&, SamplerOn<Cpu>&, std::size_t,
                                           std::span<const SeedBatch>, std::uint64_t, std::uint64_t,
                                           const FindHits<Cpu>&);

}  // namespace espalier
