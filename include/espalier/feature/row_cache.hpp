// Copies of rows of features that other ranks own, or that lie on this rank's disk, so that they
// need not be asked for, or read, again: a bounded number of bytes, in memory of the space and in
// the type in which the store keeps them. Which rows: cache_policy.hpp.
//
//     begin_counts     rows that are held are copied behind where those that were asked for will
//                      arrive; their owners are not asked
//     finish_fetch     rows that have arrived may be taken up
//
// and of rows on disk the same when reading begins, and ends.
//
// A row is copied when its fetch begins, not when it ends: so a fetch under way needs nothing of
// the cache any more, several may be under way, and rows may go or move between. It costs one
// copy within memory, for a row that would have come from another rank.
//
// Law: no bit of any result hangs on the cache, as rows are those of their owners. Only of stores
// that are not changed. Nothing is fetched for the cache's sake: what it sends is never more. What
// it holds is of one rank, and known to the host; on a GPU a fetch has the host wait once more, for
// the ids.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "espalier/base/host_device.hpp"
#include "espalier/feature/cache_policy.hpp"
#include "espalier/partition/group_by_owner.hpp"

namespace espalier {

/// Where rows lie, for kernels: in pieces, of which each has so many slots.
struct CachedRows {
  std::byte* const* pieces;  ///< memory of the space, as they are
  std::int64_t piece_rows, row_bytes;

  ESPALIER_HD std::byte* row(std::int64_t slot) const {
    return pieces[slot / piece_rows] + slot % piece_rows * row_bytes;
  }
};

template <class Space>
class RowCacheOn {
 public:
  static constexpr std::int64_t kPieceRows = 64;
  /// What a row takes beside itself: the slots and ids that it is found by. Keys and what is known
  /// of coming fetches are not counted.
  static constexpr std::int64_t kFoundBy = 32;

  /// `row_bytes`: of a row as it is stored; even. Memory is taken in pieces of `piece_rows` rows.
  RowCacheOn(CacheRule rule, std::int64_t row_bytes, std::int64_t piece_rows = kPieceRows)
      : policy_(rule), row_bytes_(row_bytes), piece_rows_(piece_rows) {}

  CachePolicy& policy() { return policy_; }
  std::int64_t row_bytes() const { return row_bytes_; }

  /// How many rows fit into so many bytes, in whole pieces.
  static std::int64_t slots_of(std::int64_t bytes, std::int64_t row_bytes,
                               std::int64_t piece_rows = kPieceRows) {
    constexpr std::int64_t kMostRows = std::int64_t{1} << 30;  // slots are numbers of 32 bits
    const auto pieces = std::max<std::int64_t>(0, bytes) / (piece_rows * (row_bytes + kFoundBy));
    return std::min(pieces, kMostRows / piece_rows) * piece_rows;
  }

  /// From now on no more than `bytes`, whole pieces; rows beyond that go at once.
  void set_memory(const Space& space, std::int64_t bytes);
  /// Of rows and what they are found by.
  std::int64_t bytes() const;

  /// A fetch begins that asks others for wanted.ids[0 .. others), as group_by_owner has grouped
  /// them. `missed` becomes those that are not held; the others move behind these, leave the
  /// counts, and have their rows at the end of `arrived`, which grows for all. The host waits
  /// for the ids.
  template <class Id>
  void begin(const Space& space, OwnerGroups<Id, Space>& wanted, std::int64_t others,
             std::vector<std::int64_t>& missed, Array<Space, std::byte>& arrived);

  /// Rows that were missed have arrived, in their order.
  void end(const Space& space, std::span<const std::int64_t> missed, const Array<Space, std::byte>& arrived);

  /// Rows ids[k] are to be read to place k of `to`: those that are held are; the places of the
  /// others become `missed`.
  void begin_read(const Cpu& cpu, std::span<const std::int64_t> ids, std::vector<std::int64_t>& missed,
                  std::byte* to) requires std::is_same_v<Space, Cpu>;
  /// Those at the places `missed` are there, too.
  void end_read(const Cpu& cpu, std::span<const std::int64_t> ids, std::span<const std::int64_t> missed,
                const std::byte* from) requires std::is_same_v<Space, Cpu>;

 private:
  CachedRows rows() const { return {pieces_on_space_.data(), piece_rows_, row_bytes_}; }
  void have_pieces(const Space& space, std::int64_t slots);
  /// Of those admitted the row `missed` is at places[missed] of `from`; no places: at that itself.
  void take_up(const Space& space, std::span<const CachePolicy::Admission> admitted, const std::byte* from,
               std::span<const std::int64_t> places = {});

  CachePolicy policy_;
  std::int64_t row_bytes_, piece_rows_;
  std::vector<Array<Space, std::byte>> pieces_;
  Array<Space, std::byte*> pieces_on_space_;
};
using RowCache = RowCacheOn<Cpu>;

/// A cache that may hold so many rows.
struct CacheSize {
  std::int64_t rows, row_bytes;
};
/// What each of several caches gets of `bytes`: its share by the bytes that it could hold, in whole
/// pieces of all rows, no more than those.
inline std::vector<std::int64_t> cache_shares(std::span<const CacheSize> caches, std::int64_t bytes) {
  std::vector<double> most;
  double all = 0;
  for (const auto& cache : caches) {
    const auto row = static_cast<double>(cache.row_bytes + RowCache::kFoundBy);
    most.push_back(row * static_cast<double>(cache.rows + RowCache::kPieceRows));
    all += most.back();
  }
  const auto used = std::min(static_cast<double>(std::max<std::int64_t>(0, bytes)), all);
  std::vector<std::int64_t> shares;
  for (const auto one : most) shares.push_back(static_cast<std::int64_t>(used * (one / all)));
  return shares;
}

/// What caches of so many rows take at most, of `memory` bytes.
struct CacheBytes {
  double rows = 0, found_by = 0;  ///< and what they are found by
  double all() const { return rows + found_by; }
};
inline CacheBytes cache_bytes(double rows, double bytes_of_rows, double memory) {
  const double found_by = rows * static_cast<double>(RowCache::kFoundBy);
  const double fits = std::clamp(memory / std::max(1.0, bytes_of_rows + found_by), 0.0, 1.0);
  return {fits * bytes_of_rows, fits * found_by};
}

/// What a fetch looks into for rows of a table; null: nothing is kept.
template <class Space>
struct CachedCopiesOn {
  RowCacheOn<Space>* of_others = nullptr;  ///< before it asks for them
  RowCacheOn<Space>* of_disk = nullptr;    ///< before it reads them, or others' request does
};

}  // namespace espalier
