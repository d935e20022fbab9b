// Layer-wise sampling: one set of vertices per batch and layer, shared by all its frontier.
//
//     picks   = the sampler's own part: up to s columns of M with a factor each
//     B       = EXTRACT(M, F, picks)     all entries of the frontier's rows in those columns (block diagonal over
//                                        batches), each times its column's factor
//     F[l-1]  = F[l] followed by the new vertices in ascending id
//
// M is the matrix that the block stands for (DistCsr with values): the row-normalised A of a mean, the
// symmetrically normalised A + I of a GCN, the row-normalised A + I of mode `reference`. Nothing as long as a
// row of M is wide is ever held per batch: memory is O(entries of the frontier + k s).
#pragma once

#include <memory>
#include <vector>

#include "espalier/base/philox.hpp"
#include "espalier/product/product.hpp"
#include "espalier/sample/block_value.hpp"
#include "espalier/sample/sampler.hpp"
#include "extract.hpp"

namespace espalier {

/// The columns of one batch and layer.
template <class Index>
struct LayerPicks {
  Buffer<Index> columns;        ///< ascending global ids
  std::vector<double> factors;  ///< of each column's entries
};

/// Where the picks of a layer come from.
template <class Index>
class LayerDistribution {
 public:
  virtual ~LayerDistribution() = default;

  /// Before the layers of a bulk: `streams[b]` is keyed by seed, epoch and batch. Collective over the grid.
  virtual void begin(const Cpu& cpu, std::span<const RandomStream> streams,
                     std::span<const std::int64_t> fanout) = 0;

  /// The picks of every batch in `layer` (counting down), where `minibatches[b].vertices` is F[layer] and
  /// `streams[b]` is keyed by seed, epoch, batch and layer. Collective over the grid.
  virtual std::vector<LayerPicks<Index>> pick(const Cpu& cpu, Product<Index>& product,
                                              const std::vector<OwnedMinibatch>& minibatches,
                                              std::span<const RandomStream> streams, std::int64_t layer,
                                              std::int64_t fanout) = 0;
  /// Are a block's rows normalised to sum 1 after the factors?
  virtual bool normalizes_rows() const = 0;
  /// Is the distribution a sum of the frontier's rows, so that the product moves sums?
  virtual bool uses_sums() const = 0;
};

/// The sampler of a distribution. Collective over the grid.
template <class Index>
std::unique_ptr<Sampler> make_layer_wise(const DistCsr<Index>& m, const SamplerShape& shape,
                                         std::unique_ptr<LayerDistribution<Index>> distribution);

/// The schedules of the layers' products. Collective over the grid.
template <class Index>
std::vector<Schedule> layer_wise_schedules(const DistCsr<Index>& m, const SamplerShape& shape,
                                           bool uses_sums);

/// The factor of draw j of s (from 1), of a column with `weight`: `remaining` of `total` was left before it. debiased:
/// Des Raj's. Otherwise 1 / probability of a single draw, over `divisor`.
ESPALIER_HD inline double pick_factor(SamplerMode mode, std::uint64_t total, std::uint64_t remaining,
                                      std::uint64_t weight, std::int64_t j, std::int64_t s, double divisor) {
  return mode == SamplerMode::kDebiased ? des_raj_factor(remaining, weight, j, s)
                                        : inverse_probability(total, weight) / divisor;
}

/// An entry of M times the factor of its column, and the entry of the block from that: over the row's `sum` of
/// products where rows are normalised, over 1 elsewhere.
ESPALIER_HD inline double layer_product(float entry, double factor) {
  return static_cast<double>(entry) * factor;
}
ESPALIER_HD inline float layer_value(double product, double sum) {
  return static_cast<float>(sum > 0 ? product / sum : 0.0);
}

/// The factors of draws made one after another without replacement: in_order[j] weighs the j-th, `total` all.
std::vector<double> pick_factors(SamplerMode mode, std::uint64_t total,
                                 std::span<const std::uint64_t> in_order, double divisor);

/// Squares of M's entries in fixed point, so that any sum of them, even all, is exact. Collective.
template <class Index>
EntryWeight square_weight(const DistCsr<Index>& m);

/// What an entry counts in LADIES: 1 in mode paper unless its value is 0, its square in the others. Collective.
template <class Index>
EntryWeight ladies_entry_weight(const DistCsr<Index>& m, SamplerMode mode) {
  return mode == SamplerMode::kPaper ? EntryWeight{.skip_zeros = true} : square_weight(m);
}

}  // namespace espalier
