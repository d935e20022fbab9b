#include "espalier/partition/row_holders.hpp"

#include "espalier/base/error.hpp"

namespace espalier {

RowHolders::RowHolders(std::int64_t n, int parts) : n_(n), parts_(parts) {
  ESPALIER_CHECK(parts >= 1 && parts <= kMostHolders, "{} holders of rows", parts);
  codes_.of_rows.wide.reserve(n);
}

void RowHolders::append(std::span<std::uint64_t> sets) {
  constexpr std::size_t kMostSets = std::size_t{1} << 16;
  const auto code_of = [&](std::uint64_t set) {
    const auto [at, is_new] = code_of_.try_emplace(set, static_cast<std::uint16_t>(codes_.sets.size()));
    if (is_new) codes_.sets.push_back(set);
    return at->second;
  };
  const auto all = ~std::uint64_t{0} >> (64 - parts_);
  for (auto& set : sets) {
    // The last code is kept for the set of all parts.
    if (codes_.sets.size() + 1 >= kMostSets && !code_of_.contains(set)) set = all;
    codes_.of_rows.wide.push_back(code_of(set));
  }
}

void RowHolders::finish() {
  ESPALIER_CHECK(std::ssize(codes_.of_rows.wide) == n_, "holders of {} rows of {}",
                 codes_.of_rows.wide.size(), n_);
  code_of_.clear();
  if (codes_.sets.size() > 1 << 8) return;
  codes_.of_rows.narrow.assign(codes_.of_rows.wide.begin(), codes_.of_rows.wide.end());
  codes_.of_rows.wide = {};
}

PartMarks<Cpu> RowHolders::marks(int part) const {
  const auto holders = of();
  return make_marks(n_, [&](std::int64_t v) { return (holders(v) >> part & 1) != 0; });
}

std::int64_t RowHolders::bytes() const {
  return std::ssize(codes_.of_rows.narrow) + 2 * std::ssize(codes_.of_rows.wide) +
         8 * std::ssize(codes_.sets);
}

}  // namespace espalier
