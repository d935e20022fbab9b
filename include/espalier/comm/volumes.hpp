// What a collective books in the ledger (traffic.hpp), whichever library moves the data.
#pragma once

#include <cstdint>
#include <span>

#include "espalier/comm/traffic.hpp"

namespace espalier {

/// A larger message travels in pieces of this size.
inline constexpr std::int64_t kPieceBytes = std::int64_t{1} << 30;

inline Volume all_reduce_volume(std::int64_t bytes, int ranks) {
  const std::int64_t crossing = 2 * bytes * (ranks - 1) / ranks;
  return {.messages = 2 * (ranks - 1), .bytes_sent = crossing, .bytes_received = crossing};
}

inline Volume broadcast_volume(std::int64_t bytes, int ranks, bool root) {
  return root ? Volume{.messages = ranks - 1, .bytes_sent = bytes * (ranks - 1)}
              : Volume{.bytes_received = bytes};
}

/// Of rank `rank`; counts in items of `item` bytes.
inline Volume all_to_all_volume(std::span<const std::int64_t> send_counts,
                                std::span<const std::int64_t> receive_counts, std::size_t item, int rank) {
  Volume volume;
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
