// A network over the whole graph, layer by layer: rows in, chunks, rows out.
//
//     H[0] = X                       stores of features and embeddings
//     H[l] = layer l of H[l-1]       all neighbours of every vertex, or those that a sampler draws
//     logits = H[L], or with jumping knowledge a linear layer of all H[l], as a stage of its own
//
// H[l] is spread over the grid like H[0]. For each layer the c ranks of a process row share their
// block row's vertices (Ownership::cut), and work through their share in chunks (all neighbours,
// one fetch in the process column per chunk); a sink takes the rows, chunk by chunk. Where the next
// layer reads them, the block row is gathered along the process row. Memory: the blocks of H[l-1]
// and H[l], my share of H[l], one chunk (64 rows at least); of the last layer only a chunk, if its
// sink keeps nothing. The blocks can lie in files instead (run.spill). Every row is computed by the
// same operations in the same order wherever it lies, so rows do not depend on the grid or on
// chunks; on a GPU that holds but for the rounding of products (nn/network.hpp).
//
// Exact evaluation (train/evaluator.hpp) and `espalier infer` are uses of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "espalier/base/execution.hpp"
#include "espalier/feature/input_caches.hpp"
#include "espalier/infer/evaluation_work.hpp"
#include "espalier/infer/row_sink.hpp"
#include "espalier/nn/network.hpp"
#include "espalier/sample/sampler.hpp"

namespace espalier {

/// What a pass may hold.
struct PassMemory {
  PassMemory(std::int64_t chunk, std::string folder = {}, std::int64_t cache = 0)
      : chunk_bytes(chunk), spill(std::move(folder)), cache_bytes(cache) {}

  std::int64_t chunk_bytes;  ///< for one chunk's input rows
  std::string spill;         ///< a folder for the rows of hidden layers, on CPUs; empty: in memory
  std::int64_t cache_bytes;  ///< for copies of rows on this rank's disk, those with most entries
};

template <class Space>
class LayerwisePassOn {
 public:
  using GoesOn = std::function<bool()>;
  using LayerIsDone = std::function<void(int layer)>;

  /// `sampler`: of one layer with fanout -1 over the matrix the network is trained on. It and the
  /// grid must outlive this. `ownership`: of the vertices by the block rows. `entries`: of that
  /// matrix's rows. `label`: under which traffic is counted.
  LayerwisePassOn(const GridOn<Space>& grid, SamplerOn<Space>& sampler, const Ownership& ownership,
                  const EntriesOfRows& entries, PassMemory memory, std::string label = "evaluate");

  /// Part r: the vertices whose rows rank r computes, its share of its block row.
  const Ownership& shares() const { return shares_; }
  /// From now on a pass begins after the first `done` layers: its input has the rows of the last of
  /// them, and their sinks get none. `is_done` is called, on all ranks together, when all rows of a
  /// hidden layer were given. Not with jumping knowledge.
  void begin_after(int done, LayerIsDone is_done) {
    done_ = done;
    is_done_ = std::move(is_done);
  }
  /// From now on a layer reads what the sampler, of all layers then, draws of it for each vertex on
  /// its own: by the seed, the layer and the vertex alone, as batch 0 of epoch 0, which no training
  /// has. So rows depend on the grid and on chunks as little as without.
  void draw_by(std::uint64_t seed) { seed_ = seed; }
  /// How many rows this rank computes.
  std::int64_t rows() const { return shares_.size(grid_.world().rank()); }

  /// Collective over the grid. Stages 1, 2, .. of the network (Network::stages) over H[0] =
  /// `input`, as many as there are sinks: sinks[l - 1] takes the rows of stage l, or is null;
  /// the last is not.
  /// `goes_on` may be empty; it is asked when a chunk of a layer is done, on all ranks together:
  /// where it says false, on all of them, the pass is given up, and so says the result. Throws
  /// UserError, on every rank: kUsage where rows cannot be spilled; kDiverged where a sink was
  /// given a number that is not finite, when its layer is done.
  bool run(const Space& space, const Network<float, Space>& network, const InputStoresOn<Space>& input,
           std::span<RowSinkOn<Space>* const> sinks, const GoesOn& goes_on) const;
  /// The same with rows that are given away: their memory is free after the first layer.
  bool run(const Space& space, const Network<float, Space>& network, InputStoresOn<Space>&& input,
           std::span<RowSinkOn<Space>* const> sinks, const GoesOn& goes_on) const;

 private:
  /// Memory that the layers of one pass use one after another.
  struct Scratch {
    InputMatrices<Space> rows;
    EdgesOn<Space> edges;
    std::shared_ptr<const EdgeStoreOn<Space>> edge_store;  ///< that every layer reads, or null
    LayerScratch<float, Space> layer;
    InputCachesOn<Space> caches;    ///< for what of the layer's input is on disk
    PendingInputOn<Space> pending;  ///< that looks into them
  };

  /// The blocks of a layer for a chunk, of this rank's chunk or none.
  std::vector<MinibatchOn<Space>> blocks_of(const Space& space, int layer, int layers,
                                            std::span<const SeedBatch> chunk) const;
  bool compute_layer(const Space& space, const Network<float, Space>& network, int layer,
                     const InputStoresOn<Space>& input, Scratch& scratch, RowSinkOn<Space>& sink,
                     const GoesOn& goes_on) const;
  /// Of my block row those with most entries first, `most` of them.
  std::vector<std::int64_t> vertices_by_entries(std::int64_t most) const;
  void make_caches(const Space& space, const InputStoresOn<Space>& input, Scratch& scratch) const;
  bool compute_layers(const Space& space, const Network<float, Space>& network,
                      const InputStoresOn<Space>& input, std::optional<InputStoresOn<Space>>& hidden,
                      std::span<RowSinkOn<Space>* const> sinks, const GoesOn& goes_on) const;
  /// My block row of the rows of a layer, on every rank from its share of it.
  Matrix<float, Space> gathered(Matrix<float, Space> mine) const;
  /// A layer whose rows the next one reads; nothing: given up.
  std::optional<RowStoreOn<Space>> compute_hidden(const Space& space, const Network<float, Space>& network,
                                                  int layer, const InputStoresOn<Space>& input,
                                                  Scratch& scratch, RowSinkOn<Space>* also,
                                                  const GoesOn& goes_on) const;

  const GridOn<Space>& collectives_;
  const Grid& grid_;
  SamplerOn<Space>& sampler_;
  Ownership ownership_, shares_;
  EntriesOfRows entries_;
  PassMemory memory_;
  std::string label_;
  std::optional<std::uint64_t> seed_ = {};
  int done_ = 0;
  LayerIsDone is_done_;
};
using LayerwisePass = LayerwisePassOn<Cpu>;

}  // namespace espalier
