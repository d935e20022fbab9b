#include "memory.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "espalier/sample/sampler.hpp"

namespace espalier {

namespace {

// The least memory.max of this process's control group (version 2) and of the groups above it.
double control_group_limit() {
  double least = std::numeric_limits<double>::infinity();
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::/")) continue;
    for (std::filesystem::path group = line.substr(4);; group = group.parent_path()) {
      std::ifstream file(std::filesystem::path("/sys/fs/cgroup") / group / "memory.max");
      double limit = 0;
      if (file >> limit) least = std::min(least, limit);  // "max" is no number: no limit here
      if (group.empty()) break;
    }
  }
  return least;
}

double parameters_of(const GraphInfo& graph, const ModelConfig& model) {
  const double hidden = static_cast<double>(model.hidden), matrices = model.kind == "sage" ? 2 : 1;
  double sum = 0;
  for (std::int64_t layer = 1; layer <= model.layers; ++layer)
    sum += matrices * (layer == 1 ? static_cast<double>(graph.features) : hidden) *
           (layer == model.layers ? static_cast<double>(graph.classes) : hidden);
  return sum;
}

}  // namespace

std::int64_t node_memory() {
  const double machine =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  return static_cast<std::int64_t>(std::min(machine, control_group_limit()));
}

double topology_bytes(const GraphInfo& graph, bool with_values) {
  const double index = graph.nodes < (std::int64_t{1} << 31) ? 4 : 8;
  return static_cast<double>(graph.edges) * (index + (with_values ? 4 : 0)) +
         8.0 * static_cast<double>(graph.nodes);
}

double feature_bytes(const GraphInfo& graph) {
  return static_cast<double>(graph.nodes) * static_cast<double>(graph.features) *
         (graph.half_features ? 2 : 4);
}

std::string bytes_in_words(double bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  int unit = 0;
  for (; bytes >= 1024 && unit < 5; ++unit) bytes /= 1024;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, units[unit]);
}

ResidentMemory resident_memory(const GraphInfo& graph, const Config& config, std::int64_t ranks,
                               std::int64_t replication, bool training) {
  const double share = static_cast<double>(replication) / static_cast<double>(ranks);
  ResidentMemory memory;
  const bool with_values =
      graph.weighted || config.model.kind == "gcn" || sampler_kind_of(config.sampler.kind).layer_wise;
  memory.topology = topology_bytes(graph, with_values) * (config.grid.topology == "replicated" ? 1 : share);
  const bool self_loops =
      config.model.kind == "gcn" || (config.sampler.kind == "ladies" && config.sampler.mode == "reference");
  if (self_loops)
    memory.loading =
        topology_bytes(graph, graph.weighted) * (config.grid.topology == "replicated" ? 1 : share);
  if (config.grid.schedule == "staged-oblivious" && config.grid.topology == "partitioned")
    memory.exchange = memory.topology;
  if (!training) return memory;
  memory.features = feature_bytes(graph) * share;
  const auto hidden = static_cast<double>(config.model.layers > 1 ? config.model.hidden : 0);
  const double widest = std::max(hidden, static_cast<double>(graph.classes));
  memory.evaluation = 4 * static_cast<double>(graph.nodes) * share *
                      (hidden + widest * (1 + 1 / static_cast<double>(replication)));
  memory.model = 6 * 4 * parameters_of(graph, config.model);
  return memory;
}

}  // namespace espalier
