#include "espalier/history/held_rows.hpp"

#include <algorithm>
#include <bit>

#include "espalier/base/error.hpp"

namespace espalier {

std::vector<HeldHistory> count_held(const Communicator& world, std::span<const HeldRow> held) {
  constexpr int kAges = 63;  // of floor(log2(age))
  std::int64_t last = 0;
  for (const auto& row : held) last = std::max<std::int64_t>(last, row.layer);
  const auto layers = static_cast<int>(world.all_reduce(last, Reduction::kMax, "report")) + 1;
  std::vector<std::int64_t> rows(static_cast<std::size_t>(layers * kAges));  // [layers, ages]
  for (const auto& row : held) {
    ESPALIER_CHECK(row.age > 0, "a row of age {}", row.age);
    ++rows[row.layer * kAges + std::bit_width(static_cast<std::uint64_t>(row.age)) - 1];
  }
  world.all_reduce(std::span(rows), Reduction::kSum, "report");
  std::vector<HeldHistory> all;
  for (int layer = 0; layer < layers; ++layer)
    for (int age = 0; age < kAges; ++age)
      if (const auto count = rows[layer * kAges + age]; count > 0)
        all.push_back({layer, std::int64_t{1} << age, (std::int64_t{1} << (age + 1)) - 1, count});
  return all;
}

}  // namespace espalier
