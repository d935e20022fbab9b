#include <algorithm>
#include <utility>

#include "espalier/base/error.hpp"
#include "espalier/feature/input_stores.hpp"
#include "espalier/partition/owned_reader.hpp"

namespace espalier {

namespace {

// Those of a table that are features.
FeatureStore read_store(const Grid& grid, const GraphFile& file, const Ownership& ownership,
                        const InputTable& table) {
  const auto owners = table.held.owners(ownership);
  const OwnedReader reader(grid, file, owners);
  const auto rows = [&]<class T>(T) {
    return table.held.all() ? reader.features<T>() : reader.features<T>(table.held, table.width);
  };
  auto store =
      table.half ? FeatureStore(grid, owners, rows(Half())) : FeatureStore(grid, owners, rows(float()));
  store.hold(table.held);
  return store;
}

// graph.feature_norm.
void normalize(FeatureStore& store, const std::string& feature_norm, const Standardization& standard) {
  if (feature_norm == "row") store.normalize_rows();
  if (feature_norm != "standard") return;
  if (standard.mean.empty())
    store.standardize();
  else
    store.standardize(standard);
}

}  // namespace

std::vector<FeatureStore> read_features(const Grid& grid, const GraphFile& file, const Ownership& ownership,
                                        std::span<const InputTable> tables, const std::string& feature_norm,
                                        const Standardization& standard) {
  std::vector<FeatureStore> stores;
  for (const auto& table : tables) {
    if (table.learnt) continue;
    stores.push_back(read_store(grid, file, ownership, table));
    normalize(stores.back(), feature_norm, standard);
  }
  return stores;
}

}  // namespace espalier
