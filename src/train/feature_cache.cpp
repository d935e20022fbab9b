#include "feature_cache.inl.hpp"

#include <algorithm>

#include "espalier/feature/cache_policy.hpp"
#include "espalier/feature/input_tables.hpp"
#include "espalier/feature/row_cache.hpp"

namespace espalier {

void say_seconds_of_disk(const Communicator& comm, const DiskCounts& mine, EpochReport& report) {
  const auto say = [&](const char* name, double seconds) {
    report.remarks.push_back(
        {kDiskGroup, name, fmt::format("{:.6f}", comm.all_reduce(seconds, Reduction::kMax, "report"))});
  };
  say("seconds", mine.seconds);
  say("waited", mine.waited);
}

std::string disk_line(std::span<const EpochReport> epochs) {
  const auto rows = total(epochs, kDiskGroup, "rows"), kept = total(epochs, kDiskGroup, "kept"),
             bytes = total(epochs, kDiskGroup, "bytes");
  if (!rows || !kept || !bytes) return {};
  const auto seconds = [&](std::string_view name) {
    double sum = 0;
    for (const auto& epoch : epochs)
      for (const auto& remark : epoch.remarks)
        if (remark.group == kDiskGroup && remark.name == name) sum += std::stod(remark.json);
    return sum;
  };
  return fmt::format(
      "rows on disk: {} wanted, {:.1f} % of them kept in memory, {:.3f} MB read in {:.2f} s, of which steps "
      "waited {:.2f} s\n",
      *rows, 100 * static_cast<double>(*kept) / static_cast<double>(std::max<std::int64_t>(1, *rows)),
      static_cast<double>(*bytes) / 1e6, seconds("seconds"), seconds("waited"));
}

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

namespace {

// Of features of a job with such a share of the vertices: rows, and their bytes.
std::pair<double, double> features_of(const PlannedTraining& training, double share) {
  double rows = 0, bytes = 0;
  for (const auto& table : input_tables(training.graph, training.config)) {
    if (table.trainable) continue;
    const double of_table = share * static_cast<double>(table.held.count(training.graph.nodes));
    rows += of_table;
    bytes += of_table * static_cast<double>(table.row_bytes());
  }
  return {rows, bytes};
}

}  // namespace

// An evaluation keeps rows of its own in what training gives back.
PlannedHook plan_feature_cache(const PlannedTraining& training, double rows_kept_before) {
  const auto& config = training.config;
  const auto memory = static_cast<double>(cache_memory(config.run));
  if (memory == 0) return {};
  double left = std::max(0.0, memory - rows_kept_before);
  PlannedHook part = {.cures = ", a smaller run.cache_memory"};
  // feature/cache_policy.hpp: keys in a heap, a list; the uses of a window.
  double choice = 0;
  const auto keep = [&](const char* name, double rows, double bytes) {
    const auto kept = cache_bytes(rows, bytes, left);
    if (kept.all() == 0) return;
    part.kept.push_back({name, kept.rows, kept.found_by});
    part.rows_kept += kept.all();
    left -= kept.all();
    choice += (8 + 24 + 24) * kept.found_by / static_cast<double>(RowCache::kFoundBy);
  };
  const double others = 1 - static_cast<double>(training.replication) / static_cast<double>(training.ranks);
  const bool on_disk = config.graph.features_on_disk(), spills = !config.run.spill.empty();
  if (on_disk || spills) {
    const auto of_features = on_disk ? features_of(training, training.share) : std::pair(0.0, 0.0);
    const double hidden_rows = spills ? training.share * static_cast<double>(training.graph.nodes) : 0;
    keep("rows on disk", std::max(of_features.first, hidden_rows),
         std::max(of_features.second, 4 * hidden_rows * static_cast<double>(config.model.hidden)));
  }
  const auto of_others = features_of(training, others);
  keep("features of others", of_others.first, of_others.second);
  if (choice == 0) return part;
  if (cache_rule_of(config.run.cache_policy) == CacheRule::kBelady)
    choice += 16 * training.rows_ahead * (on_disk ? 1 : others);
  part.kept.push_back({"which of them to keep", 0, choice});
  return part;
}

}  // namespace espalier
