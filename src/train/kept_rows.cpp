#include "kept_rows.hpp"

#include <algorithm>

#include "espalier/feature/input_tables.hpp"
#include "espalier/feature/row_cache.hpp"
#include "espalier/feature/row_choice.hpp"

namespace espalier {

std::string saved_line(std::span<const EpochReport> epochs) {
  const auto sum = [&](const char* name) { return total(epochs, "saved", name); };
  const auto kept = sum("kept"), pruned = sum("pruned"), history = sum("history");
  if (!kept || !history || (*kept == 0 && *history == 0 && pruned == 0)) return {};
  const auto mb = [](std::int64_t bytes) { return static_cast<double>(bytes) / 1e6; };
  return fmt::format("rows of others not fetched: {}, {:.3f} MB kept here; history itself moved {:.3f} MB\n",
                     pruned ? fmt::format("{:.3f} MB were pruned", mb(*pruned))
                            : "all that was not drawn, nobody knows how much",
                     mb(*kept), mb(-*history));
}

PlannedPart plan_kept_rows(const PlannedTraining& training, double rows_kept_before) {
  const auto& history = training.config.history;
  const auto memory = static_cast<double>(memory_of(history));
  if (memory == 0) return {};
  const double others = 1 - static_cast<double>(training.replication) / static_cast<double>(training.ranks);
  double rows = 0, bytes = 0;  // of others, all that there are
  for (const auto& table : input_tables(training.graph, training.config.model.embedding)) {
    if (table.learnt) continue;
    const double of_table = others * static_cast<double>(table.held.count(training.graph.nodes));
    rows += of_table;
    bytes += of_table * static_cast<double>(table.row_bytes());
  }
  const double found_by = rows * static_cast<double>(RowCache::kFoundBy),
               left = std::max(0.0, memory - rows_kept_before),
               fits = std::min(1.0, left / std::max(1.0, bytes + found_by));
  PlannedPart part = {.cures = ", a smaller history.memory"};
  if (rows == 0 || fits == 0) return part;
  // feature/row_choice.hpp: keys in a heap, a list; the uses of a window.
  double choice = (8 + 24 + 24) * fits * rows;
  if (row_rule_of(history.feature_rows) == RowRule::kBelady) choice += 16 * training.rows_ahead;
  part.kept = {{"features of others", fits * bytes, fits * found_by}, {"which of them to keep", 0, choice}};
  part.rows_kept = part.kept[0].all();
  return part;
}

}  // namespace espalier
