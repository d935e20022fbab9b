#include <utility>

#include "espalier/base/error.hpp"
#include "espalier/feature/store.hpp"

namespace espalier {

FeatureStore read_feature_store(const Grid& grid, const GraphFile& file, const std::string& feature_norm,
                                const Standardization& standard) {
  const auto& info = file.info();
  if (info.features == 0)
    input_error("{}: the graph has no features (/nodes/features), so there is nothing to train on",
                file.path());
  const auto partition = block_partition(info.nodes, grid.rows());
  const auto begin = partition.begin(grid.row()), end = partition.end(grid.row());
  auto store = info.half_features ? FeatureStore(grid, partition, file.read_features<Half>(begin, end))
                                  : FeatureStore(grid, partition, file.read_features<float>(begin, end));
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
