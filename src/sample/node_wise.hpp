// Node-wise sampling: every frontier vertex draws from its own row of A.
//
//     Q      one row per frontier vertex v with a 1 in column v
//     P      = Q A                       row v of P is the neighbourhood of v
//     picks  = SAMPLE(P, s)              the sampler's own part: a RowDraw
//     B      = EXTRACT(A, F, picks)      batch by batch, F[l-1] = F[l] + new vertices in ascending id
#pragma once

#include <memory>

#include "espalier/base/philox.hpp"
#include "espalier/product/product.hpp"
#include "espalier/sample/sampler.hpp"
#include "row_rules.hpp"

namespace espalier {

/// What is drawn in one layer. `stream` has seed, purpose, epoch and layer; a draw adds batch and row.
struct LayerDraw {
  RandomStream stream;
  std::int64_t fanout = 0;  ///< -1: all
};

/// SAMPLE and the values of one row of P. Stateless: a function of the row, its key and the layer.
template <class Index>
class RowDraw {
 public:
  virtual ~RowDraw() = default;
  /// Are values written beside the picks? If not, they are 1 / |picked|.
  virtual bool has_values() const = 0;
  /// Appends the picks of each of `rows` to `out`, ascending. Called by several threads at once.
  virtual void draw(const LayerDraw& layer, std::span<const RowView<Index>> rows,
                    std::span<const RowKey> keys, RowEntries<Index>& out) const = 0;
};

/// The shift of the integer weights of a's entries (fixed_point_weight). Collective over the grid.
template <class Index>
int weight_shift_of_entries(const DistCsr<Index>& a);

/// The sampler that applies `draw` to every frontier vertex, layer by layer. Collective over the grid.
template <class Index>
std::unique_ptr<Sampler> make_node_wise(const DistCsr<Index>& a, const SamplerShape& shape,
                                        std::unique_ptr<RowDraw<Index>> draw);

}  // namespace espalier
