#include <algorithm>
#include <cmath>
#include <utility>

#include "espalier/comm/agree.hpp"
#include "espalier/feature/disk_rows.hpp"
#include "espalier/feature/input_stores.hpp"
#include "espalier/partition/owned_reader.hpp"

namespace espalier {

namespace {

// What reading a table needs.
struct TableReading {
  const Grid& grid;
  const GraphFile& file;
  const Ownership& owners;
  const InputTable& table;
  const std::string& norm;
  OwnedReader reader;

  std::int64_t my_rows() const { return owners.size(owners.parts() > 1 ? grid.row() : 0); }
};

// ---- as the file has them ----

StoredRows<Cpu> read_rows(const TableReading& of, Standardization& standard) {
  const auto& table = of.table;
  StoredRows<Cpu> rows;
  if (table.half)
    rows = of.reader.features<Half>(table.held, table.width);
  else
    rows = of.reader.features<float>(table.held, table.fetched_width());
  if (of.norm == "row")
    table.pairs > 0 ? normalize_pairs(std::get<Matrix<float>>(rows)) : normalize_rows(rows);
  if (of.norm == "standard") {
    if (standard.mean.empty()) standard = measure_columns(rows, of.grid.column_comm(), of.owners.rows());
    standardize(rows, standard);
  }
  return rows;
}

// ---- in fewer bits: read again and again, some at a time, so that no time has all as floats ----

RowsInParts normalized_pieces(const TableReading& of, Standardization& standard) {
  const auto as_read = [&of](const PieceVisit& visit) {
    of.reader.features_in_pieces<float>(of.table.held, of.table.width,
                                        [&](Matrix<float> rows) { visit(StoredRows<Cpu>(std::move(rows))); });
  };
  if (of.norm == "standard" && standard.mean.empty())
    standard = measure_columns(as_read, of.table.width, of.grid.column_comm(), of.owners.rows());
  return [&of, &standard, as_read](const auto& use) {
    as_read([&](const StoredRows<Cpu>& piece) {
      if (of.norm == "none") return use(std::get<Matrix<float>>(piece));
      auto rows = piece;
      if (of.norm == "row") normalize_rows(rows);
      if (of.norm == "standard") standardize(rows, standard);
      use(std::get<Matrix<float>>(rows));
    });
  };
}

StoredRows<Cpu> pack(const TableReading& of, Standardization& standard) {
  const auto pieces = normalized_pieces(of, standard);
  const auto bits = static_cast<int>(of.table.bits);
  PackedRows packed;
  packed.packing = measure_packing(pieces, of.table.width, bits, of.grid.column_comm());
  packed.resize(of.my_rows(), words_of_packed(of.table.width, bits));
  std::int64_t done = 0;
  pieces([&](const Matrix<float>& rows) {
    pack_rows(packed.packing, rows, {rows.rows, packed.columns, packed.row(done)});
    done += rows.rows;
  });
  return packed;
}

StoredRows<Cpu> narrow(const TableReading& of, Standardization& standard) {
  Matrix<Half> halves(of.my_rows(), of.table.width);
  float largest = 0;
  auto* to = halves.data.data();
  normalized_pieces(of, standard)([&](const Matrix<float>& rows) {
    for (const auto x : rows.data) {
      *to = to_half(x);
      if (!std::isfinite(to_float(*to++))) largest = std::max(largest, std::abs(x));
    }
  });
  agree(of.grid.world(), [&] {
    if (largest > 0)
      usage_error("graph.feature_bits = 16: {} has a feature of {}, and float16 ends at 65504; use 32 or 8",
                  of.file.path(), largest);
  });
  return halves;
}

StoredRows<Cpu> read_table(const TableReading& of, Standardization& standard) {
  if (of.table.packed()) return pack(of, standard);
  return of.table.bits == 16 && !of.table.half ? narrow(of, standard) : read_rows(of, standard);
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
    auto rows = read_table({grid, file, owners, table, feature_norm, OwnedReader(grid, file, owners)},
                           features.standard);
    features.stores.emplace_back(grid, owners, std::move(rows)).hold(table.held);
  }
  return features;
}

}  // namespace espalier
