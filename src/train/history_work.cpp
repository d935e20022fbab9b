// What history means for a job, but for its steps (history_hook.inl.hpp): the memory that it will
// take, what is refused and warned of, and what a log and a report say of it.
#include "history_hook.inl.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "espalier/base/text.hpp"

namespace espalier {

namespace {

double percent(std::int64_t part, std::int64_t all) {
  return all > 0 ? 100 * static_cast<double>(part) / static_cast<double>(all) : 0.0;
}

// Rows, and what they are found by.
KeptMemory kept_by_history(const PlannedTraining& training) {
  const auto& history = training.config.history;
  const double share = history.p_grad;  // of the rows that are needed
  KeptMemory kept = {"history"};
  if (share == 0 || history.t_stale <= kHistoryLag || history.recompute >= 1) return kept;
  const double all_steps =
      static_cast<double>(training.config.train.epochs) * static_cast<double>(training.steps());
  const double steps =
      std::min(static_cast<double>(history.t_stale), all_steps - static_cast<double>(history.start));
  if (steps <= 0) return kept;
  const bool lanes = history.scope == "lane";
  const double ranks = static_cast<double>(training.ranks), together = static_cast<double>(training.together);
  const double caches = lanes ? std::ceil(together / ranks) : 1, sharers = lanes ? 1 : ranks,
               per_step = lanes ? 1 : together, waiting = static_cast<double>(kHistoryLag) + 1;
  const auto shape = history_shape(training.config);
  const double n = std::max<double>(1, static_cast<double>(training.graph.nodes));
  // Of each layer the different ones among the rows that so many steps need.
  const auto rows_of_steps = [&](double count) {
    double rows = 0;
    for (int layer = 1; layer <= shape.layers; ++layer)
      rows +=
          share * n * -std::expm1(per_step * count * std::log1p(-std::min(training.rows[layer] / n, 0.999)));
    return rows;
  };
  // A row that hits is not written, so those that are written are others.
  double held = rows_of_steps(steps), written = rows_of_steps(steps + waiting) - held;
  if (history.entries > 0 && held > static_cast<double>(history.entries)) {
    held = static_cast<double>(history.entries);
    written = rows_of_steps(waiting);
  }
  const auto row = static_cast<double>(history_row_bytes(shape.precision, shape.width));
  constexpr double kGrown = 1.25;  // memory for rows grows by a half
  constexpr double kFoundBy = 80;
  kept.on_device = caches * (kGrown * held + written) / sharers * row;
  kept.on_host = caches * held / sharers * kFoundBy;
  return kept;
}

std::string warning_of(const HistoryConfig& history, std::int64_t steps, std::int64_t epochs) {
  const auto never =
      history.t_stale <= kHistoryLag
          ? fmt::format("history.t_stale = {}, and rows are read {} steps old or more", history.t_stale,
                        kHistoryLag + 1)
      : history.start >= steps * epochs
          ? fmt::format("history.start = {} of {}", history.start, counted(steps * epochs, "step"))
      : history.p_grad == 0    ? std::string("history.p_grad = 0")
      : history.recompute >= 1 ? std::string("history.recompute = 1")
                               : std::string();
  if (!never.empty())
    return fmt::format("no row of history is ever read ({}): training is that without", never);
  if (history.t_stale <= steps) return {};
  return fmt::format(
      "history.t_stale = {} is {:.1f} epochs of {}: rows that old may cost accuracy; see docs/history.md, "
      "or set fewer",
      history.t_stale, static_cast<double>(history.t_stale) / static_cast<double>(steps),
      counted(steps, "step"));
}

}  // namespace

void say_held(std::span<const HeldHistory> held, EpochReport& report) {
  auto lines = nlohmann::ordered_json::array();
  for (const auto& some : held)
    lines.push_back({{"layer", some.layer}, {"ages", {some.youngest, some.oldest}}, {"rows", some.rows}});
  report.remarks.push_back({kHistoryGroup, "held", lines.dump()});
}

std::string history_lines(std::span<const EpochReport> epochs) {
  const auto sum = [&](const char* name) { return total(epochs, kHistoryGroup, name); };
  if (sum("needed_rows").value_or(0) == 0) return {};
  const auto inputs = sum("input_rows_of_sample"), edges = sum("edges_of_sample");
  return fmt::format("history: {:.0f} % of the hidden rows were read, not computed; {}\n",
                     percent(*sum("hits"), *sum("needed_rows")),
                     inputs && edges
                         ? fmt::format("left of the sample: {:.0f} % of its input rows, {:.0f} % of its "
                                       "edges",
                                       percent(*sum("input_rows"), *inputs), percent(*sum("edges"), *edges))
                         : "what they alone need was not drawn");
}

PlannedHook plan_history(const PlannedTraining& training, double) {
  const auto& history = training.config.history;
  if (history.kind == "none") return {};
  PlannedHook part = {
      .kept = {kept_by_history(training)},
      .draws = history.draw == "needed",
      .bias = "rows of history, of earlier steps",
      .not_prefetched = fmt::format(
          "history.kind = \"{}\", which spares some of it: how much shows when training", history.kind),
      .warning = warning_of(history, training.steps(), training.config.train.epochs)};
  part.rows_kept = part.kept[0].all();
  part.holds_cache = true;
  if (part.rows_kept == 0) return part;
  part.cures = history.entries > 0 ? ", a smaller history.entries" : ", history.entries = N rows at most";
  if (history.stored != "uint8") part.cures += ", history.stored = \"uint8\"";
  return part;
}

}  // namespace espalier
