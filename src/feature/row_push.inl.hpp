// Gradients of rows on their way to the owners of these, for every space: embedding_store.cpp and
// embedding_store.cu instantiate it and define the kernels. All lists, one after another, are
// grouped by owner and sent to them: ids, numbers of minibatches, rows. What arrives is in the
// order of (row, minibatch, place in the list), whoever sent it, as a minibatch is of one rank and
// groups keep order.
#pragma once

#include "espalier/base/arrays.hpp"
#include "row_store.inl.hpp"

namespace espalier {

// ---- The kernels of this room -------------------------------------------------------------------

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

}  // namespace espalier
