// Local ids of one batch: the places of global ids in its list of vertices, which grows by the new ones in
// ascending id.
//
// Two ways, by how many ids there could be for each pick:
//   marks     one bit per id of the graph, and for each word of bits how many are set before it. The new ids come
//             out sorted, and an id's place is found by its rank: random access stays in n / 8 bytes, which a cache
//             often holds, and threads can share the work.
//   hash      an open-addressing table for the batch's own ids, then a sort: for picks that are few in a large graph.
// Both give the same list. An object belongs to one caller and keeps its memory from batch to batch.
#pragma once

#include <cstdint>
#include <span>

#include "espalier/base/buffer.hpp"
#include "espalier/base/execution.hpp"

namespace espalier {

class LocalIds {
 public:
  /// For a graph of `ids` vertices.
  explicit LocalIds(std::int64_t ids) : ids_(ids) {}

  /// vertices: in, distinct ids; out, the same followed by the picks that it lacked, ascending. local[k] becomes
  /// the place of picks[k] in it. Fails when there are 2^31 places or more, or when an id comes twice in
  /// `vertices`.
  template <class Index>
  void extend(const Cpu& cpu, std::span<const Index> picks, Buffer<std::int64_t>& vertices,
              std::int32_t* local);

  /// What `extend` chooses by: is the way of marks the faster one?
  static bool prefers_marks(std::int64_t ids, std::int64_t touched) { return ids <= kIdsPerTouch * touched; }

 private:
  static constexpr std::int64_t kIdsPerTouch = 256;

  template <class Index>
  void extend_by_marks(const Cpu& cpu, std::span<const Index> picks, Buffer<std::int64_t>& vertices,
                       std::int32_t* local);
  std::int64_t rank_of(std::int64_t id) const;

  std::int64_t ids_;
  Buffer<std::uint64_t> known_, marked_;  // [ids / 64 + 1] one bit per id, all 0 between calls
  Buffer<std::int32_t> rank_;             // [ids / 64 + 1] marked ids before the word
  Buffer<std::int32_t> place_;            // [marked ids] by rank
};

}  // namespace espalier
