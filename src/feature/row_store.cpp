// A fetch and a push on the CPU.
#include "row_push.inl.hpp"

#include <algorithm>

namespace espalier {

void concatenate(const Cpu&, IdLists lists, std::int64_t* all) {
  for (const auto& list : lists) all = std::copy(list.begin(), list.end(), all);
}

template <class Id>
void find_sources(const Cpu&, const OwnerGroups<Id>& groups, std::int64_t others, std::int64_t first_row,
                  std::int64_t* source) {
  for (std::int64_t j = 0; j < others; ++j) source[groups.order[j]] = j;
  for (std::int64_t j = others; j < groups.size(); ++j)
    source[groups.order[j]] = ~(groups.ids[j] - first_row);
}

void repeat(const Cpu&, const std::vector<std::int64_t>& counts, std::span<const std::int64_t> values,
            std::int64_t* all) {
  for (std::size_t m = 0; m < counts.size(); ++m) all = std::fill_n(all, counts[m], values[m]);
}

void take(const Cpu&, const std::int64_t* from, const Buffer<std::int64_t>& order, std::int64_t* to) {
  for (const auto place : order) *to++ = from[place];
}

namespace {

struct PlacedRow {
  std::int64_t row, batch, place;
  friend auto operator<=>(const PlacedRow&, const PlacedRow&) = default;
};

template <class Id>
std::vector<PlacedRow> in_order(const PushedRows<Id, Cpu>& pushed, std::int64_t first_row) {
  std::vector<PlacedRow> rows;
  rows.reserve(static_cast<std::size_t>(pushed.size()));
  for (std::int64_t k = 0; k < pushed.size(); ++k)
    rows.push_back({pushed.ids[k] - first_row, pushed.batches[k], k});
  std::ranges::sort(rows);
  return rows;
}

}  // namespace

// A thread for all of one row: the first of them looks for the others.
template <class Id>
void place_rows(const Cpu& cpu, const PushedRows<Id, Cpu>& pushed, std::int64_t first_row, Push push,
                MatrixView<float> block) {
  const auto rows = in_order(pushed, first_row);
  const auto count = std::ssize(rows);
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t first = 0; first < count; ++first) {
    const auto row = rows[first].row;
    if (first > 0 && rows[first - 1].row == row) continue;
    auto* const to = block.row(row);
    for (auto k = first; k < count && rows[k].row == row; ++k) {
      const auto* const from = pushed.rows.row(rows[k].place);
      for (std::int64_t j = 0; j < block.columns; ++j) to[j] = push == Push::kAdd ? to[j] + from[j] : from[j];
    }
  }
}

template class RowStoreOn<Cpu>;

}  // namespace espalier
