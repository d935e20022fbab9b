// Weights, features and times of edges that were merged and went elsewhere. Each rank reads those
// of the entries of its rows in the file; what becomes of repeated ones the builder says
// (row_building.hpp), and weights and times follow the entries to where these are. Features are
// read and fetched when they are written, one relation at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "column_table.hpp"
#include "copy_contents.hpp"
#include "espalier/base/row_range.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/graph/rewrite_graph.hpp"
#include "espalier/graph/schema.hpp"
#include "espalier/sparse/csr.hpp"
#include "feature_rows.hpp"
#include "fetch_rows.hpp"
#include "row_building.hpp"

namespace espalier {

// Entries of the matrix on their way: each has the number of the entry of merged rows that it is,
// or is the reverse of, so that weights, times and features can be brought to it afterwards,
// wherever it went.

/// Rows whose entries know their edges.
template <class Index>
struct PlacedRows {
  Csr<Index> rows;
  Buffer<std::int64_t> origins = {};   ///< [entries] among the merged entries of all ranks
  Buffer<std::int64_t> times = {};     ///< [entries] when each was; empty: nobody says
  Buffer<std::int64_t> features = {};  ///< [entries] whose features each has: the number of an edge
                                       ///< of its relation in the file; empty: of itself
};

template <class Index>
struct PlacedEntry {
  Index row, column;  // of the whole matrix
  std::int64_t origin;
};

inline constexpr const char* kToRows = "edges to their rows";

/// Rows `range` of entries that lie in them, in any order, no two at one place; empties the list.
template <class Index>
PlacedRows<Index> rows_of(Buffer<PlacedEntry<Index>>& entries, const RowRange& range, std::int64_t columns) {
  using Place = std::pair<Index, std::int64_t>;  // column, origin
  PlacedRows<Index> placed;
  auto& rows = placed.rows;
  rows.rows = range.size();
  rows.columns = columns;
  rows.indptr.assign(range.size() + 1, 0);
  for (const auto& entry : entries) ++rows.indptr[entry.row - range.begin + 1];
  std::partial_sum(rows.indptr.begin(), rows.indptr.end(), rows.indptr.begin());
  Buffer<std::int64_t> next(rows.indptr.begin(), rows.indptr.end() - 1);
  Buffer<Place> sorted(entries.size());
  for (const auto& entry : entries) sorted[next[entry.row - range.begin]++] = {entry.column, entry.origin};
  entries = {};
  for (std::int64_t v = 0; v < rows.rows; ++v)
    std::sort(sorted.begin() + rows.row_begin(v), sorted.begin() + rows.row_end(v));
  rows.indices.reserve(sorted.size());
  placed.origins.reserve(sorted.size());
  for (const auto& [column, origin] : sorted) {
    rows.indices.push_back(column);
    placed.origins.push_back(origin);
  }
  return placed;
}

/// Collective. Each edge of these relations, which join a type to itself, gets its reverse, as an
/// entry of the same edge, where that is no edge. How many were added on all ranks.
template <class Index>
std::int64_t add_reverses(const Communicator& comm, const Schema& schema, const RowRange& range,
                          const std::vector<std::uint8_t>& relations, PlacedRows<Index>& placed) {
  Buffer<PlacedEntry<Index>> added;
  const auto& rows = placed.rows;
  exchange_entries<PlacedEntry<Index>>(
      comm, schema.nodes(), rows, kToRows,
      [&](std::int64_t row, std::int64_t e, auto& sent) {
        const int r = schema.relation_of(rows.indices[e]);
        const auto v = range.begin + row, u = schema.vertex_of(rows.indices[e]);
        if (relations[r] && u != v)
          sent.push_back({static_cast<Index>(u), static_cast<Index>(schema.column(r, v)), placed.origins[e]});
      },
      [&](const auto&, const auto&, const auto& reverses) {
        for (const auto& entry : reverses.data)
          if (!std::ranges::binary_search(rows.row_indices(entry.row - range.begin), entry.column))
            added.push_back(entry);
      });
  const auto count = comm.all_reduce(std::ssize(added), Reduction::kSum, "reverse edges");
  added.reserve(added.size() + rows.indices.size());
  for (std::int64_t row = 0; row < rows.rows; ++row)
    for (auto e = rows.row_begin(row); e < rows.row_end(row); ++e)
      added.push_back({static_cast<Index>(range.begin + row), rows.indices[e], placed.origins[e]});
  placed = rows_of(added, range, schema.columns());
  return count;
}

template <class Index>
class EdgeTables {
 public:
  /// Collective, as all of these. `raw`: this rank's even range of the rows, as they stand in the
  /// file, all of which must outlive it.
  EdgeTables(const Communicator& comm, const GraphFile& file, const Csr<Index>& raw)
      : comm_(comm), file_(file), raw_(raw) {
    for (int r = 0; r < std::ssize(schema().relations()); ++r)
      starts_.push_back(stretches(comm, std::ssize(entries_of(schema(), raw, r))));
  }

  /// The rows with loops and repeats as options say, without weights; counts what became of both.
  PlacedRows<Index> merge(const CleanOptions& options, CleanCounts& counts) {
    const auto edges = options.of_rows();
    const auto range = even_range(schema().nodes(), comm_.size(), comm_.rank());
    const auto raw = [&](auto visit) { for_each_entry(range, edges, visit); };
    auto rows = place_rows<Index>(raw, range, raw_.columns, weighs(raw_.has_values(), edges));
    const auto loops = raw_.entries() - rows.entries();
    const auto met = finish_rows(range, edges.duplicates, rows);
    std::array<std::int64_t, 3> sums = {loops, met.repeated, met.places};
    comm_.all_reduce(std::span<std::int64_t>(sums), Reduction::kSum, kLabel);
    std::tie(counts.loops, counts.repeated, counts.places) = std::tuple_cat(sums);
    agree(comm_, [&] {
      if (!std::ranges::all_of(rows.values, [](float weight) { return std::isfinite(weight); }))
        refuse_sum("/graph/weights");
    });
    if (has_times()) find_times(raw, range, options.latest_times, rows);
    if (has_features()) find_features(raw, range, edges, rows);
    merged_ = true;
    weights_ = std::move(rows.values);
    weighted_ = std::exchange(rows.weighted, false);
    merged_starts_ = stretches(comm_, rows.entries());
    Buffer<std::int64_t> origins(rows.indices.size());
    std::iota(origins.begin(), origins.end(), merged_starts_[comm_.rank()]);
    rows.values = {};
    return {std::move(rows), std::move(origins)};
  }

  /// Brings to merged entries, wherever they went, what they weigh, when they were and whose
  /// features they have; takes their origins.
  void follow(PlacedRows<Index>& placed) {
    const auto origins = std::exchange(placed.origins, {});
    const auto fetch = [&](auto& of_merged) {
      return fetch_entries(comm_, merged_starts_, std::exchange(of_merged, {}), origins);
    };
    if (weighted_) placed.rows.values = fetch(weights_);
    placed.rows.weighted = weighted_;
    if (has_times()) placed.times = fetch(times_);
    if (has_features()) placed.features = fetch(features_);
  }

  bool has_times(int relation) const { return file_.column(Column::kEdgeTime, relation).exists(); }
  /// Rows of a column of the relation's entries at these places. Of rows that are not merged
  /// `placed` is the raw rows.
  template <class T>
  Matrix<T> rows(Column column, int relation, const PlacedRows<Index>& placed,
                 const Buffer<std::int64_t>& places) const {
    if (merged_ && column == Column::kEdgeTime) return at_places<T>(placed.times, places);
    auto table = read<T>(column, relation);
    if (merged_) {
      if constexpr (std::is_same_v<T, float> || std::is_same_v<T, Half>) add_up(relation, table);
      return fetch_rows(comm_, starts_[relation], table,
                        at_places<std::int64_t>(placed.features, places).data);
    }
    const auto numbers = numbers_in_relations();
    Matrix<T> kept(std::ssize(places), table.columns);
    for (std::int64_t k = 0; k < kept.rows; ++k)
      std::copy_n(table.row(numbers[places[k]]), table.columns, kept.row(k));
    return kept;
  }

  /// Is anything said of the relation's edges?
  bool says_something(int relation) const {
    return std::ranges::any_of(column_table(), [&](const ColumnLine& line) {
      return is_of_edges(line) && file_.column(line.column, relation).columns > 0;
    });
  }
  /// All that is said of the relation's entries at these places.
  void write(int relation, const PlacedRows<Index>& placed, const Buffer<std::int64_t>& places,
             GraphWriter& writer) const {
    for (const auto& line : column_table()) {
      if (!is_of_edges(line)) continue;
      const auto column = file_.column(line.column, relation);
      if (column.columns == 0) continue;
      column.visit([&]<class T>(T) {
        if constexpr (!std::is_same_v<T, std::string>) {
          const auto of_places = rows<T>(line.column, relation, placed, places);
          if (line.least == 2)
            writer.write_rows(line.column, relation, of_places);
          else
            writer.write_list<T>(line.column, relation, of_places.data, column.unit);
        }
      });
    }
  }

 private:
  static constexpr const char* kLabel = "edges of a file";

  const Schema& schema() const { return file_.info().schema; }
  static bool is_of_edges(const ColumnLine& line) { return std::string_view(line.a_row_for_each) == "edges"; }
  bool has_times() const {
    return std::ranges::any_of(file_.info().edge_times, [](auto times) { return times > 0; });
  }
  bool has_features() const { return std::ranges::any_of(file_.info().edge_features, &EdgeInfo::has); }

  template <class T>
  static Matrix<T> at_places(const Buffer<std::int64_t>& of_entries, const Buffer<std::int64_t>& places) {
    Matrix<T> found(std::ssize(places), 1);
    for (std::int64_t k = 0; k < found.rows; ++k) found.data[k] = static_cast<T>(of_entries[places[k]]);
    return found;
  }
  template <class T>
  Matrix<T> read(Column column, int relation) const {
    const auto begin = starts_[relation][comm_.rank()], end = starts_[relation][comm_.rank() + 1];
    return file_.read<T>(column, relation, begin, end);
  }
  // Of each raw entry its place among those of its relation on this rank.
  Buffer<std::int64_t> numbers_in_relations() const {
    std::vector<std::int64_t> next(starts_.size(), 0);
    Buffer<std::int64_t> numbers;
    for (const auto column : raw_.indices) numbers.push_back(next[schema().relation_of(column)]++);
    return numbers;
  }

  // The rows as they stand in the file, whose columns are in any order and repeated, as edges that
  // the builder takes (row_building.hpp): edge e is entry e of this rank's rows.
  template <class Visit>
  void for_each_entry(const RowRange& range, const EdgeOptions& options, Visit visit) const {
    const bool weighted = raw_.has_values() && options.duplicates != Duplicates::kCount;
    for (std::int64_t row = 0; row < raw_.rows; ++row)
      for (auto e = raw_.row_begin(row); e < raw_.row_end(row); ++e) {
        const auto v = range.begin + row;
        if (options.drop_self_loops && schema().vertex_of(raw_.indices[e]) == v) continue;
        visit(v, raw_.indices[e], weighted ? raw_.values[e] : 1, e, false);
      }
  }

  template <class Raw>
  void find_times(const Raw& raw, const RowRange& range, bool latest, const Csr<Index>& rows) {
    Buffer<std::int64_t> times(raw_.indices.size(), 0);
    for (int r = 0; r < std::ssize(starts_); ++r) {
      if (!has_times(r)) continue;
      const auto of_relation = read<std::int64_t>(Column::kEdgeTime, r).data;
      auto next = of_relation.begin();
      for (const auto e : entries_of(schema(), raw_, r)) times[e] = *next++;
    }
    times_ = find_edges(raw, range, rows, [&](auto, float, std::int64_t e, std::int64_t kept) {
      return kept >= 0 && (latest ? times[e] > times[kept] : times[e] < times[kept]);
    });
    for (auto& time : times_) time = times[time];
  }

  template <class Raw>
  void find_features(const Raw& raw, const RowRange& range, const EdgeOptions& options,
                     const Csr<Index>& rows) {
    features_ = find_feature_edges(raw, raw_.has_values(), range, options, rows);
    adds_ = options.adds_features();
    mean_ = options.features == DuplicateFeatures::kMean;
    if (adds_) {
      standing_.assign(raw_.indices.size(), -1);
      raw([&](auto row, auto column, float, std::int64_t e, bool) {
        standing_[e] = features_[place_of(rows, row - range.begin, column)];
      });
    }
    const auto numbers = numbers_in_relations();
    for (auto& edge : features_)
      edge = numbers[edge] + starts_[schema().relation_of(raw_.indices[edge])][comm_.rank()];
  }

  template <class T>
  void add_up(int relation, Matrix<T>& table) const {
    if (!adds_) return;
    const auto numbers = numbers_in_relations();
    Buffer<std::int64_t> standing;
    for (const auto e : entries_of(schema(), raw_, relation))
      standing.push_back(standing_[e] < 0 ? -1 : numbers[standing_[e]]);
    agree(comm_,
          [&] { add_up_rows(table, standing, mean_, [&](auto...) { refuse_sum("features of edges"); }); });
  }
  [[noreturn]] void refuse_sum(const char* of) const {
    input_error(
        "graph file {}: {}: the sum of repeated edges is too large; give --duplicates mean, first or last",
        file_.path(), of);
  }

  const Communicator& comm_;
  const GraphFile& file_;
  const Csr<Index>& raw_;
  std::vector<std::vector<std::int64_t>> starts_;  // [relations][ranks + 1] of raw entries
  bool merged_ = false;
  // Of merged entries, until follow(); in the order of all ranks.
  std::vector<std::int64_t> merged_starts_;
  Buffer<float> weights_;
  Buffer<std::int64_t> times_, features_;
  bool weighted_ = false;
  bool adds_ = false, mean_ = false;  // features of repeated edges
  Buffer<std::int64_t> standing_;     // [raw entries] the first of those that it is added
                                      // to; -1: none
};

}  // namespace espalier
