// Rows on disk that a rank reads as those it has; and the rows of a node's ranks, in the order of
// their ids, in memory that all of them read.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "espalier/base/clock.hpp"
#include "espalier/base/error.hpp"
#include "espalier/feature/disk_rows.hpp"
#include "espalier/feature/row_cache.hpp"
#include "espalier/feature/row_storage.hpp"

namespace espalier {

// ---- on disk ----

template <class Space>
RowStorageOn<Space>::RowStorageOn(Ownership owners, int part,
                                  std::shared_ptr<const DiskRows> disk) requires std::is_same_v<Space, Cpu>
    : reach_(std::move(owners)),
      part_(part),
      rows_(disk->form(), 0),
      disk_(std::move(disk)),
      by_place_(disk_->by_place()) {}

template <class Space>
void RowStorageOn<Space>::begin_read(const Cpu& cpu, std::span<const std::int64_t> places, std::byte* to,
                                     RowCache* cache,
                                     DiskRead& read) const requires std::is_same_v<Space, Cpu> {
  read.wait();
  read.cache_ = cache;
  read.to_ = to;
  read.waited_ = 0;
  read.numbers_.clear();
  for (const auto place : places) read.numbers_.push_back(number_on_disk(place));
  if (cache != nullptr) {
    cache->begin_read(cpu, read.numbers_, read.missed_, to);
  } else {
    read.missed_.resize(places.size());
    std::iota(read.missed_.begin(), read.missed_.end(), std::int64_t{0});
  }
  read.reading_ =
      std::async(std::launch::async, [disk = disk_, cpu, &read, to, missed = read.missed_]() mutable {
        const double begin = now();
        read.bytes_ = disk->read(cpu, read.numbers_, missed, to);
        read.seconds_ = now() - begin;
      });
}

void DiskRead::wait() {
  if (!reading_.valid()) return;
  const double begin = now();
  reading_.get();
  waited_ += now() - begin;
}

DiskCounts DiskRead::finish(const Cpu& cpu) {
  wait();
  if (cache_ != nullptr) cache_->end_read(cpu, numbers_, missed_, to_);
  return {std::ssize(numbers_), std::ssize(missed_), bytes_, seconds_, waited_};
}

// ---- of a node ----

namespace {

constexpr std::int64_t kPieceBytes = std::int64_t{2} << 20;  // a huge page

// Whole pages of an array that nobody reads again go back to the system.
void give_up(const std::byte* begin, const std::byte* end) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = (reinterpret_cast<std::uintptr_t>(begin) + page - 1) / page * page;
  const auto last = reinterpret_cast<std::uintptr_t>(end) / page * page;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

// Moves the rows of a part to their places among those of `reach`; no time has both in memory. The
// ranks that have them, of which this is number `taker`, take turns at their pieces: a page lies
// near the cores of the rank that wrote it, and all will read it.
void move_rows(const Ownership& from, int part, StoredRows<Cpu>& rows, const Ownership& reach, int taker,
               int takers, std::byte* to) {
  const auto bytes = rows.form.row_bytes();
  std::int64_t place = 0, given_up = 0;
  for (const auto& range : from.vertices(part, {0, from.size(part)})) {
    const auto at = reach.local(range.begin);
    for (std::int64_t k = 0; k < range.size(); ++k, ++place) {
      if (place * bytes / kPieceBytes % takers == taker)
        std::copy_n(rows.row(place), bytes, to + (at + k) * bytes);
      if ((place + 1 - given_up) * bytes < kPieceBytes) continue;
      give_up(rows.row(given_up), rows.row(place + 1));
      given_up = place + 1;
    }
  }
}

}  // namespace

template <class Space>
bool RowStorageOn<Space>::share(const Communicator& node,
                                const Communicator& world) requires std::is_same_v<Space, Cpu> {
  ESPALIER_CHECK(!shared_, "rows that are shared already{}", "");
  const auto parts = node.all_gather(part_, "setup");
  const auto reached = static_cast<int>(std::set<int>(parts.begin(), parts.end()).size());
  const bool all = world.all_reduce(reached, Reduction::kMin, "setup") == reach_.parts();
  auto reach = all ? Ownership(block_partition(reach_.rows(), 1)) : reach_.gathered(parts, part_);
  const int part = all ? 0 : part_;
  const auto before = std::span(parts).first(static_cast<std::size_t>(node.rank()));
  const auto taker = static_cast<int>(std::ranges::count(before, part_)),
             takers = static_cast<int>(std::ranges::count(parts, part_));
  const auto form = rows_.form;
  std::shared_ptr<NodeMemory> memory = NodeMemory::make(node, reach.size(part) * form.row_bytes());
  if (world.all_reduce(std::int64_t{memory != nullptr}, Reduction::kMin, "setup") == 0) return false;
  move_rows(reach_, part_, rows_, reach, taker, takers, memory->data());
  rows_ = {form, reach.size(part), std::move(memory)};
  node.barrier();
  reach_ = std::move(reach);
  part_ = part;
  parts_here_ = reached;
  shared_ = true;
  return true;
}

template RowStorage::RowStorageOn(Ownership, int, std::shared_ptr<const DiskRows>);
template void RowStorage::begin_read(const Cpu&, std::span<const std::int64_t>, std::byte*, RowCache*,
                                     DiskRead&) const;
template bool RowStorage::share(const Communicator&, const Communicator&);

}  // namespace espalier
