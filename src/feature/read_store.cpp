#include <algorithm>
#include <utility>

#include "espalier/base/error.hpp"
#include "espalier/feature/store.hpp"
#include "espalier/partition/owned_reader.hpp"

namespace espalier {

namespace {

FeatureStore read_typed_store(const Grid& grid, const GraphFile& file, const Ownership& ownership,
                              const std::string& feature_norm) {
  const auto& info = file.info();
  std::int64_t width = 0;
  bool half = true;
  for (std::size_t t = 0; t < info.types.size(); ++t) {
    const auto& type = info.types[t];
    if (type.features == 0) continue;
    if (width > 0 && type.features != width)
      input_error("{}: types have features of {} and of {} columns; give them one width (pad with zeros)",
                  file.path(), width, type.features);
    width = type.features;
    half = half && type.half_features;
  }
  if (width == 0)
    input_error("{}: no vertex type has features (/nodes/TYPE/features), so there is nothing to train on",
                file.path());
  const auto featured = std::ranges::count_if(info.types, [](const auto& type) { return type.features > 0; });
  if (feature_norm == "standard" && featured != 1)
    usage_error(
        "graph.feature_norm = standard has no meaning for {} types with features, whose columns differ; use "
        "none or row",
        featured);
  const auto held = types_with_features(info);
  const auto owners = held.owners(ownership);
  const OwnedReader reader(grid, file, owners);
  auto store = half ? FeatureStore(grid, owners, reader.features<Half>(held, width))
                    : FeatureStore(grid, owners, reader.features<float>(held, width));
  store.hold(held);
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

FeatureStore read_feature_store(const Grid& grid, const GraphFile& file, const Ownership& ownership,
                                const std::string& feature_norm, const Standardization& standard) {
  const auto& info = file.info();
  if (info.schema.types().size() > 1) {
    auto store = read_typed_store(grid, file, ownership, feature_norm);
    normalize(store, feature_norm, standard);
    return store;
  }
  if (info.features == 0)
    input_error("{}: the graph has no features (/nodes/features), so there is nothing to train on",
                file.path());
  const OwnedReader reader(grid, file, ownership);
  auto store = info.half_features ? FeatureStore(grid, ownership, reader.features<Half>())
                                  : FeatureStore(grid, ownership, reader.features<float>());
  normalize(store, feature_norm, standard);
  return store;
}

}  // namespace espalier
