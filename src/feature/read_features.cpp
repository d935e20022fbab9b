// Tables of features from a graph's file into the stores of a grid: as the file has them, in
// another form, or left on disk.
#include <algorithm>
#include <optional>
#include <utility>

#include "espalier/base/error.hpp"
#include "espalier/base/index_type.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/feature/disk_rows.hpp"
#include "espalier/feature/edge_store.hpp"
#include "espalier/feature/input_stores.hpp"
#include "espalier/feature/spilled_rows.hpp"
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

  int part() const { return owners.parts() > 1 ? grid.row() : 0; }
  std::int64_t my_rows() const { return owners.size(part()); }
};

// ---- as the file has them ----

StoredRows<Cpu> read_rows(const TableReading& of, Standardization& standard) {
  const auto& kind = *of.table.in_file;
  auto rows = with_numbers_of(kind, [&]<class S>(S) {
    return StoredRows<Cpu>(of.reader.features<S>(of.table.held, of.table.fetched_width()), kind);
  });
  if (of.norm == "standard" && standard.mean.empty())
    standard = measure_columns([&](const auto& use) { each_numbers(rows, false, use); }, rows.form.width,
                               of.grid.column_comm(), of.owners.rows());
  if (of.norm != "none")
    each_numbers(rows, true, [&](auto& numbers) { normalize(of.norm, standard, kind, numbers); });
  return rows;
}

// ---- in another form: read again and again, so that no time has all as floats ----

RowsInParts normalized_pieces(const TableReading& of, Standardization& standard) {
  const auto as_read = [&of](const auto& use) {
    of.reader.features_in_pieces<float>(of.table.held, of.table.width, use);
  };
  if (of.norm == "standard" && standard.mean.empty())
    standard = measure_columns(as_read, of.table.width, of.grid.column_comm(), of.owners.rows());
  return [&of, &standard, as_read](const auto& use) {
    as_read([&](Matrix<float> rows) {
      normalize(of.norm, standard, *of.table.kept, rows);
      use(rows);
    });
  };
}

// Calls use(form, each_piece): what calls take(rows) with one piece of the rows after another, as
// they are stored.
template <class Use>
auto converted_pieces(const TableReading& of, Standardization& standard, Use use) {
  const auto pieces = normalized_pieces(of, standard);
  const auto& kind = *of.table.kept;
  const auto form = kind.measure(pieces, of.table.width, of.grid.column_comm());
  const auto loss = kind.loss(form);
  auto result = use(form, [&](const auto& take) {
    pieces([&](const Matrix<float>& rows) {
      StoredRows<Cpu> written(form, rows.rows);
      write_rows(form, rows, written.data);
      loss->add(rows, written.data);
      take(written);
    });
  });
  std::string type;
  for (int t = 0; of.file.info().typed && t < std::ssize(of.file.info().types); ++t)
    if (of.table.held.holds_type(t)) type = " of " + of.file.info().schema.types()[t].name;
  loss->judge(of.grid, of.file.path(), type);
  return result;
}

StoredRows<Cpu> read_table(const TableReading& of, Standardization& standard) {
  if (!of.table.converted()) return read_rows(of, standard);
  return converted_pieces(of, standard, [&](const RowForm& form, const auto& each_piece) {
    StoredRows<Cpu> all(form, of.my_rows());
    auto* to = all.data;
    each_piece([&](const StoredRows<Cpu>& piece) { to = std::copy_n(piece.data, piece.bytes(), to); });
    return all;
  });
}

// ---- on disk: where the graph file has them, or in another form in a file of this rank ----

std::shared_ptr<const DiskRows> leave_table(const TableReading& of, Standardization& standard) {
  auto disk = std::make_shared<DiskRows>(of.grid.world(), of.file, of.table);
  disk->normalize(of.grid.world(), of.norm, standard);
  return disk;
}

// Reading is collective, so who cannot write goes on with the others.
std::shared_ptr<const DiskRows> spill_table(const TableReading& of, Standardization& standard,
                                            const std::string& folder) {
  return converted_pieces(of, standard, [&](const RowForm& form, const auto& each_piece) {
    std::optional<SpilledRows> file;
    std::optional<UserError> wrong;
    agree(of.grid.world(), [&] { file.emplace(folder, of.my_rows(), form, "a table of features"); });
    std::int64_t done = 0;
    each_piece([&](const StoredRows<Cpu>& piece) {
      try {
        if (!wrong) file->write(done, piece.rows, piece.data);
      } catch (const UserError& error) {
        wrong = error;
      }
      done += piece.rows;
    });
    agree(of.grid.world(), [&] {
      if (wrong) throw UserError(*wrong);
    });
    return file->release(of.owners, of.part());
  });
}

}  // namespace

InputFeatures read_features(const Grid& grid, const GraphFile& file, const Ownership& ownership,
                            std::span<const InputTable> tables, const std::string& feature_norm,
                            const Standardization& standard, bool on_disk, const std::string& spill) {
  InputFeatures features = {.stores = {}, .standard = standard};
  // Who keeps rows on disk has little memory for a piece of them.
  const auto piece_bytes = std::int64_t{on_disk ? 8 : 64} << 20;
  for (const auto& table : tables) {
    if (table.trainable) continue;
    const auto owners = table.held.owners(ownership);
    const TableReading of = {grid,  file,         owners,
                             table, feature_norm, OwnedReader(grid, file, owners, piece_bytes)};
    if (!on_disk)
      features.stores.emplace_back(grid, owners, read_table(of, features.standard));
    else if (table.converted())
      features.stores.emplace_back(grid, owners, spill_table(of, features.standard, spill));
    else
      features.stores.emplace_back(grid, owners, leave_table(of, features.standard));
    features.stores.back().hold(table.held);
  }
  return features;
}

EdgeStore read_edges(const Grid& grid, const GraphFile& file, const Ownership& ownership) {
  const auto table = edge_table(file.info());
  const auto& schema = file.info().schema;
  return with_index_type(file.info().columns, [&]<class Index>(Index) {
    return with_numbers_of(*table.kind, [&]<class T>(T) -> EdgeStore {
      auto [entries, rows] = OwnedReader(grid, file, ownership).edges<Index, T>(table.held, table.width);
      return {RowStore(grid, ownership, EntryIndex{std::move(entries)}, std::move(rows)),
              EdgeColumnsOn<Cpu>(Cpu{}, schema, table.held), schema.columns()};
    });
  });
}

}  // namespace espalier
