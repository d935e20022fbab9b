#include "espalier/feature/history_uses.hpp"

#include "history_index.hpp"

namespace espalier {

void HistoryUses::add(int layer, std::int64_t vertex, std::int64_t step) {
  const auto key = history_key(layer, vertex);
  if (std::ssize(chains_) == capacity_ && numbers_.find(key) < 0) {
    capacity_ *= 2;
    numbers_ = IdMap(capacity_);
    for (const auto& chain : chains_) numbers_.insert(chain.key);
  }
  const auto number = numbers_.insert(key);
  const auto use = std::ssize(uses_);
  if (number == std::ssize(chains_)) {
    chains_.push_back({key, use, use});
  } else {
    auto& chain = chains_[number];
    if (chain.first < 0)
      chain.first = use;
    else if (uses_[chain.last].step == step)
      return;
    else
      uses_[chain.last].next = use;
    chain.last = use;
  }
  uses_.push_back({step, -1});
}

bool HistoryUses::awaited(int layer, std::int64_t vertex, std::int64_t after, std::int64_t until) {
  if (until >= end_) return true;
  const auto number = numbers_.find(history_key(layer, vertex));
  if (number < 0) return false;
  auto& first = chains_[number].first;
  while (first >= 0 && uses_[first].step <= after) first = uses_[first].next;
  return first >= 0 && uses_[first].step <= until;
}

}  // namespace espalier
