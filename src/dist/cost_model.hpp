// The steps that schedules are made of, as the alpha-beta model sees them: messages and bytes that one rank of
// a group receives. The schedules book these expectations beside what they count; schedule.hpp adds them up.
#pragma once

#include "espalier/dist/schedule.hpp"

namespace espalier {

inline Cost& operator+=(Cost& cost, const Cost& other) {
  cost.messages += other.messages;
  cost.bytes += other.bytes;
  return cost;
}
inline Cost operator+=(Cost&& cost, const Cost& other) {
  return static_cast<Cost&>(cost) += other;
}

/// Ids to those who hold the rows, after how many there are.
Cost ids_cost(int group, double rows, const ProductShape& shape);
/// Rows back: their sizes, then `entries` of `entry_bytes`.
Cost rows_cost(int group, double rows, double entries, double entry_bytes, const ProductShape& shape);
/// Ids sorted by batch: as ids_cost, with a line for each batch and rank.
Cost inquiry_cost(int group, double batches, double rows, const ProductShape& shape);
/// `sums` entries (column, sum) of partial sums, by batch; nothing when there are none.
Cost sums_cost(int group, double batches, double sums, const ProductShape& shape);
/// The columns to select, of every batch to every rank.
Cost picks_cost(int group, double batches, double picks, const ProductShape& shape);
/// The block rows of a process column's stages, whole.
Cost blocks_cost(const ProductShape& shape);

}  // namespace espalier
