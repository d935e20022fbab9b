#include <utility>

#include "espalier/base/error.hpp"
#include "espalier/feature/store.hpp"
#include "espalier/partition/owned_reader.hpp"

namespace espalier {

namespace {

// Rows of all types as wide as those that have features; the others are zero.
template <class T>
FeatureStore read_rows_of_types(const Grid& grid, const GraphFile& file, const Ownership& ownership,
                                std::int64_t width) {
  return FeatureStore(grid, ownership, OwnedReader(grid, file, ownership).features<T>(width));
}

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
  if (feature_norm == "standard")
    usage_error("graph.feature_norm = standard has no meaning for a graph of several types; use none or row");
  auto store = half && width > 0 ? read_rows_of_types<Half>(grid, file, ownership, width)
                                 : read_rows_of_types<float>(grid, file, ownership, width);
  if (feature_norm == "row") store.normalize_rows();
  return store;
}

}  // namespace

FeatureStore read_feature_store(const Grid& grid, const GraphFile& file, const Ownership& ownership,
                                const std::string& feature_norm, const Standardization& standard) {
  const auto& info = file.info();
  if (info.schema.types().size() > 1) return read_typed_store(grid, file, ownership, feature_norm);
  if (info.features == 0)
    input_error("{}: the graph has no features (/nodes/features), so there is nothing to train on",
                file.path());
  const OwnedReader reader(grid, file, ownership);
  auto store = info.half_features ? FeatureStore(grid, ownership, reader.features<Half>())
                                  : FeatureStore(grid, ownership, reader.features<float>());
  if (feature_norm == "row") store.normalize_rows();
  if (feature_norm == "standard") {
    if (standard.mean.empty())
      store.standardize();
    else
      store.standardize(standard);
  }
  return store;
}

}  // namespace espalier
