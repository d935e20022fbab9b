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

template <class Id>
void count_changed(const Cpu&, const Id* asked, std::int64_t count, std::int64_t first,
                   const Buffer<std::int32_t>& changed, std::int32_t version, Buffer<std::int64_t>& before) {
  before.resize(static_cast<std::size_t>(count) + 1);
  before[0] = 0;
  for (std::int64_t k = 0; k < count; ++k) before[k + 1] = before[k] + (changed[asked[k] - first] > version);
}

template <class Id>
void take_changed(const Cpu&, const Id* asked, std::int64_t count, const std::int64_t* before, Id* numbers,
                  Id* rows) {
  for (std::int64_t k = 0; k < count; ++k) {
    if (before[k + 1] == before[k]) continue;
    *numbers++ = static_cast<Id>(k);
    *rows++ = asked[k];
  }
}

template <class Id>
void put_rows(const Cpu&, ConstMatrixView<float> from, const Id* places, MatrixView<float> to) {
  for (std::int64_t k = 0; k < from.rows; ++k) std::copy_n(from.row(k), from.columns, to.row(places[k]));
}

void mark_changed(const Cpu&, const Buffer<std::int64_t>& places, std::int32_t version,
                  Buffer<std::int32_t>& changed) {
  for (const auto place : places) changed[place] = version;
}

namespace {

struct PlacedRow {
  std::int64_t row, batch, place;
  friend auto operator<=>(const PlacedRow&, const PlacedRow&) = default;
};

}  // namespace

template <class Id>
void order_pushed(const Cpu&, const PushedRows<Id, Cpu>& pushed, std::int64_t first_row, std::int64_t,
                  PushOrder<Cpu>& order) {
  std::vector<PlacedRow> rows;
  rows.reserve(static_cast<std::size_t>(pushed.size()));
  for (std::int64_t k = 0; k < pushed.size(); ++k)
    rows.push_back({pushed.ids[k] - first_row, pushed.batches[k], k});
  std::ranges::sort(rows);
  order.rows.clear();
  order.begins.clear();
  order.order.clear();
  for (const auto& row : rows) {
    if (order.rows.empty() || order.rows.back() != row.row) {
      order.rows.push_back(row.row);
      order.begins.push_back(std::ssize(order.order));
    }
    order.order.push_back(row.place);
  }
  order.begins.push_back(std::ssize(order.order));
}

void place_rows(const Cpu& cpu, const PushOrder<Cpu>& order, ConstMatrixView<float> pushed, Push push,
                MatrixView<float> block) {
  const auto count = std::ssize(order.rows);
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t row = 0; row < count; ++row) {
    auto* const to = block.row(order.rows[row]);
    for (auto k = order.begins[row]; k < order.begins[row + 1]; ++k) {
      const auto* const from = pushed.row(order.order[k]);
      for (std::int64_t j = 0; j < block.columns; ++j) to[j] = push == Push::kAdd ? to[j] + from[j] : from[j];
    }
  }
}

template void put_rows(const Cpu&, ConstMatrixView<float>, const std::int32_t*, MatrixView<float>);
template void order_pushed(const Cpu&, const PushedRows<std::int32_t, Cpu>&, std::int64_t, std::int64_t,
                           PushOrder<Cpu>&);
template void put_rows(const Cpu&, ConstMatrixView<float>, const std::int64_t*, MatrixView<float>);
template void order_pushed(const Cpu&, const PushedRows<std::int64_t, Cpu>&, std::int64_t, std::int64_t,
                           PushOrder<Cpu>&);
template class RowStoreOn<Cpu>;

}  // namespace espalier
