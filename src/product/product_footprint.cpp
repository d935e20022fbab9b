#include <algorithm>

#include "espalier/base/id_map.hpp"
#include "espalier/product/schedule.hpp"

namespace espalier {

Footprint entries_footprint(double rows, double entries, double id_bytes, double value_bytes) {
  return Footprint().add(8 * rows).add(id_bytes * entries).add(value_bytes * entries);
}

namespace {

// fetch_rows.inl.hpp: rows from their owners, and as many packed for others; of rows that are cut
// pieces, which are joined.
Footprint fetched_rows(const ProductShape& shape, ProductWork work) {
  Footprint joined;
  if (shape.cut)
    joined = entries_footprint(work.distinct, work.distinct_entries, shape.index_bytes, shape.value_bytes)
                 .add(32 * work.distinct);
  work.distinct *= shape.copies;
  const double away = crossing(shape.parts), id = shape.index_bytes;
  const auto packed =
      entries_footprint(work.distinct * away, work.distinct_entries * away, id, shape.value_bytes);
  const auto asking = IdMap::footprint(work.rows) +
                      Footprint().add(8 * work.distinct, 2).add(id * work.distinct).add(4 * work.distinct);
  const auto fetching = Footprint().add(8 * work.rows) + packed + packed;
  const auto working = Footprint().add(24 * work.distinct).add(24 * work.rows).add(16 * work.rows) + packed;
  return Footprint().add(8 * work.rows, 2) + larger(larger(asking, fetching), working) + joined;
}

// row_request.inl.hpp: a frontier asked of its servers; answers are made and received.
Footprint served_rows(const ProductShape& shape, double rows, const Footprint& answers) {
  return Footprint().add(8 * rows, 2).add(shape.index_bytes * rows, 2).add(16 * rows).add(24 * rows) +
         answers + answers;
}

}  // namespace

Footprint product_footprint(Schedule schedule, const ProductShape& shape, const ProductWork& work,
                            bool selects, int threads) {
  const double id = shape.index_bytes, value = shape.value_bytes;
  const auto results = selects ? entries_footprint(work.rows, work.results, 4, value)
                               : entries_footprint(work.rows, work.results, id, work.result_value_bytes);
  const auto twice = threads > 1 ? results : Footprint();
  if (shape.parts == 1) return Footprint().add(8 * work.rows, 2).add(24 * work.rows) + results + twice;
  const auto partial_sums = Footprint().add(12 * work.sums).add(id * work.sums, 2).add(8 * work.sums, 2);
  switch (schedule) {
    case Schedule::kPush: {
      // In the order of the frontier.
      const double asked = work.rows * shape.copies;
      const bool whole = shape.cut && shape.join == JoinPieces::kNever && !selects;
      const auto answers =
          selects || !shape.cut ? results
          : whole               ? entries_footprint(asked, work.row_entries, id, value)
                  : entries_footprint(asked, std::min(work.row_entries, shape.copies * work.results), id,
                                      work.result_value_bytes);
      return served_rows(shape, asked, answers) + (whole ? answers : Footprint()) + results + partial_sums;
    }
    case Schedule::kStaged:
    case Schedule::kStagedOblivious: {
      const auto whole = selects ? results : entries_footprint(work.rows, work.row_entries, id, value);
      return fetched_rows(shape, work) + served_rows(shape, work.rows, whole) + results + partial_sums;
    }
    default:
      return fetched_rows(shape, work) + results + twice;
  }
}

}  // namespace espalier
