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

// Columns of several types, or of several tables, have nothing in common.
void check_standard(const GraphInfo& info) {
  const auto featured = std::ranges::count_if(info.types, [](const auto& type) { return type.features > 0; });
  if (info.types.size() > 1 && featured != 1)
    usage_error(
        "graph.feature_norm = standard has no meaning for {} types with features, whose columns differ; use "
        "none or row",
        featured);
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
  if (tables.empty() && file.info().types.size() > 1)
    input_error(
        "{}: no vertex type has features (/nodes/TYPE/features), so there is nothing to train on; "
        "model.embedding = 64 learns rows for all of them",
        file.path());
  if (tables.empty())
    input_error(
        "{}: the graph has no features (/nodes/features), so there is nothing to train on; "
        "model.embedding = 64 learns a row for each vertex",
        file.path());
  if (feature_norm == "standard") check_standard(file.info());
  std::vector<FeatureStore> stores;
  for (const auto& table : tables) {
    if (table.learnt) continue;
    stores.push_back(read_store(grid, file, ownership, table));
    normalize(stores.back(), feature_norm, standard);
  }
  return stores;
}

}  // namespace espalier
