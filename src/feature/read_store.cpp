#include <utility>

#include "espalier/base/error.hpp"
#include "espalier/feature/store.hpp"
#include "espalier/partition/owned_reader.hpp"

namespace espalier {

FeatureStore read_feature_store(const Grid& grid, const GraphFile& file, const Ownership& ownership,
                                const std::string& feature_norm, const Standardization& standard) {
  const auto& info = file.info();
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
