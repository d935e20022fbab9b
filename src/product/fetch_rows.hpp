// Whole rows of A, fetched from the ranks of a process column that hold them, each distinct row once.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "espalier/base/execution.hpp"
#include "espalier/base/id_map.hpp"
#include "espalier/product/dist_csr.hpp"
#include "espalier/product/schedule.hpp"

namespace espalier {

/// The shape of `a` as the cost model sees it; rows and entries are left 0.
template <class Index>
ProductShape shape_of(const DistCsr<Index>& a) {
  return {.parts = a.partition.parts(),
          .replication = a.grid->replication(),
          .index_bytes = sizeof(Index),
          .value_bytes = a.has_values ? 4 : 0};
}

/// The different ids of a list, grouped by owner.
template <class Index>
struct DistinctIds {
  Buffer<Index> ids;
  std::vector<std::int64_t> begin;  ///< [parts + 1]: where the ids of each owner are
  Buffer<std::int64_t> place_of;    ///< [list]: the place of each id of the list

  DistinctIds(std::span<const std::int64_t> list, const RowPartition& partition);
  std::int64_t count(int part) const {
    return begin[static_cast<std::size_t>(part) + 1] - begin[static_cast<std::size_t>(part)];
  }
};

/// Asks the ranks first .. last-1 of the process column for the wanted rows of their blocks (my own block is
/// left out) and adds them to `fetched` in that order. Collective over the column. Books under label/ids and
/// label/rows.
template <class Index>
void fetch_rows(const Cpu& cpu, const DistinctIds<Index>& wanted, int first, int last,
                const DistCsr<Index>& a, const std::string& label, Csr<Index>& fetched);

/// One view for each wanted row: in my own block, or in `fetched`, which holds the rows of all other owners in
/// their order.
template <class Index>
std::vector<RowView<Index>> view_rows(const DistinctIds<Index>& wanted, const Csr<Index>& fetched,
                                      const DistCsr<Index>& a);

/// Books what the model expects to arrive when these rows are fetched from `asked` block rows in so many
/// exchanges.
template <class Index>
void predict_fetch(std::span<const RowView<Index>> rows, int asked, int exchanges, const DistCsr<Index>& a,
                   const std::string& label);

}  // namespace espalier
