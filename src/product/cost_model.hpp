// The steps that schedules are made of, as the alpha-beta model sees them: what one rank of a group
// receives. Schedules book them beside what they count; schedule.hpp adds them up.
#pragma once

#include "espalier/product/schedule.hpp"

namespace espalier {

inline Cost operator+=(Cost&& cost, const Cost& other) {
  return static_cast<Cost&>(cost) += other;
}

/// Rows fetched whole from `asked` of the group's ranks, perhaps my own, in so many exchanges.
struct FetchCost {
  Cost ids;   ///< how many, and which
  Cost rows;  ///< sizes, indices, values
};
FetchCost fetch_cost(int group, double asked, double exchanges, double rows, double entries,
                     const ProductShape& shape);
/// Rows back: their sizes, then `entries` of these bytes.
Cost rows_cost(int group, double rows, double entries, int id_bytes, int value_bytes,
               const ProductShape& shape);
/// Of so many rows what a merge of candidates needs beside them.
Cost merge_cost(int group, double rows, const ProductShape& shape);
/// Ids sorted by batch: how many, a line for each batch and rank, the ids.
Cost request_cost(int group, double batches, double rows, const ProductShape& shape);
/// `sums` entries (column, sum) of partial sums, by batch; nothing when there are none.
Cost sums_cost(int group, double batches, double sums, const ProductShape& shape);
/// The columns to select, of every batch to every rank.
Cost picks_cost(int group, double batches, double picks, const ProductShape& shape);
/// The block rows of a process column's stages, whole.
Cost blocks_cost(const ProductShape& shape);

}  // namespace espalier
