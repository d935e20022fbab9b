// One cache of history for all ranks of a grid (history.scope = "grid"): each row is held once, by
// the rank that its vertex's shard is of.
//
// The 1,024 shards go to the p ranks in even ranges. So a shard is of one rank, which alone keeps
// its bound, and what is held depends neither on p nor on who owns which vertex. In a step
//
//     find    asks each rank which of my vertices of F[1] hit, in any layer: an id there, a byte
//             (a bit for each layer) back; F[l] is a prefix of F[1]
//     read    asks for the rows that are needed: a key there, a row as it is kept back
//     end     tells each rank which of its rows my batches write: key, score and batch there, a
//             byte back; rows that will be held follow (of one key the lowest batch's), and
//             evictions
//
// each once for all of a rank's batches, whose lists are put together first, by all-to-all-v over
// the whole grid. Bytes are booked under the caller's label beside what is expected of a rank where
// every rank does the same: keys lie evenly, as their shards are those of a hash.
//
// Law: hits, rows and contents are those of one HistoryCacheOn that all batches used, for every
// grid.
#pragma once

#include <string_view>

#include "espalier/comm/device_communicator.hpp"
#include "espalier/history/history_cache.hpp"
#include "espalier/product/schedule.hpp"

namespace espalier {

/// Rows of one layer that one batch needs.
template <class Space>
struct HistoryReadOn {
  int layer = 0;
  std::span<const std::int64_t> vertices;  ///< PrunedLayer::cached.vertices: memory of the space;
                                           ///< all hit
  Matrix<float, Space>* rows = nullptr;    ///< becomes [vertices.size(), width]
};

template <class Space>
class GridHistoryOn {
 public:
  /// The grid must stay. At most eight layers.
  GridHistoryOn(const GridOn<Space>& grid, const HistoryShape& shape);
  ~GridHistoryOn();

  const HistoryShape& shape() const { return part_.shape(); }
  /// What this rank holds.
  const HistoryCacheOn<Space>& part() const { return part_; }
  HistoryCacheOn<Space>& part() { return part_; }
  /// The rank that holds the rows of a vertex.
  int rank_of(std::int64_t vertex) const;
  int rank_of_shard(int shard) const { return rank_of_shard_[shard]; }

  /// As HistoryCacheOn::begin. Not collective; every rank does it before the step's `find`.
  void begin(const Space& space, std::int64_t step);

  /// Collective over the grid. found[b], resized, is of minibatches[b], with empty `slots`; a rank
  /// may have no minibatch. On a GPU the host waits for the vertices of each.
  void find(const Space& space, std::span<const MinibatchOn<Space>> minibatches,
            std::vector<HistoryFoundOn<Space>>& found, std::string_view label) const;

  /// Collective over the grid, before the next `begin`: rows of all batches and layers of
  /// this rank.
  /// On a GPU the host waits for each list of vertices.
  void read(const Space& space, std::span<const HistoryReadOn<Space>> wanted, std::string_view label) const;

  /// As those of HistoryCacheOn; not collective. They are sent at the end of the step.
  void write(const Space& space, std::int64_t step, std::int64_t batch, int layer,
             std::span<const HistoryWrite> writes, ConstMatrixView<float, Space> rows);
  void evict(std::int64_t step, int layer, std::span<const std::int64_t> vertices);

  /// Collective over the grid: all batches of all ranks have written.
  void end(const Space& space, std::int64_t step, std::string_view label);

  /// As HistoryCacheOn::restore, of the rows that this rank holds: of the shards that rank_of
  /// says. Not collective.
  void restore(const Space& space, std::int64_t next, std::span<const HistoryRecord> records,
               const std::uint32_t* words);

 private:
  struct Outgoing;

  const GridOn<Space>* grid_;
  HistoryCacheOn<Space> part_;
  std::vector<int> rank_of_shard_;
  std::unique_ptr<Outgoing> outgoing_;
};
using GridHistory = GridHistoryOn<Cpu>;

/// Bytes of a key, and of what travels beside a written row: key, score, batch.
inline constexpr double kHistoryKeyBytes = 8, kHistoryWriteBytes = 24;

/// Of distinct items that go to their shards' ranks, and of what comes back for each: counts,
/// items, answers. To find, an id goes and a byte comes; to read, a key goes and a row comes.
inline Cost history_request_cost(int ranks, double items, double answer_bytes) {
  const double others = ranks - 1;
  return {3 * others, 8 * others + items * others / ranks * (kHistoryKeyBytes + answer_bytes),
          ranks > 1 ? 3.0 : 0.0};
}

/// Rows that are written, of which those that will be held travel, and rows that are evicted:
/// counts of both, what stands beside the rows, a byte for each back, the rows, keys.
inline Cost history_write_cost(int ranks, double writes, double rows, double evictions, double row_bytes) {
  const double others = ranks - 1;
  return {
      6 * others,
      16 * others + others / ranks *
                        (writes * (kHistoryWriteBytes + 1) + rows * row_bytes + evictions * kHistoryKeyBytes),
      ranks > 1 ? 6.0 : 0.0};
}

}  // namespace espalier
