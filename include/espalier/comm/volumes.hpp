// What a collective books in the ledger (traffic.hpp), whichever library moves the data.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "espalier/comm/traffic.hpp"

namespace espalier {

/// A larger message travels in pieces of this size.
inline constexpr std::int64_t kPieceBytes = std::int64_t{1} << 30;

/// {0, counts[0], counts[0] + counts[1], ...} times `item`: where pieces of ranks begin and end.
inline std::vector<std::int64_t> begins_of(std::span<const std::int64_t> counts, std::size_t item = 1) {
  std::vector<std::int64_t> begins = {0};
  for (const auto count : counts) begins.push_back(begins.back() + count * static_cast<std::int64_t>(item));
  return begins;
}

/// Each rank with all others: the same bytes to each and from each.
inline Volume all_gather_volume(std::int64_t bytes, int ranks) {
  const std::int64_t crossing = bytes * (ranks - 1);
  return {.messages = ranks - 1, .bytes_sent = crossing, .bytes_received = crossing, .rounds = 1};
}

/// Of rank `rank` in an all-gather of `bytes[r]` of each rank r, a broadcast of each.
inline Volume all_gather_v_volume(std::span<const std::int64_t> bytes, int rank) {
  Volume volume{.rounds = 1};
  const auto others = static_cast<std::int64_t>(bytes.size()) - 1;
  for (std::size_t root = 0; root < bytes.size(); ++root) {
    if (bytes[root] == 0) continue;
    if (static_cast<int>(root) == rank) {
      volume.messages += others;
      volume.bytes_sent += bytes[root] * others;
    } else {
      volume.bytes_received += bytes[root];
    }
  }
  return volume;
}

inline Volume all_reduce_volume(std::int64_t bytes, int ranks) {
  const std::int64_t crossing = 2 * bytes * (ranks - 1) / ranks;
  return {.messages = 2 * (ranks - 1),
          .bytes_sent = crossing,
          .bytes_received = crossing,
          .rounds = ranks > 1 ? 1 : 0};
}

inline Volume broadcast_volume(std::int64_t bytes, int ranks, bool root) {
  return root ? Volume{.messages = ranks - 1, .bytes_sent = bytes * (ranks - 1), .rounds = 1}
              : Volume{.bytes_received = bytes, .rounds = 1};
}

/// Of rank `rank`; counts in items of `item` bytes.
inline Volume all_to_all_volume(std::span<const std::int64_t> send_counts,
                                std::span<const std::int64_t> receive_counts, std::size_t item, int rank) {
  Volume volume{.rounds = send_counts.size() > 1 ? 1 : 0};
  for (std::size_t peer = 0; peer < send_counts.size(); ++peer) {
    if (static_cast<int>(peer) == rank) continue;
    const std::int64_t sent = send_counts[peer] * static_cast<std::int64_t>(item);
    volume.messages += (sent + kPieceBytes - 1) / kPieceBytes;
    volume.bytes_sent += sent;
    volume.bytes_received += receive_counts[peer] * static_cast<std::int64_t>(item);
  }
  return volume;
}

}  // namespace espalier
