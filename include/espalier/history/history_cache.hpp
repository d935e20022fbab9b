// A cache of embeddings: rows of H[l], l = 1 .. L-1, that were computed in earlier steps (FreshGNN,
// sections 4.1 and 4.2), by layer and vertex.
//
// A row is stamped with the step that computed it. Step t
//
//     sees      what is there after step t - 2, for all of its batches: a snapshot
//     hits      the rows among them whose age t - stamp is at most t_stale: exact, no ring
//     writes    rows, with stamp t; of several batches' rows for one key the lowest batch's stays
//     evicts    rows it has seen; not if they were written anew since
//
// (of the rows that could hit a share may be drawn that does not: `recompute`)
//
// so a row is two steps old when it is first read, and with a t_stale below 2 nothing ever hits. A
// step may begin before the one before it has ended. When step t commits, its evictions go first,
// then its writes, then rows too old for any later step, then what is too much: `entries` are
// spread over 1,024 shards by a hash of the vertex, and of each shard the oldest go first, of one
// age those with the largest score, then the smallest (layer, vertex).
//
// Law: what is held, and every bit read, is a function of the steps' writes and evictions only: not
// of the space, of who holds which shards, of when steps are handed over.
//
// This is the cache of one *lane* (history.scope = "lane": each of a step's batches has its own),
// or the part of the grid's one that a rank holds (history/grid_history.hpp). What is held is known
// to the host; rows are memory of the space.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "espalier/base/host_device.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/sample/minibatch.hpp"

namespace espalier {

/// How rows are kept, and sent. kUint8: lo = min(0, least), hi = max(0, largest) of the row, and of
/// each element the nearest of lo + q (hi - lo) / 255, by integers q: with ReLU, where lo = 0, the
/// error is at most hi / 510 (and what float32 rounds). A row with an infinity or without a number
/// is read as no numbers.
enum class HistoryPrecision { kFloat32, kFloat16, kUint8 };

/// "fp32", "fp16" or "uint8"; throws UserError(kUsage) for another word.
HistoryPrecision history_precision_of(const std::string& name);

/// Of one row: 4 f, 2 f, or f + 8, as multiples of 4.
std::int64_t history_row_bytes(HistoryPrecision precision, std::int64_t width);

inline constexpr int kHistoryShards = 1024;

/// The shard that a vertex is of, in every layer.
inline int history_shard(std::int64_t vertex) {
  return static_cast<int>(mix(static_cast<std::uint64_t>(vertex)) >> 54);
}

/// Step t sees what is there after step t - 1 - kHistoryLag.
inline constexpr int kHistoryLag = 1;

struct HistoryShape {
  int layers = 1;          ///< hidden layers, L-1: rows of 1 .. L-1 are kept
  std::int64_t width = 0;  ///< of H[l], for all of them
  HistoryPrecision precision = HistoryPrecision::kFloat32;
  std::int64_t t_stale = 200;
  std::int64_t entries = 0;     ///< rows of all layers, all shards together; 0: as many as come
  std::uint64_t recompute = 0;  ///< of 2^32: the share of hits that are computed all the same
  std::uint64_t seed = 0;       ///< of the draws that say which
};

/// Is a row that hits computed all the same? An independent draw for each (step, batch, layer,
/// vertex).
bool computes_anyway(const HistoryShape& shape, std::int64_t step, std::int64_t batch, int layer,
                     std::int64_t vertex);

/// One row that a batch writes.
struct HistoryWrite {
  std::int64_t vertex = 0;
  std::uint64_t score = 0;  ///< of HistoryCandidate (history/history_policy.hpp)
  std::int64_t row = 0;     ///< of the matrix that is handed over
};

/// What a list of a minibatch hits: memory of the space.
template <class Space>
struct HistoryFoundOn {
  std::vector<Array<Space, std::uint8_t>> hits;        ///< [L-1] of layer l at l-1: [|F[l]|]
  std::vector<Array<Space, std::int32_t>> slots;       ///< beside them: where the row is, or -1
  std::vector<Array<Space, std::uint8_t>> recomputed;  ///< beside them, not 0: could hit, and is
                                                       ///< computed; empty where none is to be

  HistoryFoundOn() = default;
  explicit HistoryFoundOn(std::size_t layers) : hits(layers), slots(layers), recomputed(layers) {}

  /// As prune (history/prune.hpp) takes them.
  std::vector<std::span<const std::uint8_t>> spans() const& {
    std::vector<std::span<const std::uint8_t>> all;
    for (const auto& of_layer : hits) all.emplace_back(of_layer.data(), of_layer.size());
    return all;
  }
  void spans() const&& = delete;
};

/// What a cache knows of a row, as a checkpoint sees it: the row is held, or a step that has not
/// committed will write or drop it.
struct HistoryRecord {
  enum class Kind : std::uint8_t { kHeld, kWritten, kDropped };

  Kind kind = Kind::kHeld;
  int layer = 0;
  std::int64_t vertex = 0;
  std::int64_t stamp = 0;   ///< the step that computed the row, or drops it
  std::int64_t batch = 0;   ///< of kWritten: which the step's order of batches knows
  std::uint64_t score = 0;  ///< not of kDropped
  std::int64_t place = -1;  ///< where its words lie: meant for the cache that said so

  /// The order of records in a cache; each is there once.
  auto order() const { return std::tuple(kind, kind == Kind::kHeld ? 0 : stamp, layer, vertex); }
  friend bool operator==(const HistoryRecord& a, const HistoryRecord& b) {
    return std::tie(a.kind, a.layer, a.vertex, a.stamp, a.batch, a.score) ==
           std::tie(b.kind, b.layer, b.vertex, b.stamp, b.batch, b.score);
  }
};

template <class Space>
class HistoryCacheOn {
 public:
  explicit HistoryCacheOn(const HistoryShape& shape);
  ~HistoryCacheOn();
  HistoryCacheOn(HistoryCacheOn&&) noexcept;
  HistoryCacheOn& operator=(HistoryCacheOn&&) noexcept;

  const HistoryShape& shape() const { return shape_; }
  /// uint32 per row.
  std::int64_t row_words() const { return history_row_bytes(shape_.precision, shape_.width) / 4; }
  /// Rows that can be read.
  std::int64_t size() const;
  /// Of rows and what they are found by; uncommitted steps too.
  std::int64_t bytes() const;

  // ---- A step, in this order. Of steps under way at once (overlap) begin(t + 1) may come before
  // ---- end(t). None is collective.

  /// Commits all steps before t - 1, which must have ended. From here on `find` and `read` are of
  /// step t. Steps ascend from 0; numbers may be left out.
  void begin(const Space& space, std::int64_t step);

  /// The hits of the lists F[1] .. F[L-1] of a minibatch. On a GPU the host waits once, for
  /// the vertices.
  HistoryFoundOn<Space> find(const Space& space, const MinibatchOn<Space>& minibatch) const;

  /// rows [positions.size(), width], resized, in float32: of the hits at these positions of F[l],
  /// as PrunedLayer::cached.positions names them. Before the next `begin`. The host does not wait.
  void read(const Space& space, const HistoryFoundOn<Space>& found, int layer,
            std::span<const std::int64_t> positions, Matrix<float, Space>& rows) const;

  /// Rows of H[layer] that a batch of a step, begun and not ended, writes: writes[k].row of `rows`
  /// [any, width], as they are before dropout. `batch` orders the batches of the step.
  void write(const Space& space, std::int64_t step, std::int64_t batch, int layer,
             std::span<const HistoryWrite> writes, ConstMatrixView<float, Space> rows);
  /// Rows of H[layer] that a batch of the step has seen and drops.
  void evict(std::int64_t step, int layer, std::span<const std::int64_t> vertices);
  /// All batches of the step have written.
  void end(std::int64_t step);

  // ---- For a grid of them, by key, on the host ------------------------------------------------

  /// The slot of a row that the step begun last hits, or -1; and how old that row is.
  std::int64_t slot_of(int layer, std::int64_t vertex) const;
  std::int64_t age_of(std::int64_t slot) const;
  std::int64_t step() const { return step_; }  ///< begun last
  /// words [slots.size(), row_words()] of the space = the rows as they are kept.
  void copy_kept(const Space& space, std::span<const std::int64_t> slots, std::uint32_t* words) const;
  /// Rows as they are kept; those that `write` would make of a row of float32. words
  /// [writes.size(), row_words()].
  void write_kept(std::int64_t step, std::span<const HistoryRecord> writes,
                  Array<Space, std::uint32_t> words);

  /// What step `next` may read: of records(space, next) those that are held and not too old. In no
  /// order.
  std::vector<HistoryRecord> readable(const Space& space, std::int64_t next);

  // ---- State ----------------------------------------------------------------------------------

  /// What step `next` finds, and what waits behind that, in their order: the same whether it has
  /// begun or not. All steps before `next` must have ended, and none after it may have begun.
  std::vector<HistoryRecord> records(const Space& space, std::int64_t next);
  /// words [records.size(), row_words()] of the host: the rows of those records as they are kept;
  /// zeros for kDropped. Before the next `begin` or `end`.
  void read_records(const Space& space, std::span<const HistoryRecord> records, std::uint32_t* words) const;
  /// Instead of all that is held: records of any caches, in any order, each once, and their rows
  /// as read_records gives them. The step that begins next is `next`.
  void restore(const Space& space, std::int64_t next, std::span<const HistoryRecord> records,
               const std::uint32_t* words);

 private:
  struct Kept;

  void commit_for(const Space& space, std::int64_t next);
  std::vector<HistoryRecord> held(const Space& space, std::int64_t next);

  HistoryShape shape_;
  std::unique_ptr<Kept> kept_;
  std::int64_t step_ = -1;  ///< begun last
};
using HistoryCache = HistoryCacheOn<Cpu>;

}  // namespace espalier
