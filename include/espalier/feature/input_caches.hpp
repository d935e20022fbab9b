// Caches of feature rows, of each table of features one of rows that other ranks own and one of
// rows on this rank's disk: their memory together, and what they are told of coming minibatches.
//
// Rows on disk come first: only what is left where all of a rank's own are kept is for rows of
// others. So where a cache of rows on disk has to choose, nothing is kept of other ranks' rows, and
// what others will ask of this rank is all that their minibatches read: they say so ahead.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "espalier/base/arrays.hpp"
#include "espalier/feature/input_stores.hpp"
#include "espalier/feature/row_cache.hpp"

namespace espalier {

/// What is kept, and by which rule.
struct CacheOptions {
  std::int64_t memory = 0;  ///< bytes; 0: nothing
  CacheRule rule = CacheRule::kDegree;
  /// Vertices, those whose rows are most worth keeping first; any may be left out.
  std::span<const std::int64_t> by_degree = {};
  bool of_others = true;  ///< rows of other ranks, too, and not of this rank's disk alone
};

/// The minibatches of a coming step.
template <class Space>
struct PrefetchedStepOn {
  std::int64_t fetch;  ///< the number of its fetch, of all that this run begins
  std::vector<MinibatchOn<Space>> minibatches;
};

template <class Space>
class InputCachesOn {
 public:
  /// None.
  InputCachesOn() = default;
  /// None where `options` has no memory; else they have none until set_memory. `input` must outlive
  /// it.
  InputCachesOn(const InputStoresOn<Space>& input, const CacheOptions& options)
      : input_(&input), copies_(input.features().size()) {
    const auto [memory, rule, by_degree, of_others] = options;
    if (memory == 0) return;
    for (std::size_t k = 0; k < copies_.size(); ++k) {
      const auto& storage = input.table(k).storage();
      if (of_others && storage.rows_elsewhere() > 0)
        copies_[k].of_others = make(others_, rule, k, of_table(k, by_degree, /*here=*/false));
      if (storage.on_disk()) copies_[k].of_disk = make(disk_, rule, k, of_table(k, by_degree, true));
    }
  }

  bool empty() const { return others_.empty() && disk_.empty(); }
  bool prefetches() const {
    return !empty() && (disk_.empty() ? others_ : disk_).front().cache->policy().prefetches();
  }
  /// One for each table.
  std::span<const CachedCopiesOn<Space>> of_tables() const& { return copies_; }
  void of_tables() const&& = delete;
  /// A fetch that looks into them.
  PendingInputOn<Space> pending() const { return PendingInputOn<Space>(copies_); }

  /// All together take no more from now on: those of rows on disk, then those of rows of others,
  /// each its share by the bytes that it could hold.
  void set_memory(const Space& space, std::int64_t bytes) {
    bytes -= share_out(space, disk_, bytes);
    share_out(space, others_, bytes);
  }
  /// Rows on disk are kept by somebody else for a while: until set_memory.
  void release_disk(const Space& space) { share_out(space, disk_, 0); }
  std::int64_t bytes() const {
    std::int64_t sum = 0;
    for (const auto* list : {&others_, &disk_})
      for (const auto& one : *list) sum += one.cache->bytes();
    return sum;
  }

  /// These will be fetched, each together. Collective over the process column, with the same steps
  /// on every rank. On a GPU the host waits. What ranks tell each other is counted under `label`.
  void prefetch(const Space& space, const std::vector<PrefetchedStepOn<Space>>& steps,
                std::string_view label) {
    for (const auto& one : others_)
      for (const auto& step : steps)
        each_list(space, one.table, step, [&](std::span<const std::int64_t> ids) {
          const auto& storage = input_->table(one.table).storage();
          std::vector<std::int64_t> elsewhere;
          std::ranges::copy_if(ids, std::back_inserter(elsewhere), [&](auto id) { return !storage.has(id); });
          one.cache->policy().prefetch(step.fetch, elsewhere);
        });
    if constexpr (std::is_same_v<Space, Cpu>)
      for (const auto& one : disk_) predict_reads(space, one, steps, label);
    for (const auto* list : {&others_, &disk_})
      for (const auto& one : *list) one.cache->policy().end_prefetch();
  }

 private:
  struct OfTable {
    std::unique_ptr<RowCacheOn<Space>> cache;
    std::size_t table;
    CacheSize size;
  };

  RowCacheOn<Space>* make(std::vector<OfTable>& list, CacheRule rule, std::size_t k,
                          std::vector<std::int64_t> by_degree) {
    const auto& storage = input_->table(k).storage();
    const auto rows = &list == &disk_ ? storage.rows_here() : storage.rows_elsewhere();
    list.push_back(
        {std::make_unique<RowCacheOn<Space>>(rule, storage.row_bytes()), k, {rows, storage.row_bytes()}});
    list.back().cache->policy().set_list(std::move(by_degree));
    return list.back().cache.get();
  }

  // Those of the vertices whose rows of a table are here, or are not, as a cache knows them.
  std::vector<std::int64_t> of_table(std::size_t k, std::span<const std::int64_t> vertices, bool here) const {
    const auto& table = input_->table(k);
    const auto& storage = table.storage();
    std::vector<std::int64_t> numbers;
    for (const auto vertex : vertices) {
      if (!table.held().holds(vertex)) continue;
      const auto number = table.held().number(vertex);
      if (storage.has(number) != here) continue;
      numbers.push_back(here ? storage.number_on_disk(storage.reach().local(number)) : number);
    }
    return numbers;
  }

  // What they take of it.
  std::int64_t share_out(const Space& space, const std::vector<OfTable>& list, std::int64_t bytes) const {
    std::vector<CacheSize> sizes;
    for (const auto& one : list) sizes.push_back(one.size);
    std::int64_t taken = 0;
    const auto shares = cache_shares(sizes, bytes);
    for (std::size_t k = 0; k < list.size(); taken += shares[k++])
      list[k].cache->set_memory(space, shares[k]);
    return taken;
  }

  template <class Visit>
  void each_list(const Space& space, std::size_t k, const PrefetchedStepOn<Space>& step, Visit visit) const {
    input_->with_lists(space, k, step.minibatches, [&](IdLists lists) {
      std::vector<std::int64_t> ids;
      for (const auto& list : lists) {
        ids.resize(list.size());
        copy_from(space, list.data(), std::ssize(list), ids.data());
        visit(ids);
      }
    });
  }

  // A fetch reads rows of this rank twice, unless every rank has all: those that others ask for,
  // then those of its own minibatches.
  void predict_reads(const Space& space, const OfTable& of, const std::vector<PrefetchedStepOn<Space>>& steps,
                     std::string_view label) {
    const auto& table = input_->table(of.table);
    const auto& storage = table.storage();
    auto& policy = of.cache->policy();
    const std::int64_t reads = storage.has_all() ? 1 : 2;
    std::vector<std::vector<std::vector<std::int64_t>>> asked(steps.size());  // by step and owner
    for (std::size_t s = 0; s < steps.size(); ++s) {
      asked[s].resize(static_cast<std::size_t>(storage.reach().parts()));
      each_list(space, of.table, steps[s], [&](std::span<const std::int64_t> ids) {
        std::vector<std::int64_t> mine;
        for (const auto id : ids)
          storage.has(id) ? mine.push_back(id) : asked[s][storage.reach().owner(id)].push_back(id);
        policy.prefetch(reads * (steps[s].fetch + 1) - 1, mine);
      });
    }
    if (reads == 1) return;
    const auto others = table.tell_owners(asked, label);
    for (std::size_t s = 0; s < steps.size(); ++s) policy.prefetch(2 * steps[s].fetch, others[s]);
  }

  const InputStoresOn<Space>* input_ = nullptr;
  std::vector<OfTable> others_, disk_;
  std::vector<CachedCopiesOn<Space>> copies_;
};

}  // namespace espalier
