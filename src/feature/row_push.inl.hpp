// A push, and the state of a store, for every space: row_store.cpp and row_store.cu instantiate it.
// All lists, one after another, are grouped by owner, and travel twice:
//
//   pushed        [ owner 0 | owner 1 | ... ]        ids, numbers of minibatches, rows
//   column hop    [ from P(0,j) | from P(1,j) | ..]  an all-to-all-v down the process column
//   row hop       [ of P(i,0) | of P(i,1) | .. ]     an all-gather-v along the process row
//
// Then every copy of a block row has the same rows in the same order: of each minibatch in that of
// its list, as it is of one rank and groups keep order. Sorted by (row, minibatch), stably, they
// are in the order that the law asks for.
#pragma once

#include "espalier/base/arrays.hpp"
#include "row_store.inl.hpp"

namespace espalier {

// ---- The leaves of this room --------------------------------------------------------------------

// all = values[m] counts[m] times, for all m.
void repeat(const Cpu&, const std::vector<std::int64_t>& counts, std::span<const std::int64_t> values,
            std::int64_t* all);
void repeat(const Cuda&, const std::vector<std::int64_t>& counts, std::span<const std::int64_t> values,
            std::int64_t* all);

// to[k] = from[order[k]].
void take(const Cpu&, const std::int64_t* from, const Array<Cpu, std::int64_t>& order, std::int64_t* to);
void take(const Cuda&, const std::int64_t* from, const Array<Cuda, std::int64_t>& order, std::int64_t* to);

// The order of (id, batch, place in `pushed`), for rows id - first_row of a block of `rows`.
template <class Id>
void order_pushed(const Cpu&, const PushedRows<Id, Cpu>& pushed, std::int64_t first_row, std::int64_t rows,
                  PushOrder<Cpu>& order);
template <class Id>
void order_pushed(const Cuda&, const PushedRows<Id, Cuda>& pushed, std::int64_t first_row, std::int64_t rows,
                  PushOrder<Cuda>& order);

// Rows of the block take those of `pushed`, or are added to, in that order.
void place_rows(const Cpu&, const PushOrder<Cpu>& order, ConstMatrixView<float> pushed, Push push,
                MatrixView<float> block);
void place_rows(const Cuda&, const PushOrder<Cuda>& order, ConstMatrixView<float, Cuda> pushed, Push push,
                MatrixView<float, Cuda> block);

// -------------------------------------------------------------------------------------------------

// grouped = `pushed` in the order of its groups.
template <class From, class Id, class Space>
void regroup(const Space& space, const PushedRows<From, Space>& pushed, const OwnerGroups<Id, Space>& groups,
             PushedRows<Id, Space>& grouped) {
  grouped.resize(pushed.size(), pushed.rows.columns);
  copy_within(space, groups.ids.data(), pushed.size(), grouped.ids.data());
  take(space, pushed.batches.data(), groups.order, grouped.batches.data());
  copy_rows<float>(space, pushed.rows, groups.order.data(), 0, grouped.rows);
}

// All lists one after another, and then by owner.
template <class Id, class Space>
void group_pushed(const Space& space, const OwnersOn<Space>& owners, IdLists lists,
                  std::span<const std::int64_t> batches, std::span<const Matrix<float, Space>> rows,
                  std::int64_t width, PushMemory<Id, Space>& memory) {
  auto& listed = memory.listed;
  std::vector<std::int64_t> sizes;
  for (const auto& list : lists) sizes.push_back(std::ssize(list));
  listed.resize(total(sizes), width);
  concatenate(space, lists, listed.ids.data());
  repeat(space, sizes, batches, listed.batches.data());
  std::int64_t at = 0;
  for (std::size_t m = 0; m < lists.size(); ++m) {
    copy_within(space, rows[m].data.data(), sizes[m] * width, listed.rows.row(at));
    at += sizes[m];
  }
  group_by_owner(space, listed.ids.data(), listed.size(), owners, memory.groups);
  regroup(space, listed, memory.groups, memory.grouped);
}

// Collective over the column. What its ranks have for me; counts: of mine for each of them.
template <class Id, class Space>
void send_to_owners(const CommunicatorOn<Space>& column, const std::vector<std::int64_t>& counts,
                    const PushedRows<Id, Space>& mine, PushedRows<Id, Space>& arrived,
                    std::string_view label) {
  const auto width = mine.rows.columns;
  const auto arriving = column.host().exchange_counts(counts, label);
  arrived.resize(total(arriving), width);
  column.all_to_all_v(mine.ids.data(), counts, arrived.ids.data(), arriving, label);
  column.all_to_all_v(mine.batches.data(), counts, arrived.batches.data(), arriving, label);
  column.all_to_all_v(mine.rows.data.data(), times(counts, width), arrived.rows.data.data(),
                      times(arriving, width), label);
}

template <class T>
void gather_all(const Communicator& ranks, const Buffer<T>& mine, const std::vector<std::int64_t>& counts,
                Buffer<T>& all, std::string_view label) {
  ranks.all_gather_v(std::span<const T>(mine), counts, all, label);
}
template <class T>
void gather_all(const DeviceCommunicator& ranks, const DeviceArray<T>& mine,
                const std::vector<std::int64_t>& counts, DeviceArray<T>& all, std::string_view label) {
  ranks.all_gather_v(mine.data(), counts, all.data(), label);
}

// Collective over the row. What all its ranks have, the same on each.
template <class Id, class Space>
void share_with_copies(const CommunicatorOn<Space>& row, const PushedRows<Id, Space>& mine,
                       PushedRows<Id, Space>& all, std::string_view label) {
  const auto width = mine.rows.columns;
  const auto counts = row.host().all_gather(mine.size(), label);
  all.resize(total(counts), width);
  gather_all(row, mine.ids, counts, all.ids, label);
  gather_all(row, mine.batches, counts, all.batches, label);
  gather_all(row, mine.rows.data, times(counts, width), all.rows.data, label);
}

template <class Space>
void RowStoreOn<Space>::push(const Space& space, IdLists lists, std::span<const std::int64_t> batches,
                             std::span<const Matrix<float, Space>> rows, Push push, std::string_view label) {
  ESPALIER_CHECK(lists.size() == batches.size() && lists.size() <= rows.size(),
                 "{} lists, {} minibatches, {} matrices", lists.size(), batches.size(), rows.size());
  auto& block = rows_to_change();
  const auto &column = grid_->column_comm(), &row = grid_->row_comm();
  with_index_type(ownership_.rows(), [&]<class Id>(Id) {
    if (!std::holds_alternative<PushMemory<Id, Space>>(push_))
      push_.template emplace<PushMemory<Id, Space>>();
    auto& memory = std::get<PushMemory<Id, Space>>(push_);
    group_pushed<Id, Space>(space, owners(space), lists, batches, rows, block.columns, memory);
    send_to_owners<Id, Space>(column, memory.groups.counts, memory.grouped, memory.arrived, label);
    const bool alone = row.size() == 1;
    if (!alone) share_with_copies<Id, Space>(row, memory.arrived, memory.shared, label);
    auto& pushed = alone ? memory.arrived : memory.shared;
    const auto first = to_places(space, owners(space), grid_->row(), pushed.ids.data(), pushed.size());
    auto& order = memory.order;
    order_pushed<Id>(space, pushed, first, block.rows, order);
    place_rows(space, order, pushed.rows, push, block);
    note_changes(space, order.rows);
    predict_push(column.host(), row.host(), label, ownership_.rows(), memory.grouped.size(),
                 block.columns * std::int64_t{sizeof(float)});
  });
}

template <class Space>
void RowStoreOn<Space>::note_changes(const Space& space, const Array<Space, std::int64_t>& places) {
  if (changed_.empty()) {
    changed_.resize(rows_to_change().rows);
    fill_zero(space, changed_);
  }
  mark_changed(space, places, ++version_, changed_);
}

template <class Space>
Matrix<float, Space>& RowStoreOn<Space>::rows_to_change() {
  auto* const block = std::get_if<Matrix<float, Space>>(&block_);
  ESPALIER_CHECK(block != nullptr, "rows that change are kept as float32");
  return *block;
}

// ---- State --------------------------------------------------------------------------------------

template <class Space>
StateTensor RowStoreOn<Space>::state(const Space& space, const std::string& name) {
  const auto* const block = &rows_to_change();
  const auto places = even_range(block->rows, grid_->replication(), grid_->column());
  const auto* const own = &ownership_;
  return {name, ownership_.rows(), block->columns, ownership_.vertices(grid_->row(), places),
          [space, block, own](RowRange rows, float* to) {
            if (rows.size() == 0) return;
            copy_from(space, block->row(own->local(rows.begin)), rows.size() * block->columns, to);
          }};
}

template <class Space>
void RowStoreOn<Space>::restore(const Space& space, const StateTensor& saved) {
  auto& block = rows_to_change();
  if (saved.rows != ownership_.rows() || saved.columns != block.columns)
    input_error("{} is {} x {} in the checkpoint and {} x {} here", saved.name, saved.rows, saved.columns,
                ownership_.rows(), block.columns);
  if (saved.size() == 0) return;
  constexpr std::int64_t kValues = std::int64_t{1} << 20;  // of what is read at a time
  const auto step = std::max<std::int64_t>(1, kValues / block.columns);
  Buffer<float> values;
  const RowRange all = {0, block.rows};
  for (const auto& range : ownership_.vertices(grid_->row(), all))
    for (auto begin = range.begin; begin < range.end; begin += step) {
      const RowRange rows = {begin, std::min(begin + step, range.end)};
      values.resize(static_cast<std::size_t>(rows.size() * block.columns));
      saved.read(rows, values.data());
      copy_to(space, values.data(), std::ssize(values), block.row(ownership_.local(begin)));
    }
}

}  // namespace espalier
