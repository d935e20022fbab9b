#include "removed_keys.hpp"

#include <algorithm>
#include <vector>

namespace espalier {

namespace {

const std::vector<Removed>& table() {
  static const std::vector<Removed> all = {
      {"history.kind", "variate", "",
       "raise sampler.fanout, which gives more, with \"none\" or \"replace\" (docs/decisions/026)"},
      {"history.admit", "", "", "leave it out: rows are kept whether a minibatch awaits them or not"},
      {"history.memory", "", "", "write run.cache_memory, which keeps rows on disk, too"},
      {"history.feature_rows", "", "", "write run.cache_policy: \"degree\", \"lru\" or \"belady\""},
      {"output.mllog", "", "", "scripts/mllog.py OUTPUT_DIR prints the lines of a training that is done"},
      {"history.lag", "", "1", "leave it out: a step reads what was there two steps before"},
      {"history.layers", "", "[]", "leave it out: rows of all hidden layers are kept"},
      {"history.saved", "", "", "leave it out: checkpoints hold the cache"},
      {"history.audit", "", "", "leave it out: cached rows are not compared with exact ones any more"},
      {"sampler.batches", "", "",
       "sampler.groups says it: 0 (the default) for uniform batches, as many groups as there were (64, where "
       "none were given) for local ones"},
      {"graph.share_features", "", "", "where it is true write graph.features_on = \"node\""},
      {"grid.latency_us", "", "", "leave it out, or name a schedule in grid.schedule"},
      {"grid.bandwidth_gbs", "", "", "leave it out, or name a schedule in grid.schedule"},
      {"run.exchange_rounds", "", "",
       "leave it out: GPUs that are known to share PCIe links exchange in rounds"},
  };
  return all;
}

const Removed* find(const std::string& name, const std::string& value) {
  const auto found = std::ranges::find_if(
      table(), [&](const Removed& one) { return one.name == name && one.value == value; });
  return found == table().end() ? nullptr : &*found;
}

}  // namespace

const Removed* removed_key(const std::string& name) {
  return find(name, "");
}

const Removed* removed_value(const std::string& name, const std::string& value) {
  return value.empty() ? nullptr : find(name, value);
}

}  // namespace espalier
