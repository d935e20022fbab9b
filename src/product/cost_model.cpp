#include <algorithm>

#include "cost_model.hpp"
#include "espalier/base/id_map.hpp"
#include "espalier/base/named.hpp"
#include "espalier/product/schedule.hpp"
#include "espalier/product/whole_rows.hpp"

namespace espalier {

namespace {

constexpr Named<Schedule> kSchedules[] = {{"auto", Schedule::kAuto},
                                          {"staged", Schedule::kStaged},
                                          {"staged-oblivious", Schedule::kStagedOblivious},
                                          {"pull", Schedule::kPull},
                                          {"push", Schedule::kPush}};

// With how many others an owner rank exchanges answers: along a row at most as many serve as
// block rows.
double servers(int group, const ProductShape& shape) {
  return std::min(group, shape.parts) * crossing(group);
}

// What owners (push, down a column) or servers (staged, along a row) do with a frontier.
Cost serve_cost(int group, bool whole_rows, const ProductShape& shape, const ProductWork& work) {
  const double rows = work.rows * shape.copies;
  whole_rows = whole_rows || (shape.cut && shape.join == JoinPieces::kNever);
  Cost cost = request_cost(group, work.batches, rows, shape);
  if (work.picks > 0) {
    cost += sums_cost(group, work.batches, work.sums, shape);
    cost += picks_cost(group, work.batches, work.picks, shape);
    return cost += rows_cost(group, rows, work.results, 4, shape.value_bytes, shape);
  }
  if (shape.cut && shape.join == JoinPieces::kMerge) cost += merge_cost(group, work.merged, shape);
  return cost +=
         whole_rows ? rows_cost(group, rows, work.row_entries, shape.index_bytes, shape.value_bytes, shape)
                    : rows_cost(group, rows, work.results, shape.index_bytes, work.result_value_bytes, shape);
}

// So many collectives of a group, which is nothing for one rank.
double rounds_in(int group, double collectives) {
  return group > 1 ? collectives : 0;
}

// Sizes, indices, and values where there are any.
int arrays_of_rows(int value_bytes) {
  return value_bytes > 0 ? 3 : 2;
}

Cost fetch_all(double asked, double exchanges, const ProductShape& shape, const ProductWork& work) {
  auto cost =
      fetch_cost(shape.parts, asked, exchanges, work.distinct * shape.copies, work.distinct_entries, shape);
  return cost.ids += cost.rows;
}

}  // namespace

Schedule schedule_of(const std::string& name) {
  return entry_named(kSchedules, name, "grid.schedule =").value;
}

const char* name_of(Schedule schedule) {
  return kSchedules[static_cast<std::size_t>(schedule)].name;
}

FetchCost fetch_cost(int group, double asked, double exchanges, double rows, double entries,
                     const ProductShape& shape) {
  const double others = asked * crossing(group), arrays = arrays_of_rows(shape.value_bytes);
  const double remote = rows * crossing(group);
  return {{others + exchanges * (group - 1), 8.0 * exchanges * (group - 1) + remote * shape.index_bytes,
           rounds_in(group, 2 * exchanges)},
          {others * arrays,
           remote * shape.index_bytes + entries * crossing(group) * (shape.index_bytes + shape.value_bytes),
           rounds_in(group, arrays * exchanges)}};
}

Cost rows_cost(int group, double rows, double entries, int id_bytes, int value_bytes,
               const ProductShape& shape) {
  return {arrays_of_rows(value_bytes) * servers(group, shape),
          crossing(group) * (rows * shape.index_bytes + entries * (id_bytes + value_bytes)),
          rounds_in(group, arrays_of_rows(value_bytes))};
}

Cost merge_cost(int group, double rows, const ProductShape& shape) {
  return {servers(group, shape), crossing(group) * rows * static_cast<double>(sizeof(RowSupport)),
          rounds_in(group, 1)};
}

Cost request_cost(int group, double batches, double rows, const ProductShape& shape) {
  return {
      (group - 1) + 2.0 * servers(group, shape),
      8.0 * (group - 1) + 16 * batches * servers(group, shape) + crossing(group) * rows * shape.index_bytes,
      rounds_in(group, 3)};
}

Cost sums_cost(int group, double batches, double sums, const ProductShape& shape) {
  if (sums <= 0) return {};
  return {3.0 * servers(group, shape),
          8 * batches * servers(group, shape) + crossing(group) * sums * (shape.index_bytes + 8),
          rounds_in(group, 3)};
}

Cost picks_cost(int group, double batches, double picks, const ProductShape& shape) {
  return {2.0 * servers(group, shape), servers(group, shape) * (8 * batches + picks * shape.index_bytes),
          rounds_in(group, 2)};
}

Cost blocks_cost(const ProductShape& shape) {
  const double bytes =
      shape.rows * shape.index_bytes + shape.entries * (shape.index_bytes + shape.value_bytes);
  const double stages = static_cast<double>(shape.parts) / shape.replication;
  const int arrays = arrays_of_rows(shape.value_bytes);
  return {stages * crossing(shape.parts) * arrays, crossing(shape.parts) * bytes / shape.replication,
          stages * arrays};
}

Cost product_cost(Schedule schedule, const ProductShape& shape, const ProductWork& work) {
  if (shape.parts == 1) return {};
  const int c = shape.replication;
  switch (schedule) {
    case Schedule::kPull:
      return fetch_all(shape.parts, 1, shape, work);
    case Schedule::kPush:
      return serve_cost(shape.parts, false, shape, work);
    case Schedule::kStagedOblivious:
      return blocks_cost(shape) += serve_cost(c, true, shape, work);
    case Schedule::kStaged: {
      // On average over process columns.
      const double stages = static_cast<double>(shape.parts) / c;
      return fetch_all(stages, stages, shape, work) += serve_cost(c, true, shape, work);
    }
    case Schedule::kAuto:
      break;
  }
  ESPALIER_CHECK(false, "the schedule auto has no cost of its own{}", "");
  return {};
}

Schedule choose_schedule(const Link& link, const ProductShape& shape, const ProductWork& work) {
  auto best = Schedule::kPull;
  double least = -1;
  for (const auto schedule : {Schedule::kPush, Schedule::kPull, Schedule::kStaged}) {
    if (shape.cut && !takes_pieces(schedule, shape.on_gpu)) continue;
    const auto cost = product_cost(schedule, shape, work);
    const double seconds = link.seconds(cost.messages, cost.bytes);
    if (least >= 0 && seconds >= least) continue;
    least = seconds;
    best = schedule;
  }
  return best;
}

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
