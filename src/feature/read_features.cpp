#include <utility>

#include "espalier/feature/input_stores.hpp"
#include "espalier/partition/owned_reader.hpp"

namespace espalier {

namespace {

// Those of a table that are features.
StoredRows<Cpu> read_rows(const OwnedReader& reader, const InputTable& table) {
  if (table.half) return reader.features<Half>(table.held, table.width);
  return reader.features<float>(table.held, table.width);
}

}  // namespace

InputFeatures read_features(const Grid& grid, const GraphFile& file, const Ownership& ownership,
                            std::span<const InputTable> tables, const std::string& feature_norm,
                            const Standardization& standard) {
  InputFeatures features = {.stores = {}, .standard = standard};
  for (const auto& table : tables) {
    if (table.learnt) continue;
    const auto owners = table.held.owners(ownership);
    auto rows = read_rows(OwnedReader(grid, file, owners), table);
    if (feature_norm == "row") normalize_rows(rows);
    if (feature_norm == "standard") {
      if (features.standard.mean.empty())
        features.standard = measure_columns(rows, grid.column_comm(), owners.rows());
      standardize(rows, features.standard);
    }
    features.stores.emplace_back(grid, owners, std::move(rows)).hold(table.held);
  }
  return features;
}

}  // namespace espalier
