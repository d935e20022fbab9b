// The entries of a block, cut into segments: what one relation has in one row.
//
//     row 0   r0 r0 | r2            segments, relation after relation:
//     row 1   r2 r2 r2              r0: (row 0, entries 0..2), (row 2, entry 6)
//     row 2   r0 | r1               r1: (row 2, entry 7)
//                                   r2: (row 0, entry 2), (row 1, entries 3..6)
//
// A relation has at most one segment in a row, and its segments stand together, by row: so what
// depends on the relation, a product with a matrix of its own, is one product over all of them.
//
// Law: a function of the block only. In a block without relations all entries are of relation 0.
#pragma once

#include <cstdint>
#include <vector>

#include "espalier/base/arrays.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

/// The segments of one relation: k has entries [begins[k], ends[k]) of row rows[k], counted from
/// the block's first entry. Small: copied into kernels.
struct SegmentsView {
  std::int64_t count = 0;
  const std::int32_t *rows = nullptr, *begins = nullptr, *ends = nullptr;
  const std::int32_t* numbers = nullptr;  ///< [entries] of all relations: which of its relation's
                                          ///< segments an entry lies in

  /// Some of them, whose numbers stay those of the relation.
  SegmentsView part(std::int64_t from, std::int64_t size) const {
    return {size, rows + from, begins + from, ends + from, numbers};
  }
};

/// The entries of one relation, ascending by source, then by row: memory of the space.
struct EntriesBySource {
  std::int64_t count = 0;
  const std::int32_t* entries = nullptr;  ///< counted from the block's first
};

template <class Space>
struct RelationSegmentsOn {
  std::vector<std::int64_t> first, first_entry;   ///< [relations + 1] begins
  Array<Space, std::int32_t> rows, begins, ends;  ///< [segments], room for the most
  Array<Space, std::int32_t> numbers;             ///< [entries]

  SegmentsView of(std::int64_t relation) const {
    const auto from = first[relation];
    return {first[relation + 1] - from, rows.data() + from, begins.data() + from, ends.data() + from,
            numbers.data()};
  }
  /// Of what order_by_source made.
  EntriesBySource by_source(std::int64_t relation, const Array<Space, std::int32_t>& order) const {
    const auto from = first_entry[relation];
    return {first_entry[relation + 1] - from, order.data() + from};
  }
};
using RelationSegments = RelationSegmentsOn<Cpu>;

/// The most segments that a block of so many rows and entries can have.
template <class Number>
Number most_segments(Number rows, Number entries, std::int64_t relations) {
  const Number by_row = rows * static_cast<Number>(relations);
  return entries < by_row ? entries : by_row;
}

/// Overwrites `segments`, whose memory is used again. On a GPU the host waits once.
void find_segments(const Cpu&, const BlockView<Cpu>& block, std::int64_t relations,
                   RelationSegments& segments);
void find_segments(const Cuda&, const BlockView<Cuda>& block, std::int64_t relations,
                   RelationSegmentsOn<Cuda>& segments);

/// order [entries], resized: the entries of each relation, relation after relation, ascending by
/// source. `positions` is of transpose(block). The host does not wait.
void order_by_source(const Cpu&, const BlockView<Cpu>& block, const Buffer<std::int32_t>& positions,
                     const RelationSegments& segments, Buffer<std::int32_t>& order);
void order_by_source(const Cuda&, const BlockView<Cuda>& block, const DeviceArray<std::int32_t>& positions,
                     const RelationSegmentsOn<Cuda>& segments, DeviceArray<std::int32_t>& order);

}  // namespace espalier
