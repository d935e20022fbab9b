// Exact evaluation: the network over the whole graph, layer by layer, without sampling.
//
// H[l] is spread over the grid like H[0]. For each layer the c ranks of a process row share their
// block row's vertices, work through their share in chunks (all neighbours, one fetch in the
// process column per chunk), and gather the block row along the process row. Memory: the blocks of
// H[l-1] and H[l], my share of H[l], one chunk (64 rows at least). Every row is computed by the
// same operations in the same order wherever it lies, so metrics do not depend on the grid.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>

#include "espalier/base/execution.hpp"
#include "espalier/feature/store.hpp"
#include "espalier/nn/network.hpp"
#include "espalier/sample/sampler.hpp"
#include "espalier/train/evaluation.hpp"
#include "espalier/train/task.hpp"

namespace espalier {

/// Rows of one chunk, the same on every rank: so many that their distinct neighbours, all remote at
/// worst, fit in `chunk_bytes` with `width` numbers each.
inline std::int64_t evaluation_chunk_rows(double mean_degree, std::int64_t width, std::int64_t chunk_bytes) {
  const double bytes_per_row = (mean_degree + 1) * (static_cast<double>(width) * 4 + 64);
  return std::max<std::int64_t>(64,
                                static_cast<std::int64_t>(static_cast<double>(chunk_bytes) / bytes_per_row));
}

template <class Space>
class EvaluatorOn {
 public:
  /// `whole_rows`: a sampler of one layer with fanout -1 over the matrix the network is trained on.
  /// All must outlive it. `chunk_bytes`: what one chunk's input rows may take.
  EvaluatorOn(const GridOn<Space>& grid, SamplerOn<Space>& whole_rows, const FeatureStoreOn<Space>& features,
              const TaskOn<Space>& task, std::int64_t edges, std::int64_t chunk_bytes);

  /// Collective over the grid. `goes_on` is asked when a chunk of a layer is done, on all ranks
  /// together; where it says false, on all of them, evaluation is given up, and there is no result.
  std::optional<Evaluation> evaluate(const Space& space, const Network<float, Space>& network,
                                     const std::function<bool()>& goes_on) const;
  /// The same, to its end.
  Evaluation evaluate(const Space& space, const Network<float, Space>& network) const {
    return *evaluate(space, network, {});
  }

 private:
  /// Memory that the layers of one evaluation use one after another.
  struct Scratch {
    std::vector<Matrix<float, Space>> rows;
    Matrix<float, Space> product;
  };

  std::optional<Matrix<float, Space>> compute_layer(const Space& space, const Network<float, Space>& network,
                                                    int layer, const FeatureStoreOn<Space>& input,
                                                    Scratch& scratch,
                                                    const std::function<bool()>& goes_on) const;
  std::int64_t chunk_rows(std::int64_t width) const;

  const GridOn<Space>& collectives_;
  const Grid& grid_;
  SamplerOn<Space>& whole_rows_;
  const FeatureStoreOn<Space>& features_;
  const TaskOn<Space>& task_;
  double mean_degree_;
  std::int64_t chunk_bytes_;
  RowPartition shares_;  ///< of my block row over the ranks of my process row, offsets relative
                         ///< to the block
};

using Evaluator = EvaluatorOn<Cpu>;

}  // namespace espalier
