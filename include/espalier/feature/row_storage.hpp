// Where rows of a tall matrix lie that a rank reads without asking another: in its own memory (on a
// GPU, in that or in pinned memory of the host, which kernels read over the bus), in memory that
// the ranks of a node share, or on disk. What serves them to other ranks (row_store.hpp), and what
// keeps copies of others (row_cache.hpp), asks here and knows no kind of storage.
#pragma once

#include <cstddef>
#include <future>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "espalier/comm/node_memory.hpp"
#include "espalier/feature/row_form.hpp"
#include "espalier/partition/ownership.hpp"

namespace espalier {

class DiskRows;
template <class Space>
class RowCacheOn;

/// What was read from disk, or would have been.
struct DiskCounts {
  std::int64_t rows = 0;    ///< that were wanted
  std::int64_t missed = 0;  ///< those of them that no cache had
  std::int64_t bytes = 0;   ///< that were read for them
  double seconds = 0;       ///< from the begin of each read to its end
  double waited = 0;        ///< how much of that somebody waited

  void add(const DiskCounts& other) {
    rows += other.rows;
    missed += other.missed;
    bytes += other.bytes;
    seconds += other.seconds;
    waited += other.waited;
  }
};

/// Rows on their way from disk. Stays where it is while they are.
class DiskRead {
 public:
  DiskRead() = default;
  DiskRead(const DiskRead&) = delete;
  DiskRead& operator=(const DiskRead&) = delete;
  ~DiskRead() { wait(); }

  /// Waits for the rows.
  void wait();
  /// The same; the cache that was looked into first may take them up.
  DiskCounts finish(const Cpu& cpu);

 private:
  template <class Space>
  friend class RowStorageOn;

  RowCacheOn<Cpu>* cache_ = nullptr;
  std::vector<std::int64_t> numbers_, missed_;
  std::byte* to_ = nullptr;
  std::int64_t bytes_ = 0;
  double seconds_ = 0, waited_ = 0;
  std::future<void> reading_;
};

template <class Space>
class RowStorageOn {
 public:
  /// Rows in memory of this rank: those that part `part` owns, in the order of their places.
  RowStorageOn(Ownership owners, int part, StoredRows<Space> rows)
      : reach_(std::move(owners)), part_(part), rows_(std::move(rows)) {}
  /// Rows on disk, by the owners' ids or by place (DiskRows::by_place).
  RowStorageOn(Ownership owners, int part,
               std::shared_ptr<const DiskRows> disk) requires std::is_same_v<Space, Cpu>;

  /// The owners, as this rank sees them: rows that it reads here are of `part`, whoever owns them.
  const Ownership& reach() const { return reach_; }
  int part() const { return part_; }
  /// Parts of the owners whose rows are here.
  int parts_here() const { return parts_here_; }
  bool has(std::int64_t row) const { return has_all() || reach_.owner(row) == part_; }
  /// Does every rank of the grid have all rows here?
  bool has_all() const { return reach_.parts() == 1; }
  std::int64_t rows_here() const { return reach_.size(part_); }
  std::int64_t rows_elsewhere() const { return reach_.rows() - rows_here(); }

  /// Numbers of a row.
  std::int64_t width() const { return rows_.form.width; }
  /// Of a row, as it is stored.
  std::int64_t row_bytes() const { return rows_.form.row_bytes(); }

  bool on_disk() const { return disk_ != nullptr; }
  /// Of rows on disk: what a cache knows the row at `place`, of this part, by.
  std::int64_t number_on_disk(std::int64_t place) const {
    return by_place_ ? place : reach_.vertex(part_, place);
  }
  /// Those at `places` in reach(), of this part, as they are stored, to `to`, from `cache` where it
  /// has them (null: none), else on another thread; `read` is finished when they are to be there.
  void begin_read(const Cpu& cpu, std::span<const std::int64_t> places, std::byte* to, RowCacheOn<Cpu>* cache,
                  DiskRead& read) const requires std::is_same_v<Space, Cpu>;

  /// The rows that are here, by their places in reach(); on disk none.
  const StoredRows<Space>& rows() const { return rows_; }

  /// The ranks of `node`, of one machine, keep one copy of the rows that they have, where all of
  /// them read them; they are not changed afterwards. False, on every rank, where memory cannot be
  /// shared. Collective over `world`, whose ranks are each in one node.
  bool share(const Communicator& node, const Communicator& world) requires std::is_same_v<Space, Cpu>;

 private:
  Ownership reach_;
  int part_, parts_here_ = 1;
  StoredRows<Space> rows_;
  bool shared_ = false;                   // are these in memory of the node?
  std::shared_ptr<const DiskRows> disk_;  // or null
  bool by_place_ = false;                 // its rows
};
using RowStorage = RowStorageOn<Cpu>;

}  // namespace espalier
