// Rows of a tall matrix spread over the grid by block rows: the exchange by which minibatches get
// those that they need. Where a rank's rows lie is their storage's to say (row_storage.hpp).
// Features are only read, embeddings are trained (feature/embedding_store.hpp).
//
// P(i,j) holds the rows of H that part i owns (partition/ownership.hpp), in the form in which they
// are stored (row_form.hpp), and so they travel. What a fetch gives is float32.
// It stays inside the process column: each rank asks each owner for the distinct rows it needs in
// one all-to-all-v of ids, 4 or 8 bytes each (base/index_type.hpp), and receives
// (distinct rows)(1 - c/p) f values. The rows may travel while the caller does something else:
// between the moves of a fetch.
//
// Rows may be those of entries of a matrix (feature/entry_index.hpp): an entry is where its row is.
//
// A fetch may be under way while rows change. Those that were sent before are sent once more when
// the fetch ends (`correct`), so what it gives are the rows of that moment, however early it began.
#pragma once

#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "espalier/base/index_type.hpp"
#include "espalier/comm/device_communicator.hpp"
#include "espalier/feature/entry_index.hpp"
#include "espalier/feature/row_cache.hpp"
#include "espalier/feature/row_storage.hpp"
#include "espalier/partition/group_by_owner.hpp"
#include "espalier/partition/held_types.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

/// One list of ids for each minibatch, memory of the space.
using IdLists = std::span<const std::span<const std::int64_t>>;

template <class Space>
class RowStoreOn;
/// A fetch is three exchanges, each of which waits for the one before: how many ids are for whom,
/// the ids, the rows.
enum class FetchMove { kCounts, kIds, kRows };

/// The rows of one fetch on their way, and the memory that they need, which is kept for the next
/// fetch.
template <class Space>
class PendingFetchOn {
 public:
  PendingFetchOn() = default;
  /// Looks into `copies` for rows, and has them take up what it brings. They must outlive it.
  explicit PendingFetchOn(const CachedCopiesOn<Space>& copies) : copies_(copies) {}

  /// Gives what is under way an opportunity to move (PendingExchange::progress). Local.
  void progress() {
    counts_exchange_.progress();
    exchange_.progress();
  }
  /// Rows that were asked of other ranks.
  std::int64_t remote_rows() const { return remote_rows_; }
  /// Rows of other ranks that a cache had.
  std::int64_t cached_rows() const { return cached_rows_; }
  /// What it read from disk, for others, too.
  const DiskCounts& of_disk() const { return of_disk_; }

 private:
  friend class RowStoreOn<Space>;

  /// Ids as they travel: those that I want, grouped by owner, my own last, and those that others
  /// want of me.
  template <class Id>
  struct Request {
    OwnerGroups<Id, Space> wanted;
    Array<Space, Id> asked;
  };
  /// Of the width of one store; a fetch that served a store of another begins anew.
  template <class Id>
  Request<Id>& request() {
    if (!std::holds_alternative<Request<Id>>(request_)) request_.template emplace<Request<Id>>();
    return std::get<Request<Id>>(request_);
  }

  FetchMove done_ = FetchMove::kRows;
  std::int32_t version_ = 0;         // of the store when rows were sent
  std::vector<std::int64_t> sizes_;  // rows of each list
  std::int64_t remote_rows_ = 0, cached_rows_ = 0;
  CachedCopiesOn<Space> copies_;
  std::vector<std::int64_t> missed_;   // ids that were asked for, as copies_.of_others counts them
  Buffer<std::int64_t> asked_counts_;  // rows that each rank of the process column wants of me
  Array<Space, std::int64_t>
      source_;  // of each row, list after list: a place in arrived_, or ~(row of my block)
  std::variant<Request<std::int32_t>, Request<std::int64_t>> request_;
  Array<Space, std::byte> reply_, arrived_;  // rows as they are stored, in the order of asked
                                             // and of wanted, those of a cache last
  Array<Space, std::byte> read_;             // my rows, where they are on disk
  std::unique_ptr<DiskRead> reading_;        // or are on their way from there
  DiskCounts of_disk_;
  PendingExchange counts_exchange_;
  PendingExchangeOn<Space> exchange_;  // of ids, then of rows; last: it uses the arrays
};
using PendingFetch = PendingFetchOn<Cpu>;

template <class Space>
class RowStoreOn {
 public:
  /// `block`: this rank's rows, ownership.size(grid.row()) x f: row k is that of
  /// ownership.vertex(grid.row(), k). The grid must stay.
  RowStoreOn(const GridOn<Space>& grid, Ownership ownership, StoredRows<Space> block);
  /// Rows that stay on disk.
  RowStoreOn(const GridOn<Space>& grid, Ownership ownership,
             std::shared_ptr<const DiskRows> disk) requires std::is_same_v<Space, Cpu>;
  /// Rows of entries: `ownership` is of the matrix' rows, `block` has a row for each entry of
  /// `entries`, and one of zeros. It is asked for numbers of entries, and only read.
  RowStoreOn(const GridOn<Space>& grid, Ownership ownership, EntryIndexOn<Space> entries,
             StoredRows<Space> block);

  std::int64_t width() const { return storage_.width(); }
  const Ownership& ownership() const { return ownership_; }
  /// Of a store of entries which there are; else null.
  const EntryIndexOn<Space>* entries() const { return entries_.get(); }
  /// The vertices that have rows here; what the store is asked for are their numbers.
  const HeldTypes& held() const { return held_; }
  void hold(HeldTypes held) { held_ = std::move(held); }
  const RowStorageOn<Space>& storage() const { return storage_; }
  /// RowStorageOn::share, over the grid. The last thing done to a store.
  bool share(const Communicator& node) requires std::is_same_v<Space, Cpu> {
    owners_.reset();
    return storage_.share(node, grid_->world());
  }
  /// What crosses for a row of another rank: its number, asked for, and the row.
  std::int64_t fetched_bytes() const { return index_bytes(ids()) + storage_.row_bytes(); }
  /// How many rows of `lists` other ranks have. Not collective. On a GPU the host waits once.
  std::int64_t count_remote(const Space& space, IdLists lists) const;
  /// Collective over the process column. rows[m](k, :) becomes row lists[m][k] of H, distinct ids
  /// in one list; a rank may pass none. `rows` grows to the number of lists, and keeps its memory.
  void fetch(const Space& space, IdLists lists, std::vector<Matrix<float, Space>>& rows,
             std::string_view label) const {
    fetch(space, lists, rows, label, fetch_);
  }
  /// The same by `pending`, whose copies are looked into.
  void fetch(const Space& space, IdLists lists, std::vector<Matrix<float, Space>>& rows,
             std::string_view label, PendingFetchOn<Space>& pending) const;

  /// The same move by move, so that each exchange has time to travel: begins with the first, of
  /// counts; `advance` waits for what is under way and begins what follows, up to `move`.
  /// Collective over the process column. Several fetches may be under way, each with its own
  /// `fetch`; the lists are not used after the call. Rows that its copies have are not asked for,
  /// or read, and those that arrive may be taken up: of caches of this store's rows, which do not
  /// change.
  void begin_counts(const Space& space, IdLists lists, PendingFetchOn<Space>& fetch,
                    std::string_view label) const;
  void advance(const Space& space, PendingFetchOn<Space>& fetch, FetchMove move,
               std::string_view label) const;

  /// Collective over the process column, between the last move of a fetch and its end: rows that
  /// have changed since they were sent are sent once more. Nothing where none has.
  void correct(const Space& space, PendingFetchOn<Space>& fetch, std::string_view label) const;

  /// Waits for the rows of a begun fetch and writes them to `rows`, as above. Not collective; every
  /// rank must do it.
  void finish_fetch(const Space& space, PendingFetchOn<Space>& fetch,
                    std::vector<Matrix<float, Space>>& rows) const;

  /// The same of entries in rows that my part owns. Not collective, and nothing is sent.
  void read_own(const Space& space, IdLists lists, std::vector<Matrix<float, Space>>& rows) const;

  /// Collective over the process column. asks[s][part]: the ids that coming fetch s will ask that
  /// part for. Returns for each what others will ask this rank for, in the order in which it hears.
  std::vector<std::vector<std::int64_t>> tell_owners(
      const std::vector<std::vector<std::vector<std::int64_t>>>& asks,
      std::string_view label) const requires std::is_same_v<Space, Cpu>;

  // For who changes rows.

  MatrixView<float, Space> rows_to_change() { return storage_.rows().floats(); }
  /// Rows of my block, by their places, have changed; every rank of the grid says so as often.
  void note_changes(const Space& space, const Array<Space, std::int64_t>& places);
  /// As the storage sees them.
  const OwnersOn<Space>& owners(const Space& space) const;

 private:
  /// What the store is asked for lies in [0, ids()).
  std::int64_t ids() const { return entries_ ? ownership_.rows() * entries_->columns() : ownership_.rows(); }
  template <class Id>
  void group(const Space& space, const Array<Space, std::int64_t>& ids, OwnerGroups<Id, Space>& groups) const;
  /// ids[0 .. count) of part `part`, mine but where all are local, become rows of my block, but for
  /// what is returned.
  template <class Id>
  std::int64_t to_rows(const Space& space, Id* ids, std::int64_t count) const;
  void take_up(const Space& space, IdLists lists, PendingFetchOn<Space>& fetch) const;
  void gather_lists(const Space& space, const std::byte* from, const std::byte* own,
                    const PendingFetchOn<Space>& fetch, std::vector<Matrix<float, Space>>& rows) const;
  template <class Id>
  void send_counts(const Space& space, PendingFetchOn<Space>& fetch, std::string_view label) const;
  template <class Id>
  void send_ids(PendingFetchOn<Space>& fetch, std::string_view label) const;
  /// Begins to read rows of mine that a fetch needs from disk to its memory; source_ says where
  /// they will be.
  void begin_reading(const Space& space, PendingFetchOn<Space>& fetch) const;
  template <class Id>
  void send_rows(const Space& space, PendingFetchOn<Space>& fetch, std::string_view label) const;
  template <class Id>
  void send_changed(const Space& space, ConstMatrixView<float, Space> own, PendingFetchOn<Space>& fetch,
                    std::string_view label) const;

  const GridOn<Space>* grid_;
  Ownership ownership_;
  RowStorageOn<Space> storage_;
  HeldTypes held_;
  mutable std::optional<OwnersOn<Space>> owners_;       ///< once asked for
  std::shared_ptr<const EntryIndexOn<Space>> entries_;  ///< of rows of entries, or null
  mutable PendingFetchOn<Space> fetch_;                 ///< of fetch() and its like, for its memory
  std::int32_t version_ = 0;                            ///< how often rows have changed
  Array<Space, std::int32_t> changed_;  ///< [my rows] the version since which each is as it is;
                                        ///< empty while none has changed
};
using RowStore = RowStoreOn<Cpu>;

/// A copy of `host` for the GPU; the host's may go afterwards. `narrow`: of rows, as StoredRows'.
/// Local.
RowStoreOn<Cuda> to_device(const Cuda& cuda, const DeviceGrid& grid, const RowStore& host,
                           Placement placement, bool narrow = false);

}  // namespace espalier
