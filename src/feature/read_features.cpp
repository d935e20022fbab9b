#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "espalier/base/error.hpp"
#include "espalier/base/index_type.hpp"
#include "espalier/base/log.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/feature/code_use.hpp"
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
  const auto& table = of.table;
  StoredRows<Cpu> rows;
  if (table.half)
    rows = of.reader.features<Half>(table.held, table.width);
  else
    rows = of.reader.features<float>(table.held, table.fetched_width());
  if (of.norm == "row") normalize_rows(rows, table.pairs > 0);
  if (of.norm == "standard") {
    if (standard.mean.empty())
      standard = measure_columns([&](const PieceVisit& visit) { visit(rows); }, table.fetched_width(),
                                 of.grid.column_comm(), of.owners.rows());
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

// Collective. Columns of which codes leave little: they are named, for nothing else says so.
void tell_of_poor_columns(const TableReading& of, const CodeUse& use) {
  constexpr std::size_t kNamed = 5;
  const auto poor = use.poor_columns(of.grid.column_comm());
  if (poor.empty() || of.grid.world().rank() != 0) return;
  std::string named;
  for (std::size_t k = 0; k < std::min(poor.size(), kNamed); ++k) {
    const bool many = poor[k].numbers > CodeUse::kMostNumbers;
    named += fmt::format("{}column {} keeps {} of {}{}", k == 0 ? "" : ", ", poor[k].column, poor[k].codes,
                         many ? "more than " : "", many ? CodeUse::kMostNumbers : poor[k].numbers);
  }
  std::string type;
  for (int t = 0; of.file.info().typed && t < std::ssize(of.file.info().types); ++t)
    if (of.table.held.holds_type(t)) type = " of " + of.file.info().schema.types()[t].name;
  log::warning(
      "graph.feature_bits = {}: {} of {} columns of features{} keep few of their numbers, because some "
      "number is "
      "far from the others: {}{}; clip such numbers, or use more bits",
      of.table.bits, poor.size(), of.table.width, type, named, poor.size() > kNamed ? ", ..." : "");
}

// Calls use(form, each_piece): none of the rows, as they are stored, and what calls take(rows) with
// one piece of them after another.
template <class Use>
auto packed_pieces(const TableReading& of, Standardization& standard, Use use) {
  const auto pieces = normalized_pieces(of, standard);
  const auto bits = static_cast<int>(of.table.bits);
  QuantisedRows form;
  form.packing = measure_packing(pieces, of.table.width, bits, of.grid.column_comm());
  form.resize(0, words_of_quantised(of.table.width, bits));
  CodeUse codes(form.packing);
  auto result = use(form, [&](const auto& take) {
    Matrix<QuantisedWord> packed;
    pieces([&](const Matrix<float>& rows) {
      packed.resize(rows.rows, form.columns);
      quantise_rows(form.packing, rows, packed);
      codes.add(rows, packed);
      take(packed);
    });
  });
  tell_of_poor_columns(of, codes);
  return result;
}

// The same of float16.
template <class Use>
auto half_pieces(const TableReading& of, Standardization& standard, Use use) {
  return use(Matrix<Half>(0, of.table.width), [&](const auto& take) {
    Matrix<Half> halves;
    float largest = 0;
    normalized_pieces(of, standard)([&](const Matrix<float>& rows) {
      halves.resize(rows.rows, rows.columns);
      std::ranges::transform(rows.data, halves.data.begin(), [&](float x) {
        const auto half = to_half(x);
        if (!std::isfinite(to_float(half))) largest = std::max(largest, std::abs(x));
        return half;
      });
      take(halves);
    });
    agree(of.grid.world(), [&] {
      if (largest > 0)
        usage_error("graph.feature_bits = 16: {} has a feature of {}, and float16 ends at 65504; use 32 or 8",
                    of.file.path(), largest);
    });
  });
}

template <class Use>
auto pieces_in_fewer_bits(const TableReading& of, Standardization& standard, Use use) {
  return of.table.quantised() ? packed_pieces(of, standard, use) : half_pieces(of, standard, use);
}

StoredRows<Cpu> read_table(const TableReading& of, Standardization& standard) {
  if (!of.table.in_fewer_bits()) return read_rows(of, standard);
  return pieces_in_fewer_bits(of, standard, [&](auto all, const auto& each_piece) -> StoredRows<Cpu> {
    all.resize(of.my_rows(), all.columns);
    auto to = all.data.begin();
    each_piece([&](const auto& piece) { to = std::ranges::copy(piece.data, to).out; });
    return all;
  });
}

// ---- on disk: where the graph file has them, or in fewer bits in a file of this rank ----

std::shared_ptr<const DiskRows> leave_table(const TableReading& of, Standardization& standard) {
  auto disk = std::make_shared<DiskRows>(of.grid.world(), of.file, of.table);
  disk->normalize(of.grid.world(), of.norm, standard);
  return disk;
}

// Reading is collective, so who cannot write goes on with the others.
std::shared_ptr<const DiskRows> spill_table(const TableReading& of, Standardization& standard,
                                            const std::string& folder) {
  return pieces_in_fewer_bits(of, standard, [&](const auto& form, const auto& each_piece) {
    std::optional<SpilledRows> file;
    std::optional<UserError> wrong;
    agree(of.grid.world(), [&] { file.emplace(folder, of.my_rows(), form, "a table of features"); });
    std::int64_t done = 0;
    each_piece([&]<class T>(const Matrix<T>& piece) {
      try {
        if (!wrong) file->write<T>(done, piece);
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
    else if (table.in_fewer_bits())
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
    const auto read = [&]<class T>(T) -> EdgeStore {
      auto [entries, rows] = OwnedReader(grid, file, ownership).edges<Index, T>(table.held, table.width);
      return {RowStore(grid, ownership, EntryIndex{std::move(entries)}, std::move(rows)),
              EdgeColumnsOn<Cpu>(Cpu{}, schema, table.held), schema.columns()};
    };
    return table.half ? read(Half{}) : read(float{});
  });
}

}  // namespace espalier
