// The distributed product P = Q A for a selection Q: one nonzero, a 1, per row of Q.
//
// GraphSAGE's Q is of this kind (design, section 5), so row q of P is row Q[q] of A, and the product is a row
// gather. Q is given by its column ids; each rank passes the rows of the batches it keeps. Rows are not
// copied where they already lie: P is a list of views into the local block of A and into the rows that were
// received.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "espalier/base/execution.hpp"
#include "espalier/dist/dist_csr.hpp"

namespace espalier {

template <class Index>
struct SelectedRows {
  struct Row {
    const Index* indices;  ///< global column ids, ascending
    const float* values;   ///< or null: all 1
    std::int64_t size;
  };
  std::vector<Row> rows;  ///< one per row of Q
  Csr<Index> received;    ///< storage of the rows that came from other ranks

  std::span<const Index> indices(std::int64_t q) const {
    const auto& row = rows[static_cast<std::size_t>(q)];
    return {row.indices, static_cast<std::size_t>(row.size)};
  }
};

/// The schedule `pull`: each rank asks the owners in its own process column for the distinct rows it needs,
/// in one all-to-all-v of ids and one of rows; it receives (distinct remote rows)(1 - c/p) d entries.
/// Collective over the process column (partitioned) or local (replicated). The result refers to `a.local`,
/// which must outlive it.
template <class Index>
SelectedRows<Index> select_rows_pull(const Cpu& cpu, std::span<const std::int64_t> q, const DistCsr<Index>& a,
                                     std::string_view label);

}  // namespace espalier
