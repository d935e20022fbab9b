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
  PartMarks<Cpu> marks;
  marks.words.assign((n_ + 63) / 64, 0);
  marks.before.resize(marks.words.size());
  std::int64_t count = 0;
  for (std::int64_t word = 0; word < std::ssize(marks.words); ++word) {
    std::uint64_t bits = 0;
    for (auto v = 64 * word; v < std::min(64 * word + 64, n_); ++v)
      bits |= std::uint64_t{owner(v) == part} << (v % 64);
    marks.words[word] = bits;
    marks.before[word] = count;
    count += std::popcount(bits);
  }
  return marks;
}

const PartMarks<Cpu>& OwnerMap::marks(int part) const {
  const std::lock_guard lock(mutex_);
  auto& kept = kept_[part];
  if (kept == nullptr) kept = std::make_unique<const PartMarks<Cpu>>(make_marks(part));
  return *kept;
}

}  // namespace espalier
