#include "group_order.hpp"

#include <utility>

namespace espalier {

namespace {

// (j + u) / n of 2^64, where u is in 2^-32.
std::uint64_t time_of(std::int64_t j, std::uint32_t u, std::int64_t n) {
  const auto numerator = static_cast<unsigned __int128>(j) << 32 | u;
  return static_cast<std::uint64_t>((numerator << 32) / static_cast<unsigned __int128>(n));
}

// The bits of a 32-bit number in reverse.
std::uint32_t reversed(std::uint32_t x) {
  std::uint32_t y = 0;
  for (int bit = 0; bit < 32; ++bit, x >>= 1) y = y << 1 | (x & 1);
  return y;
}

}  // namespace

std::vector<GroupBatch> EpochBatches::order_by_group(std::span<const std::int64_t> begins,
                                                     const RandomStream& epoch) {
  const auto turn = random32(KeyedStream(epoch), 0);
  std::vector<GroupBatch> batches;
  for (std::int32_t group = 0; group + 1 < std::ssize(begins); ++group) {
    const auto begin = begins[group], size = begins[group + 1] - begin, count = count_batches(size, size_);
    const auto u = reversed(static_cast<std::uint32_t>(group)) + turn;
    for (std::int64_t j = 0; j < count; ++j)
      batches.push_back(
          {time_of(j, u, count), group, begin + size * j / count, begin + size * (j + 1) / count});
  }
  std::ranges::sort(batches, {}, [](const GroupBatch& b) { return std::pair(b.time, b.group); });
  begins_ = {0};
  for (const auto& batch : batches) {
    begins_.push_back(begins_.back() + batch.end - batch.begin);
    groups_.push_back(batch.group);
  }
  return batches;
}

}  // namespace espalier
