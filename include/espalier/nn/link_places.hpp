// Where the rows that links name are named: lists by which gradients of links become sums over the
// links of a row, without atomics and in one order.
//
// A link i is (head, relation, tail). It *uses* two vertices' rows: use 2 i is that of its head,
// 2 i + 1 that of its tail.
//
// Law: a function of the links only. Each list ascends.
#pragma once

#include <cstdint>

#include "espalier/base/arrays.hpp"
#include "espalier/base/host_device.hpp"

namespace espalier {

/// Links between rows of a matrix, in memory of any space. Small: copied into kernels.
struct LinksView {
  std::int64_t count = 0;
  const std::int32_t *heads = nullptr, *tails = nullptr;  ///< [count] rows
  const std::int32_t* relations = nullptr;                ///< [count]; null: all are of relation 0

  ESPALIER_HD std::int64_t relation(std::int64_t i) const { return relations == nullptr ? 0 : relations[i]; }
  ESPALIER_HD std::int64_t row_of_use(std::int64_t use) const {
    return use % 2 == 0 ? heads[use / 2] : tails[use / 2];
  }
};

/// Lists, one after another: k has members[begins[k] .. begins[k + 1]).
template <class Space>
struct ListsOn {
  Array<Space, std::int64_t> begins;  ///< [lists + 1]
  Array<Space, std::int32_t> members;
};

template <class Space>
struct LinkPlacesOn {
  ListsOn<Space> by_row;       ///< [rows] uses of the row
  ListsOn<Space> by_relation;  ///< [relations] links of the relation
  /// [relations + 1] how many chunks of kSummedRows links the relations before have: sums over a
  /// relation, which may have all links, are added chunk by chunk (dense/column_sums.hpp).
  Array<Space, std::int64_t> chunks_before;
};
using LinkPlaces = LinkPlacesOn<Cpu>;

/// Overwrites `places`, whose memory is used again. Links name rows below `rows` and relations
/// below `relations`, which on the CPU is checked; with 0 relations no lists of them are made. At
/// most 2^30 - 1 links. Where the space is a GPU the host does not wait.
void find_link_places(const Cpu&, const LinksView& links, std::int64_t rows, std::int64_t relations,
                      LinkPlaces& places);
void find_link_places(const Cuda&, const LinksView& links, std::int64_t rows, std::int64_t relations,
                      LinkPlacesOn<Cuda>& places);

}  // namespace espalier
