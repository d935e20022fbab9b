#include <array>

#include "cost_model.hpp"
#include "espalier/base/error.hpp"

namespace espalier {

namespace {

struct Name {
  Schedule schedule;
  const char* name;
};
constexpr std::array<Name, 5> kNames = {{{Schedule::kAuto, "auto"},
                                         {Schedule::kStaged, "staged"},
                                         {Schedule::kStagedOblivious, "staged-oblivious"},
                                         {Schedule::kPull, "pull"},
                                         {Schedule::kPush, "push"}}};

// What the owners (push, down a column) or the row's servers (staged, along a row) do with a stacked frontier.
Cost serve_cost(int group, bool whole_rows, const ProductShape& shape, const ProductWork& work) {
  Cost cost = inquiry_cost(group, work.batches, work.rows, shape);
  if (work.picks > 0) {
    cost += sums_cost(group, work.batches, work.sums, shape);
    cost += picks_cost(group, work.batches, work.picks, shape);
    return cost += rows_cost(group, work.rows, work.results, 4 + shape.value_bytes, shape);
  }
  return cost += whole_rows ? rows_cost(group, work.rows, work.row_entries,
                                        shape.index_bytes + shape.value_bytes, shape)
                            : rows_cost(group, work.rows, work.results,
                                        shape.index_bytes + work.result_value_bytes, shape);
}

}  // namespace

Schedule schedule_of(const std::string& name) {
  for (const auto& known : kNames)
    if (name == known.name) return known.schedule;
  usage_error("grid.schedule = {} is not a schedule; use auto, staged, staged-oblivious, pull or push", name);
}

const char* name_of(Schedule schedule) {
  return kNames[static_cast<std::size_t>(schedule)].name;
}

Cost ids_cost(int group, double rows, const ProductShape& shape) {
  return {2.0 * (group - 1), 8.0 * (group - 1) + crossing(group) * rows * shape.index_bytes};
}

Cost rows_cost(int group, double rows, double entries, double entry_bytes, const ProductShape& shape) {
  return {2.0 * (group - 1), crossing(group) * (rows * shape.index_bytes + entries * entry_bytes)};
}

Cost inquiry_cost(int group, double batches, double rows, const ProductShape& shape) {
  return ids_cost(group, rows, shape) += {1.0 * (group - 1), 16 * batches * (group - 1)};
}

Cost sums_cost(int group, double batches, double sums, const ProductShape& shape) {
  if (sums <= 0) return {};
  return {3.0 * (group - 1),
          8 * batches * (group - 1) + crossing(group) * sums * (shape.index_bytes + 8)};
}

Cost picks_cost(int group, double batches, double picks, const ProductShape& shape) {
  return {2.0 * (group - 1), (group - 1) * (8 * batches + picks * shape.index_bytes)};
}

Cost fetch_cost(int group, double rows, double entries, const ProductShape& shape) {
  return ids_cost(group, rows, shape) +=
         rows_cost(group, rows, entries, shape.index_bytes + shape.value_bytes, shape);
}

Cost blocks_cost(const ProductShape& shape) {
  const double bytes =
      shape.rows * shape.index_bytes + shape.entries * (shape.index_bytes + shape.value_bytes);
  return {2.0 * shape.parts / shape.replication, crossing(shape.parts) * bytes / shape.replication};
}

Cost product_cost(Schedule schedule, const ProductShape& shape, const ProductWork& work) {
  if (shape.parts == 1) return {};
  const int c = shape.replication;
  switch (schedule) {
    case Schedule::kPull:
      return fetch_cost(shape.parts, work.distinct, work.distinct_entries, shape);
    case Schedule::kPush:
      return serve_cost(shape.parts, false, shape, work);
    case Schedule::kStagedOblivious:
      return blocks_cost(shape) += serve_cost(c, true, shape, work);
    case Schedule::kStaged: {
      // Exchanges of counts are those of one stage, p/c^2 times.
      auto cost = fetch_cost(shape.parts, work.distinct, work.distinct_entries, shape);
      cost.messages *= std::max(1.0, static_cast<double>(shape.parts) / c) / shape.parts;
      return cost += serve_cost(c, true, shape, work);
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
    const auto cost = product_cost(schedule, shape, work);
    const double seconds = link.seconds(cost.messages, cost.bytes);
    if (least >= 0 && seconds >= least) continue;
    least = seconds;
    best = schedule;
  }
  return best;
}

}  // namespace espalier
