// Caches of feature rows, one for each table of features that has rows of other ranks: their memory
// together, and what they are told of coming minibatches.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "espalier/base/arrays.hpp"
#include "espalier/feature/input_stores.hpp"
#include "espalier/feature/row_cache.hpp"

namespace espalier {

template <class Space>
class InputCachesOn {
 public:
  /// None.
  InputCachesOn() = default;
  /// `by_degree`: vertices, the largest degree first; any others may be left out. `input` must
  /// outlive it.
  InputCachesOn(const InputStoresOn<Space>& input, RowRule rule, std::span<const std::int64_t> by_degree)
      : input_(&input) {
    for (std::size_t k = 0; k < input.features().size(); ++k) {
      const auto& table = input.table(k);
      of_tables_.push_back(nullptr);
      if (table.storage().rows_elsewhere() == 0) continue;
      of_tables_.back() =
          caches_.emplace_back(std::make_unique<RowCacheOn<Space>>(rule, table.storage().row_bytes())).get();
      std::vector<std::int64_t> list;
      for (const auto vertex : by_degree)
        if (table.held().holds(vertex) && !table.storage().has(table.held().number(vertex)))
          list.push_back(table.held().number(vertex));
      of_tables_.back()->policy().set_list(std::move(list));
    }
  }

  bool empty() const { return caches_.empty(); }
  bool foresees() const { return !empty() && caches_.front()->policy().foresees(); }
  /// One for each table, or null.
  std::span<RowCacheOn<Space>* const> of_tables() const { return of_tables_; }

  /// All together take no more from now on, each its share by the bytes that it could hold.
  void set_memory(const Space& space, std::int64_t bytes) {
    double all = 0;
    for (std::size_t k = 0; k < of_tables_.size(); ++k) all += most(k);
    for (std::size_t k = 0; k < of_tables_.size(); ++k)
      if (of_tables_[k] != nullptr)
        of_tables_[k]->set_memory(space,
                                  static_cast<std::int64_t>(static_cast<double>(bytes) * (most(k) / all)));
  }
  std::int64_t bytes() const {
    std::int64_t sum = 0;
    for (const auto& cache : caches_) sum += cache->bytes();
    return sum;
  }

  /// These will be fetched together, so many fetches after the next one. On a GPU the host waits.
  void foresee(const Space& space, std::int64_t ahead, std::span<const MinibatchOn<Space>> minibatches) {
    for (std::size_t k = 0; k < of_tables_.size(); ++k) {
      if (of_tables_[k] == nullptr) continue;
      const auto& table = input_->table(k);
      input_->with_lists(space, k, minibatches, [&](IdLists lists) {
        std::vector<std::int64_t> ids;
        for (const auto& list : lists) {
          ids.resize(list.size());
          copy_from(space, list.data(), std::ssize(list), ids.data());
          std::erase_if(ids, [&](std::int64_t id) { return table.storage().has(id); });
          of_tables_[k]->policy().foresee(ahead, ids);
        }
      });
    }
  }
  /// All that is known was said.
  void settle() {
    for (const auto& cache : caches_) cache->policy().settle();
  }

 private:
  double most(std::size_t k) const {
    if (of_tables_[k] == nullptr) return 0;
    const auto& table = input_->table(k);
    return static_cast<double>(table.storage().rows_elsewhere()) *
           static_cast<double>(table.storage().row_bytes() + RowCacheOn<Space>::kFoundBy);
  }

  const InputStoresOn<Space>* input_ = nullptr;
  std::vector<std::unique_ptr<RowCacheOn<Space>>> caches_;
  std::vector<RowCacheOn<Space>*> of_tables_;
};

}  // namespace espalier
