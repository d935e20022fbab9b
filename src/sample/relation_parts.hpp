// Rows whose columns are (relation, source), cut into the parts of their relations, which a draw
// takes for rows; and what belongs to a pick once it was drawn.
#pragma once

#include "espalier/base/arrays.hpp"
#include "node_wise.hpp"

namespace espalier {

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
