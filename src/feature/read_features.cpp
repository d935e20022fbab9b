#include <utility>

#include "espalier/feature/disk_rows.hpp"
#include "espalier/feature/input_stores.hpp"
#include "espalier/partition/owned_reader.hpp"

namespace espalier {

namespace {

// Those of a table that are features.
StoredRows<Cpu> read_rows(const OwnedReader& reader, const InputTable& table) {
  if (table.half) return reader.features<Half>(table.held, table.width);
  return reader.features<float>(table.held, table.fetched_width());
}

}  // namespace

InputFeatures read_features(const Grid& grid, const GraphFile& file, const Ownership& ownership,
                            std::span<const InputTable> tables, const std::string& feature_norm,
                            const Standardization& standard, bool on_disk) {
  InputFeatures features = {.stores = {}, .standard = standard};
  for (const auto& table : tables) {
    if (table.learnt) continue;
    const auto owners = table.held.owners(ownership);
    if (on_disk) {
      auto disk = std::make_shared<DiskRows>(grid.world(), file, table);
      disk->normalize(grid.world(), feature_norm, features.standard);
      features.stores.emplace_back(grid, owners, std::shared_ptr<const DiskRows>(std::move(disk)))
          .hold(table.held);
      continue;
    }
    auto rows = read_rows(OwnedReader(grid, file, owners), table);
    if (feature_norm == "row")
      table.pairs > 0 ? normalize_pairs(std::get<Matrix<float>>(rows)) : normalize_rows(rows);
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
