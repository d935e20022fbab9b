// A fetch, for every space: row_store.cpp and row_store.cu instantiate it. The ids of all lists,
// one after another, are grouped by owner, my own last:
//
//   ids, grouped          [ owner 0 | owner 1 | ... | mine ]    as they travel, all but mine
//   arrived, as stored    [ owner 0 | owner 1 | ... ]           those rows of H, by an all-to-all-v
//                                                               (with a cache: then those it has)
//   rows[m](k)            = row source[k] of those, or row ~source[k] of my block, as float32
//
// Between begin and finish the rows are on their way; finish gathers them, list after list.
#pragma once

#include <numeric>
#include <utility>

#include "espalier/base/arrays.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/index_type.hpp"
#include "espalier/dense/gather.hpp"
#include "espalier/dense/spmm.hpp"
#include "espalier/feature/fetch_model.hpp"
#include "espalier/feature/row_cache.hpp"
#include "espalier/feature/row_store.hpp"

namespace espalier {

// ---- The kernels of this room -------------------------------------------------------------------

// all = the lists one after another.
void concatenate(const Cpu&, IdLists lists, std::int64_t* all);
void concatenate(const Cuda&, IdLists lists, std::int64_t* all);

// source[i] for every id i of the list that was grouped: its place among the first `others` ids, or
// ~(id - first_row).
template <class Id>
void find_sources(const Cpu&, const OwnerGroups<Id>& groups, std::int64_t others, std::int64_t first_row,
                  std::int64_t* source);
template <class Id>
void find_sources(const Cuda&, const OwnerGroups<Id, Cuda>& groups, std::int64_t others,
                  std::int64_t first_row, std::int64_t* source);

// -------------------------------------------------------------------------------------------------

// before[k] = how many of asked[0 .. k) are rows that have changed after `version`, k = 0 .. count;
// asked[k] - first: the row's place in the block.
template <class Id>
void count_changed(const Cpu&, const Id* asked, std::int64_t count, std::int64_t first,
                   const Buffer<std::int32_t>& changed, std::int32_t version, Buffer<std::int64_t>& before);
template <class Id>
void count_changed(const Cuda&, const Id* asked, std::int64_t count, std::int64_t first,
                   const DeviceArray<std::int32_t>& changed, std::int32_t version,
                   DeviceArray<std::int64_t>& before);

// Of asked[0 .. count) those that were counted, in order: their numbers, and themselves.
template <class Id>
void take_changed(const Cpu&, const Id* asked, std::int64_t count, const std::int64_t* before, Id* numbers,
                  Id* rows);
template <class Id>
void take_changed(const Cuda&, const Id* asked, std::int64_t count, const std::int64_t* before, Id* numbers,
                  Id* rows);

// to[places[k]] = from[k]; places are distinct.
template <class Id>
void put_rows(const Cpu&, ConstMatrixView<float> from, const Id* places, MatrixView<float> to);
template <class Id>
void put_rows(const Cuda&, ConstMatrixView<float, Cuda> from, const Id* places, MatrixView<float, Cuda> to);

// changed[places[k]] = version.
void mark_changed(const Cpu&, const Buffer<std::int64_t>& places, std::int32_t version,
                  Buffer<std::int32_t>& changed);
void mark_changed(const Cuda&, const DeviceArray<std::int64_t>& places, std::int32_t version,
                  DeviceArray<std::int32_t>& changed);

inline std::int64_t total(std::span<const std::int64_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

inline std::vector<std::int64_t> times(std::span<const std::int64_t> counts, std::int64_t factor) {
  std::vector<std::int64_t> products(counts.begin(), counts.end());
  for (auto& product : products) product *= factor;
  return products;
}

template <class Space>
RowStoreOn<Space>::RowStoreOn(const GridOn<Space>& grid, Ownership ownership, StoredRows<Space> block)
    : grid_(&grid),
      ownership_(std::move(ownership)),
      storage_(ownership_, ownership_.parts() > 1 ? grid.row() : 0, std::move(block)) {}

template <class Space>
RowStoreOn<Space>::RowStoreOn(const GridOn<Space>& grid, Ownership ownership,
                              std::shared_ptr<const DiskRows> disk) requires std::is_same_v<Space, Cpu>
    : grid_(&grid),
      ownership_(std::move(ownership)),
      storage_(ownership_, ownership_.parts() > 1 ? grid.row() : 0, std::move(disk)) {}

template <class Space>
RowStoreOn<Space>::RowStoreOn(const GridOn<Space>& grid, Ownership ownership, EntryIndexOn<Space> entries,
                              StoredRows<Space> block)
    : RowStoreOn(grid, std::move(ownership), std::move(block)) {
  entries_ = std::make_shared<const EntryIndexOn<Space>>(std::move(entries));
}

template <class Space>
void RowStoreOn<Space>::note_changes(const Space& space, const Array<Space, std::int64_t>& places) {
  if (changed_.empty()) {
    changed_.resize(rows_to_change().rows);
    fill_zero(space, changed_);
  }
  mark_changed(space, places, ++version_, changed_);
}

// What kernels read, brought to them once.
template <class Space>
const OwnersOn<Space>& RowStoreOn<Space>::owners(const Space& space) const {
  if (!owners_) owners_.emplace(space, storage_.reach(), storage_.part());
  return *owners_;
}

template <class Space>
template <class Id>
void RowStoreOn<Space>::group(const Space& space, const Array<Space, std::int64_t>& ids,
                              OwnerGroups<Id, Space>& groups) const {
  const auto count = std::ssize(ids);
  if (!entries_) return group_by_owner(space, ids.data(), count, owners(space), groups, storage_.part());
  Array<Space, std::int64_t> rows(count);
  rows_of_entries(space, ids.data(), count, entries_->columns(), rows.data());
  group_by_owner(space, rows.data(), count, owners(space), groups, storage_.part());
  put_entries(space, ids.data(), groups);
}

template <class Space>
template <class Id>
std::int64_t RowStoreOn<Space>::to_rows(const Space& space, Id* ids, std::int64_t count) const {
  const auto& owned = owners(space);
  if (!entries_) return to_places(space, owned, storage_.part(), ids, count);
  find_entries(space, *entries_, owned.my_places.view, ids, count);
  return 0;
}

template <class Space>
void RowStoreOn<Space>::fetch(const Space& space, IdLists lists, std::vector<Matrix<float, Space>>& rows,
                              std::string_view label, PendingFetchOn<Space>& pending) const {
  begin_counts(space, lists, pending, label);
  advance(space, pending, FetchMove::kRows, label);
  finish_fetch(space, pending, rows);
}

template <class Space>
void RowStoreOn<Space>::begin_counts(const Space& space, IdLists lists, PendingFetchOn<Space>& fetch,
                                     std::string_view label) const {
  if (fetch.reading_) fetch.reading_->wait();
  fetch.counts_exchange_.finish();  // of a fetch that was given up: its arrays are written anew
  fetch.exchange_.finish();
  take_up(space, lists, fetch);
  fetch.done_ = FetchMove::kCounts;
  const auto rows = std::ssize(fetch.source_);
  grid_->traffic().count(MemoryStep::kGroupFeatures, {.rows = rows, .bytes = index_bytes(ids()) * rows});
  if (!storage_.has_all())
    return with_index_type(ids(), [&]<class Id>(Id) { send_counts<Id>(space, fetch, label); });
  // Where all rows are local, their ids are their sources.
  if (entries_) to_rows(space, fetch.source_.data(), rows);
}

template <class Space>
void RowStoreOn<Space>::take_up(const Space& space, IdLists lists, PendingFetchOn<Space>& fetch) const {
  fetch.sizes_.clear();
  for (const auto& list : lists) fetch.sizes_.push_back(std::ssize(list));
  fetch.remote_rows_ = fetch.cached_rows_ = 0;
  fetch.of_disk_ = {};
  fetch.source_.resize(total(fetch.sizes_));
  concatenate(space, lists, fetch.source_.data());
}

template <class Space>
std::int64_t RowStoreOn<Space>::count_remote(const Space& space, IdLists lists) const {
  if (storage_.has_all()) return 0;
  take_up(space, lists, fetch_);
  return with_index_type(ids(), [&]<class Id>(Id) {
    auto& wanted = fetch_.template request<Id>().wanted;
    group(space, fetch_.source_, wanted);
    return total(wanted.counts);
  });
}

template <class Space>
void RowStoreOn<Space>::read_own(const Space& space, IdLists lists,
                                 std::vector<Matrix<float, Space>>& rows) const {
  ESPALIER_CHECK(entries_ != nullptr, "rows of {} lists, not of entries", lists.size());
  take_up(space, lists, fetch_);
  to_rows(space, fetch_.source_.data(), std::ssize(fetch_.source_));
  const auto* const own = storage_.rows().data;
  gather_lists(space, own, own, fetch_, rows);
}

// Rows as they are stored, two arrays of them, become numbers, list after list.
template <class Space>
void RowStoreOn<Space>::gather_lists(const Space& space, const std::byte* from, const std::byte* own,
                                     const PendingFetchOn<Space>& fetch,
                                     std::vector<Matrix<float, Space>>& rows) const {
  if (rows.size() < fetch.sizes_.size()) rows.resize(fetch.sizes_.size());
  const auto* source = fetch.source_.data();
  for (std::size_t m = 0; m < fetch.sizes_.size(); ++m) {
    rows[m].resize(fetch.sizes_[m], storage_.width());
    gather_rows(space, storage_.rows().form, from, own, source, rows[m]);
    source += rows[m].rows;
  }
}

template <class Space>
void RowStoreOn<Space>::advance(const Space& space, PendingFetchOn<Space>& fetch, FetchMove move,
                                std::string_view label) const {
  const bool reads = storage_.on_disk() && fetch.done_ != FetchMove::kRows;
  if (storage_.has_all()) fetch.done_ = FetchMove::kRows;
  with_index_type(ids(), [&]<class Id>(Id) {
    if (fetch.done_ == FetchMove::kCounts && move != FetchMove::kCounts) send_ids<Id>(fetch, label);
    if (fetch.done_ == FetchMove::kIds && move == FetchMove::kRows) send_rows<Id>(space, fetch, label);
  });
  if (reads && fetch.done_ == FetchMove::kRows) begin_reading(space, fetch);
}

// Groups the rows whose ids are in source_, which then says where they will be.
template <class Space>
template <class Id>
void RowStoreOn<Space>::send_counts(const Space& space, PendingFetchOn<Space>& fetch,
                                    std::string_view label) const {
  auto& wanted = fetch.template request<Id>().wanted;
  group(space, fetch.source_, wanted);
  const auto others = total(wanted.counts);
  if (auto* const cache = fetch.copies_.of_others)
    cache->begin(space, wanted, others, fetch.missed_, fetch.arrived_);
  fetch.remote_rows_ = total(wanted.counts);
  fetch.cached_rows_ = others - fetch.remote_rows_;
  const auto first = to_rows(space, wanted.ids.data() + others, wanted.size() - others);
  find_sources(space, wanted, others, first, fetch.source_.data());
  const auto& column = grid_->column_comm().host();
  const std::vector<std::int64_t> one_each(column.size(), 1);
  fetch.counts_exchange_ = column.begin_all_to_all_v(std::span<const std::int64_t>(wanted.counts), one_each,
                                                     one_each, fetch.asked_counts_, label);
}

template <class Space>
template <class Id>
void RowStoreOn<Space>::send_ids(PendingFetchOn<Space>& fetch, std::string_view label) const {
  auto& [wanted, asked] = fetch.template request<Id>();
  fetch.counts_exchange_.finish();
  asked.resize(total(fetch.asked_counts_));
  fetch.exchange_ = grid_->column_comm().begin_all_to_all_v(wanted.ids.data(), wanted.counts, asked.data(),
                                                            fetch.asked_counts_, label);
  fetch.done_ = FetchMove::kIds;
}

template <class Space>
template <class Id>
void RowStoreOn<Space>::send_rows(const Space& space, PendingFetchOn<Space>& fetch,
                                  std::string_view label) const {
  auto& [wanted, asked] = fetch.template request<Id>();
  fetch.exchange_.finish();
  const auto row_bytes = storage_.row_bytes();
  fetch.reply_.resize(asked.size() * row_bytes);
  const auto first = to_rows(space, asked.data(), std::ssize(asked));
  if constexpr (std::is_same_v<Space, Cpu>)
    if (storage_.on_disk()) {
      std::vector<std::int64_t> places;
      for (const auto row : asked) places.push_back(static_cast<std::int64_t>(row) - first);
      DiskRead read;
      storage_.begin_read(space, places, fetch.reply_.data(), fetch.copies_.of_disk, read);
      fetch.of_disk_.add(read.finish(space));
    }
  if (!storage_.on_disk())
    copy_rows(space, storage_.rows().data, row_bytes, asked.data(), first, std::ssize(asked),
              fetch.reply_.data());
  grid_->traffic().count(MemoryStep::kReplyFeatures,
                         {.rows = std::ssize(asked), .bytes = std::ssize(fetch.reply_)});
  fetch.arrived_.resize((fetch.remote_rows_ + fetch.cached_rows_) * row_bytes);
  const auto& column = grid_->column_comm();
  fetch.exchange_ = column.begin_all_to_all_v(fetch.reply_.data(), times(fetch.asked_counts_, row_bytes),
                                              fetch.arrived_.data(), times(wanted.counts, row_bytes), label);
  // Of the rows that are out of reach a cache had some; all lie evenly over the block rows.
  const auto missed = static_cast<double>(fetch.remote_rows_),
             cached = static_cast<double>(fetch.cached_rows_);
  const auto cost = feature_fetch_cost(
      column.size(), static_cast<double>(wanted.size()) * (cached == 0 ? 1 : missed / (missed + cached)),
      index_bytes(ids()), static_cast<double>(row_bytes), storage_.parts_here());
  grid_->traffic().predict(label, cost.messages, cost.bytes);
  fetch.version_ = version_;
  fetch.done_ = FetchMove::kRows;
}

// Rows that change are as wide in memory as on the wire: float32.
template <class Space>
void RowStoreOn<Space>::correct(const Space& space, PendingFetchOn<Space>& fetch,
                                std::string_view label) const {
  if (storage_.has_all() || fetch.version_ == version_) return;
  fetch.exchange_.finish();
  with_index_type(ownership_.rows(),
                  [&]<class Id>(Id) { send_changed<Id>(space, storage_.rows().floats(), fetch, label); });
}

template <class Space>
template <class Id>
void RowStoreOn<Space>::send_changed(const Space& space, ConstMatrixView<float, Space> own,
                                     PendingFetchOn<Space>& fetch, std::string_view label) const {
  auto& [wanted, asked] = fetch.template request<Id>();
  const auto& column = grid_->column_comm();
  const auto ranks = fetch.asked_counts_.size();
  // asked holds places already, but for what to_places has subtracted.
  const auto first = owners(space).is_map() ? 0 : ownership_.ranges().begin(grid_->row());
  Array<Space, std::int64_t> before;
  count_changed(space, asked.data(), std::ssize(asked), first, changed_, fetch.version_, before);
  std::vector<std::int64_t> ends = {0};
  for (const auto count : fetch.asked_counts_) ends.push_back(ends.back() + count);
  const auto counted = read_at(space, before.data(), ends);
  std::vector<std::int64_t> counts;
  for (std::size_t r = 0; r < ranks; ++r) counts.push_back(counted[r + 1] - counted[r]);
  Array<Space, Id> numbers(counted.back()), rows(counted.back());
  for (std::size_t r = 0; r < ranks; ++r)
    take_changed(space, asked.data() + ends[r], fetch.asked_counts_[r], before.data() + ends[r],
                 numbers.data() + counted[r], rows.data() + counted[r]);
  Matrix<float, Space> changed(counted.back(), own.columns);
  copy_rows<float>(space, own, rows.data(), first, changed);

  const auto arriving = column.host().exchange_counts(counts, label);
  Array<Space, Id> places(total(arriving));
  Matrix<float, Space> arrived(total(arriving), own.columns);
  column.all_to_all_v(numbers.data(), counts, places.data(), arriving, label);
  column.all_to_all_v(changed.data.data(), times(counts, own.columns), arrived.data.data(),
                      times(arriving, own.columns), label);
  auto* to = reinterpret_cast<float*>(fetch.arrived_.data());
  std::int64_t at = 0;
  for (std::size_t r = 0; r < ranks; ++r) {
    const auto of_rank = wanted.counts[r];
    put_rows(space, ConstMatrixView<float, Space>(arriving[r], own.columns, arrived.row(at)),
             places.data() + at, MatrixView<float, Space>(of_rank, own.columns, to));
    at += arriving[r];
    to += of_rank * own.columns;
  }
  const auto cost =
      row_correction_cost(column.size(), static_cast<double>(counted.back()), index_bytes(ownership_.rows()),
                          static_cast<double>(own.columns) * sizeof(float));
  grid_->traffic().predict(label, cost.messages, cost.bytes);
  fetch.version_ = version_;
}

// How many ids of each fetch, then the ids of all.
template <class Space>
std::vector<std::vector<std::int64_t>> RowStoreOn<Space>::tell_owners(
    const std::vector<std::vector<std::vector<std::int64_t>>>& asks,
    std::string_view label) const requires std::is_same_v<Space, Cpu> {
  const auto& column = grid_->column_comm().host();
  const auto fetches = std::ssize(asks);
  std::vector<std::int64_t> counts, sizes(column.size(), 0);
  for (int part = 0; part < column.size(); ++part)
    for (const auto& fetch : asks) {
      counts.push_back(std::ssize(fetch[part]));
      sizes[part] += counts.back();
    }
  const std::vector<std::int64_t> one_each(column.size(), fetches);
  std::vector<std::int64_t> asked_counts(counts.size());
  column.all_to_all_v(counts.data(), one_each, asked_counts.data(), one_each, label);
  std::vector<std::int64_t> asked_sizes;
  for (int part = 0; part < column.size(); ++part)
    asked_sizes.push_back(total(std::span(asked_counts).subspan(part * fetches, fetches)));
  const auto cost = foretelling_cost(column.size(), static_cast<double>(total(sizes)), index_bytes(ids()),
                                     static_cast<double>(fetches));
  grid_->traffic().predict(label, cost.messages, cost.bytes);

  std::vector<std::vector<std::int64_t>> asked(asks.size());
  with_index_type(ids(), [&]<class Id>(Id) {
    std::vector<Id> told, heard(total(asked_sizes));
    for (int part = 0; part < column.size(); ++part)
      for (const auto& fetch : asks) told.insert(told.end(), fetch[part].begin(), fetch[part].end());
    column.all_to_all_v(told.data(), sizes, heard.data(), asked_sizes, label);
    auto from = heard.begin();
    for (std::size_t k = 0; k < asked_counts.size(); from += asked_counts[k++])
      asked[k % asks.size()].insert(asked[k % asks.size()].end(), from, from + asked_counts[k]);
  });
  return asked;
}

template <class Space>
void RowStoreOn<Space>::begin_reading(const Space& space, PendingFetchOn<Space>& fetch) const {
  if constexpr (std::is_same_v<Space, Cpu>) {
    std::vector<std::int64_t> places;
    const bool all = storage_.has_all();
    for (auto& source : fetch.source_) {
      if (!all && source >= 0) continue;
      const auto read = std::ssize(places);
      places.push_back(all ? source : ~source);
      source = all ? read : ~read;
    }
    fetch.read_.resize(places.size() * static_cast<std::size_t>(storage_.row_bytes()));
    if (!fetch.reading_) fetch.reading_ = std::make_unique<DiskRead>();
    storage_.begin_read(space, places, fetch.read_.data(), fetch.copies_.of_disk, *fetch.reading_);
  }
}

template <class Space>
void RowStoreOn<Space>::finish_fetch(const Space& space, PendingFetchOn<Space>& fetch,
                                     std::vector<Matrix<float, Space>>& rows) const {
  ESPALIER_CHECK(fetch.done_ == FetchMove::kRows, "rows of a fetch that made move {}",
                 static_cast<int>(fetch.done_));
  fetch.exchange_.finish();
  if (auto* const cache = fetch.copies_.of_others) cache->end(space, fetch.missed_, fetch.arrived_);
  const auto* own = storage_.rows().data;
  if constexpr (std::is_same_v<Space, Cpu>)
    if (storage_.on_disk()) {
      fetch.of_disk_.add(fetch.reading_->finish(space));
      own = fetch.read_.data();
    }
  gather_lists(space, storage_.has_all() ? own : fetch.arrived_.data(), own, fetch, rows);
  const auto placed = std::ssize(fetch.source_);
  grid_->traffic().count(MemoryStep::kPlaceFeatures,
                         {.rows = placed, .bytes = placed * (storage_.row_bytes() + 4 * storage_.width())});
}

}  // namespace espalier
