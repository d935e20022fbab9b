// Node-wise sampling: every frontier vertex draws from its own row of A; where columns are
// (relation, source), from each relation's part of it, as if that were a row.
//
//     Q      one row per frontier vertex v with a 1 in column v
//     P      = Q A                       row v of P is the neighbourhood of v
//     picks  = SAMPLE(P, s)              the sampler's own part: a RowDraw
//     B      = EXTRACT(A, F, picks)      batch by batch, F[l-1] = F[l] + new vertices in
//                                        ascending id
//
// Picks are columns until EXTRACT; then they are vertices, with the relation beside them.
#pragma once

#include <memory>

#include "espalier/base/arrays.hpp"
#include "espalier/base/philox.hpp"
#include "espalier/product/product.hpp"
#include "espalier/sample/sampler.hpp"
#include "row_rules.hpp"

namespace espalier {

/// What is drawn in a layer.
struct LayerDraw {
  KeyedStream stream;                          ///< of seed, purpose, epoch and layer alone
  std::int64_t fanout = 0;                     ///< the most picks of a row; -1: any number
  std::int64_t least = 0;                      ///< the fewest of a relation; -1: any number
  const std::int64_t* of_relations = nullptr;  ///< [relations] of the space; null: `fanout`
  const StreamKey* keys = nullptr;             ///< [relations] of the space; null: there is one

  /// May a row be left that is not taken whole?
  bool draws() const { return fanout >= 0 || of_relations != nullptr; }

  ESPALIER_HD std::int64_t fanout_of(const RowKey& key) const {
    return of_relations == nullptr ? fanout : of_relations[key.relation];
  }

  ESPALIER_HD StreamKey key_of(std::int64_t relation) const {
    return keys == nullptr ? stream.key : keys[relation];
  }
  /// The stream of a row, or a relation's part of it; `row`: what stands for the row in it.
  ESPALIER_HD KeyedStream stream_of(const RowKey& key, std::int64_t row) const {
    auto of_row = stream.of_row(row);
    of_row.key = key_of(key.relation);
    of_row.batch = static_cast<std::uint32_t>(key.batch);
    return of_row;
  }
  ESPALIER_HD KeyedStream stream_of(const RowKey& key) const { return stream_of(key, key.vertex); }
};

/// SAMPLE and the values of rows of P, or of a relation's parts: a function of row, key and layer.
template <class Index, class Space = Cpu>
class RowDraw {
 public:
  virtual ~RowDraw() = default;
  /// Are values written beside the picks? If not, they are 1 / |picked|.
  virtual bool has_values() const = 0;
  /// Of the layers' streams.
  virtual Purpose purpose() const { return Purpose::kSample; }
  /// Does it read the weights of all entries of a row?
  virtual bool scans() const { return false; }
  /// Are the picks of a row of no more entries than its fanout all of them, those of a longer one
  /// as many as the fanout, and all without values?
  virtual bool keeps_small_rows() const { return false; }
  /// The picks of each of rows [count], ascending. On the CPU they are appended to `out`, and
  /// several threads call at once; on a GPU they are all of it, and the host may wait.
  virtual void draw(const Space& space, const LayerDraw& layer, const RowView<Index>* rows,
                    const RowKey* keys, std::int64_t count, Entries<Index, Space>& out) const = 0;
  /// Of a row that is cut: what becomes of what its holders draw?
  virtual JoinPieces join() const { return JoinPieces::kNever; }
  /// On the CPU: those picks of whole rows, or candidates, that are in rows [count], which may be
  /// pieces of them.
  virtual void draw_pieces(const LayerDraw& /*layer*/, const RowView<Index>* /*rows*/,
                           const HeldWholeRows& /*whole*/, const RowKey* /*keys*/, std::int64_t /*count*/,
                           Entries<Index, Space>& /*out*/) const {}
  /// As RowOperation's.
  virtual void merge(const LayerDraw& /*layer*/, const RowView<Index>* /*rows*/,
                     const RowSupport* /*supports*/, const RowKey* /*keys*/, std::int64_t /*count*/,
                     Entries<Index, Space>& /*out*/) const {}
};

/// Throws UserError(kInput) where a weighted draw is asked for and there are no weights.
template <class Index>
void check_weights(const DistCsr<Index>& a, const SamplerShape& shape);

/// The sampler `kind` that applies `draw` to frontiers, layer by layer. Collective over the grid.
template <class Index, class Space>
std::unique_ptr<SamplerOn<Space>> make_node_wise(const std::string& kind, const DistCsr<Index, Space>& a,
                                                 const SamplerShape& shape,
                                                 std::unique_ptr<RowDraw<Index, Space>> draw);

// Rows whose columns are (relation, source), cut into the parts of their relations, which a draw
// takes for rows; and what belongs to a pick once it was drawn.

/// The picks of rows [count], drawn part by part; on the CPU they are appended to `out`.
template <class Index>
void draw_by_relation(const Cpu& cpu, const RowDraw<Index>& draw, const LayerDraw& layer,
                      const ColumnsOf& columns, const RowView<Index>* rows, const RowKey* keys,
                      std::int64_t count, Entries<Index>& out);
template <class Index>
void draw_by_relation(const Cuda& cuda, const RowDraw<Index, Cuda>& draw, const LayerDraw& layer,
                      const ColumnsOf& columns, const RowView<Index>* rows, const RowKey* keys,
                      std::int64_t count, Entries<Index, Cuda>& out);

/// The vertices and relations of picks, and, unless null, 1 / |picked| of a relation in a row.
template <class Index>
void read_columns(const Cpu& cpu, const ColumnsOf& columns, const Buffer<std::int64_t>& offsets,
                  const Buffer<Index>& picks, Buffer<Index>& vertices, Buffer<std::uint8_t>& relations,
                  Buffer<float>* means);
template <class Index>
void read_columns(const Cuda& cuda, const ColumnsOf& columns, const DeviceArray<std::int64_t>& offsets,
                  const DeviceArray<Index>& picks, DeviceArray<Index>& vertices,
                  DeviceArray<std::uint8_t>& relations, DeviceArray<float>* means);

}  // namespace espalier
