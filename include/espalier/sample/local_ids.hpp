// Local ids of a batch: places of global ids in its list of vertices, which grows by new ones.
//
// Two ways, by how many ids there could be for each pick:
//   marks     one bit per id of the graph, and for each word of bits how many are set before it.
//             The new ids come out sorted, and an id's place is found by its rank: random access
//             stays in n / 8 bytes, which a cache often holds, and threads can share the work.
//   hash      an open-addressing table for the batch's own ids, then a sort: for picks that are few
//             in a large graph.
// Both give the same list.
//
// A GPU works on all batches of a call at once, with one bit per id of the graph and batch, for
// what a batch knew before and for what is new. Counters, one for every 256 ids, say how many bits
// of either kind lie before: a new id comes behind all known ones at its rank among the new ones, a
// known id keeps its place, which is found by its rank among the known ones. So the lists come out
// as the CPU's do, whatever the order of threads. Batches go in groups whose bits fit a budget.
#pragma once

#include <cstdint>
#include <span>

#include "espalier/base/buffer.hpp"
#include "espalier/base/execution.hpp"
#include "espalier/product/product.hpp"

namespace espalier {

/// F[l-1] of F[l]: every batch's list followed by those of its picks that it lacked, ascending.
/// Batch b has the picks picks[offsets[b] .. offsets[b+1]), global ids in any order and any number
/// of times; local[k] becomes the place of pick k in the new list of its batch. For a graph of
/// `ids` vertices. Fails when a batch has 2^31 places or more, or a vertex twice. On a GPU `budget`
/// bounds the bytes for the bits of a group of batches, 0: a default; the host waits once for each.
template <class Index>
Frontier extend(const Cpu& cpu, std::int64_t ids, const Frontier& frontier, const Index* picks,
                const SharedList<std::int64_t>& offsets, std::int32_t* local);
template <class Index>
FrontierOn<Cuda> extend(const Cuda& cuda, std::int64_t ids, const FrontierOn<Cuda>& frontier,
                        const Index* picks, const SharedList<std::int64_t, Cuda>& offsets,
                        std::int32_t* local, std::int64_t budget = 0);

/// The lists of one caller, on the CPU; memory is kept from batch to batch.
class LocalIds {
 public:
  /// For a graph of `ids` vertices.
  explicit LocalIds(std::int64_t ids) : ids_(ids) {}

  /// vertices: in, distinct ids; out, the same followed by the picks that it lacked, ascending.
  /// local[k] becomes the place of picks[k] in it. Fails as above.
  template <class Index>
  void extend(const Cpu& cpu, std::span<const Index> picks, Buffer<std::int64_t>& vertices,
              std::int32_t* local);

  std::int64_t ids() const { return ids_; }

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

/// The calling thread's, for a graph of `ids` vertices.
LocalIds& kept_local_ids(std::int64_t ids);

/// The threads for work on so many picks: waking them costs what thousands of picks do.
inline Cpu threads_for(const Cpu& cpu, std::int64_t picks) {
  constexpr std::int64_t kManyPicks = 1 << 17;
  return picks < kManyPicks ? Cpu{1} : cpu;
}

}  // namespace espalier
