// Layer-wise sampling: one set of vertices per batch and layer, shared by all its frontier.
//
//     picks   = the sampler's own part: up to s columns of M with a factor each
//     B       = EXTRACT(M, F, picks)     all entries of the frontier's rows in those columns (block
//                                        diagonal over batches), each times its column's factor
//     F[l-1]  = F[l] followed by the new vertices in ascending id
//
// With a fanout for each relation the columns of each are drawn by themselves, with a total of
// their own and a stream of their own: the block is then an estimate of each
// relation's part of M, as it is of M without.
//
// M is the matrix that the block stands for (DistCsr with values): the row-normalised A of a mean,
// the symmetrically normalised A + I of a GCN, the row-normalised A + I of mode `reference`. Memory
// of a batch on the CPU is O(entries of the frontier + k s).
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "espalier/base/philox.hpp"
#include "espalier/product/product.hpp"
#include "espalier/sample/block_value.hpp"
#include "espalier/sample/sampler.hpp"
#include "row_rules.hpp"

namespace espalier {

/// The columns of one layer, of all batches one under the other.
template <class Index, class Space = Cpu>
struct LayerPicks {
  SharedList<std::int64_t, Space> offsets;  ///< [batches + 1]
  Array<Space, Index> columns;   ///< of batch b: offsets[b] .. offsets[b + 1], ascending global ids
  Array<Space, double> factors;  ///< beside columns: of each column's entries
  /// Has a row's entry in its own column the factor 1 instead?
  bool keeps_own = false;
};

/// Sums over frontiers, which the next layer's go on from, are kept while those of a bulk have no
/// more bytes than this.
inline constexpr std::int64_t kMostKeptSumBytes = std::int64_t{64} << 20;

/// How many of `batches` batches are sampled together. Where no rank answers others, on the CPU, a
/// few for each thread: what their products write then stays in caches, and in memory that is used
/// again and again.
inline std::int64_t layer_wise_batches_together(const Cpu& cpu, int parts, std::int64_t batches) {
  return parts == 1 ? std::min<std::int64_t>(batches, std::int64_t{8} * cpu.threads) : batches;
}
inline std::int64_t layer_wise_batches_together(const Cuda&, int, std::int64_t batches) {
  return batches;
}

/// How many columns a batch draws in a layer: of all of them, or of each relation's (which stand
/// together) so many, as if these were all. What is drawn from in one go is a *list* of the batch.
template <class Space>
struct LayerFanoutOn {
  std::int64_t of_all = 0;                       ///< -1: all columns
  SharedList<std::int64_t, Space> of_relations;  ///< [relations] instead; or empty
  ColumnsOf columns = {};                        ///< memory of the space

  std::int64_t lists() const { return std::max<std::int64_t>(1, of_relations.size()); }
  std::int64_t of_list(std::int64_t list) const {
    return of_relations.size() == 0 ? of_all : of_relations[list];
  }
};

/// What the picks of a layer are made from.
template <class Space>
struct LayerInputOn {
  const FrontierOn<Space>& frontier;             ///< F[layer]; seeds first in each list
  const SharedList<std::int64_t, Space>& seeds;  ///< [batches] how many
  RandomStream stream;                           ///< the name of: seed, epoch and layer alone
  const LayerFanoutOn<Space>& fanout;
};

/// Where the picks of a layer come from.
template <class Index, class Space = Cpu>
class LayerDistribution {
 public:
  virtual ~LayerDistribution() = default;

  /// Before the layers of a bulk; streams[b]: keyed by seed, epoch and batch. Collective.
  virtual void begin(const Space&, std::span<const RandomStream> /*streams*/) {}

  /// The picks of every batch in the layer of input.stream (counting down); `product`: of the
  /// frontier and M. Collective over the grid.
  virtual LayerPicks<Index, Space> pick(const Space& space, Product<Index, Space>& product,
                                        const LayerInputOn<Space>& input) = 0;
  /// SamplerOn's, of the last begin().
  virtual SpreadDraws spread_draws() const { return {}; }
  virtual std::int64_t columns_of_layer(std::size_t /*k*/) const { return -1; }
  /// Are a block's rows normalised to sum 1 after the factors?
  virtual bool normalizes_rows() const { return false; }
};

/// The sampler `kind` of a distribution. Collective over the grid.
template <class Index, class Space>
std::unique_ptr<SamplerOn<Space>> make_layer_wise(
    const std::string& kind, const DistCsr<Index, Space>& m, const SamplerShape& shape,
    std::unique_ptr<LayerDistribution<Index, Space>> distribution);

/// The factor of draw j of s (from 1), of a column with `weight`: `remaining` of `total` was left
/// before it. debiased: Des Raj's. Otherwise 1 / probability of a single draw, over `divisor`.
ESPALIER_HD inline double pick_factor(SamplerMode mode, std::uint64_t total, std::uint64_t remaining,
                                      std::uint64_t weight, std::int64_t j, std::int64_t s, double divisor) {
  return mode == SamplerMode::kDebiased ? des_raj_factor(remaining, weight, j, s)
                                        : inverse_probability(total, weight) / divisor;
}

/// An entry of M times the factor of its column, and the entry of the block from that: over the
/// row's `sum` of products where rows are normalised, over 1 elsewhere.
ESPALIER_HD inline double layer_product(float entry, double factor) {
  return static_cast<double>(entry) * factor;
}
ESPALIER_HD inline float layer_value(double product, double sum) {
  return static_cast<float>(sum > 0 ? product / sum : 0.0);
}

/// The factors of draws in order, without replacement: in_order[j] weighs the j-th, `total` all.
std::vector<double> pick_factors(SamplerMode mode, std::uint64_t total,
                                 std::span<const std::uint64_t> in_order, double divisor);

/// Squares of M's entries in fixed point, so that any sum of them, even all, is exact. Collective.
template <class Index>
EntryWeight square_weight(const DistCsr<Index>& m);

/// Are the entries of each row equal, as a mean's are? Collective.
template <class Index>
bool has_equal_rows(const DistCsr<Index>& m);

/// What an entry counts in LADIES: 1 in mode paper unless it is 0, else its square. Collective.
template <class Index>
EntryWeight ladies_entry_weight(const DistCsr<Index>& m, SamplerMode mode) {
  auto weight = mode == SamplerMode::kPaper ? EntryWeight{.skip_zeros = true} : square_weight(m);
  weight.equal_in_rows = has_equal_rows(m);
  return weight;
}

}  // namespace espalier
