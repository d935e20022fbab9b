// Rows whose columns are (relation, source), cut into the parts of their relations, which a draw
// takes for rows; and what belongs to a pick once it was drawn.
#pragma once

#include <limits>

#include "espalier/base/arrays.hpp"
#include "node_wise.hpp"

namespace espalier {

/// The parts of rows that are not empty, in order.
template <class Index, class Space = Cpu>
struct RelationParts {
  Array<Space, RowView<Index>> rows;                           ///< [parts]
  Array<Space, RowKey> keys;                                   ///< [parts] with the relation
  Array<Space, std::int64_t> begins = no_row_starts<Space>();  ///< [rows + 1] the parts of each row

  std::int64_t count() const { return static_cast<std::int64_t>(rows.size()); }
};

/// Cuts rows [count]; those of at most `uncut` entries stay in one piece, of no relation in
/// particular. On a GPU the host waits once.
template <class Index>
void cut_by_relation(const Cpu& cpu, const ColumnsOf& columns, const RowView<Index>* rows, const RowKey* keys,
                     std::int64_t count, std::int64_t uncut, RelationParts<Index>& parts);
template <class Index>
void cut_by_relation(const Cuda& cuda, const ColumnsOf& columns, const RowView<Index>* rows,
                     const RowKey* keys, std::int64_t count, std::int64_t uncut,
                     RelationParts<Index, Cuda>& parts);

/// A row of so few entries is taken whole whichever relations they are of; where picks have values
/// of their own, these are of a relation's part.
template <class Index, class Space>
std::int64_t taken_whole(const RowDraw<Index, Space>& draw, const LayerDraw& layer) {
  return draw.has_values() ? 0 : layer.least < 0 ? std::numeric_limits<std::int64_t>::max() : layer.least;
}

/// The picks of rows [count], drawn part by part; on the CPU they are appended to `out`.
template <class Index>
void draw_by_relation(const Cpu& cpu, const RowDraw<Index>& draw, const LayerDraw& layer,
                      const ColumnsOf& columns, const RowView<Index>* rows, const RowKey* keys,
                      std::int64_t count, Entries<Index>& out);
template <class Index>
void draw_by_relation(const Cuda& cuda, const RowDraw<Index, Cuda>& draw, const LayerDraw& layer,
                      const ColumnsOf& columns, const RowView<Index>* rows, const RowKey* keys,
                      std::int64_t count, Entries<Index, Cuda>& out);

/// The picks of a layer with their columns read: the vertices, the relations, and 1 / |picked| of
/// each relation's picks in a row.
template <class Index, class Space = Cpu>
struct ReadColumns {
  Array<Space, Index> vertices;          ///< [picks]
  Array<Space, std::uint8_t> relations;  ///< [picks]
};
/// `means` [picks] becomes the mean values, unless it is null.
template <class Index>
void read_columns(const Cpu& cpu, const ColumnsOf& columns, const Buffer<std::int64_t>& offsets,
                  const Buffer<Index>& picks, ReadColumns<Index>& read, Buffer<float>* means);
template <class Index>
void read_columns(const Cuda& cuda, const ColumnsOf& columns, const DeviceArray<std::int64_t>& offsets,
                  const DeviceArray<Index>& picks, ReadColumns<Index, Cuda>& read, DeviceArray<float>* means);

}  // namespace espalier
