#include "espalier/partition/owner_map.hpp"

#include <algorithm>

namespace espalier {

std::int64_t vertex_at(const PartMarks<Cpu>& marks, std::int64_t k) {
  // The last word before which there are at most k marks has the one.
  const auto word = std::ranges::upper_bound(marks.before, k) - marks.before.begin() - 1;
  auto rest = marks.words[word];
  for (auto skipped = k - marks.before[word]; skipped > 0; --skipped) rest &= rest - 1;
  return 64 * word + std::countr_zero(rest);
}

PartMarks<Cpu> OwnerMap::make_marks(int part) const {
  return espalier::make_marks(n_, [&](std::int64_t v) { return owner(v) == part; });
}

const PartMarks<Cpu>& OwnerMap::marks(int part) const {
  const std::lock_guard lock(mutex_);
  auto& kept = kept_[part];
  if (kept == nullptr) kept = std::make_unique<const PartMarks<Cpu>>(make_marks(part));
  return *kept;
}

}  // namespace espalier
