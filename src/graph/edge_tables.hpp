// Weights, features and times of edges that were merged and went elsewhere: each rank reads those
// of its raw entries, makes one of those that became one, and brings them to where the entries are
// now. One relation and one table at a time.
#pragma once

#include <cmath>
#include <vector>

#include "column_table.hpp"
#include "copy_contents.hpp"
#include "espalier/comm/agree.hpp"
#include "espalier/graph/clean_graph.hpp"
#include "feature_rows.hpp"
#include "fetch_rows.hpp"
#include "merged_rows.hpp"
#include "placed_entries.hpp"

namespace espalier {

/// The edges of this rank's even range of rows: those that stand in the file, of which some became
/// one, or all as they are.
template <class Index>
class EdgeTables {
 public:
  /// Collective. `raw`: the rows as they stand in the file, without values; `merged`: what became
  /// of them, or null. All must outlive it.
  EdgeTables(const Communicator& comm, const GraphFile& file, const Csr<Index>& raw,
             const MergedRows<Index>* merged, const CleanOptions& options)
      : comm_(comm),
        file_(file),
        raw_(raw),
        merged_(merged),
        repeats_(options.repeats),
        latest_times_(options.latest_times) {
    if (merged == nullptr) return;
    for (int r = 0; r < std::ssize(schema().relations()); ++r)
      starts_.push_back(stretches(comm, std::ssize(entries_of(schema(), merged->rows, r))));
  }

  /// Each merged entry's number among those of its relation on all ranks.
  Buffer<std::int64_t> origins() const {
    std::vector<std::int64_t> next;
    for (const auto& starts : starts_) next.push_back(starts[comm_.rank()]);
    Buffer<std::int64_t> origins;
    for (const auto column : merged_->rows.indices) origins.push_back(next[schema().relation_of(column)]++);
    return origins;
  }

  /// Collective, as all of these. `weights`: of the raw entries. What the entries of `placed`
  /// weigh becomes its values.
  void set_weights(const Buffer<float>& weights, PlacedRows<Index>& placed) const {
    placed.rows.values.resize(placed.rows.indices.size());
    placed.rows.weighted = true;
    for (int r = 0; r < std::ssize(starts_); ++r) {
      Matrix<float> table(std::ssize(weights), 1);
      table.data = weights;
      const auto mine = repeats_ == Repeats::kCount ? counts(r) : merge(table, r, "/graph/weights", false);
      const auto places = entries_of(schema(), placed.rows, r);
      const auto found = fetch_rows(comm_, starts_[r], mine, origins_of(placed, places));
      for (std::size_t k = 0; k < places.size(); ++k) placed.rows.values[places[k]] = found.data[k];
    }
  }

  bool has_times(int relation) const { return file_.column(Column::kEdgeTime, relation).exists(); }
  /// Rows of a column of the relation's entries at these places. Of rows that are not merged
  /// `placed` has no origins, and is the raw rows.
  template <class T>
  Matrix<T> rows(Column column, int relation, const PlacedRows<Index>& placed,
                 const Buffer<std::int64_t>& places) const {
    const auto range = among_entries(comm_, std::ssize(entries_of(schema(), raw_, relation)));
    const auto table = file_.read<T>(column, relation, range.begin, range.end);
    if (merged_ != nullptr)
      return fetch_rows(comm_, starts_[relation], merge(table, relation, "features of edges", true),
                        origins_of(placed, places));
    const auto rows = rows_in_relation(relation);
    Matrix<T> kept(std::ssize(places), table.columns);
    for (std::int64_t k = 0; k < kept.rows; ++k)
      std::copy_n(table.row(rows[places[k]]), table.columns, kept.row(k));
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
  const Schema& schema() const { return file_.info().schema; }
  static bool is_of_edges(const ColumnLine& line) { return std::string_view(line.a_row_for_each) == "edges"; }

  static Buffer<std::int64_t> origins_of(const PlacedRows<Index>& placed,
                                         const Buffer<std::int64_t>& places) {
    Buffer<std::int64_t> origins;
    for (const auto e : places) origins.push_back(placed.origins[e]);
    return origins;
  }
  // Calls use(k, members) for the relation's merged entries: the k-th is made of these raw ones.
  template <class Use>
  void each_merged(int relation, Use use) const {
    std::int64_t k = 0;
    const auto begin = schema().begin(relation), end = schema().begin(relation + 1);
    for (std::int64_t e = 0; e < merged_->rows.entries(); ++e) {
      if (merged_->rows.indices[e] < begin || merged_->rows.indices[e] >= end) continue;
      use(k++, std::span<const std::int64_t>(merged_->members.data() + merged_->begins[e],
                                             merged_->begins[e + 1] - merged_->begins[e]));
    }
  }

  std::int64_t mine(int relation) const {
    return starts_[relation][comm_.rank() + 1] - starts_[relation][comm_.rank()];
  }

  Matrix<float> counts(int relation) const {
    Matrix<float> counts(mine(relation), 1);
    each_merged(relation, [&](std::int64_t k, std::span<const std::int64_t> members) {
      counts.data[k] = static_cast<float>(members.size());
    });
    return counts;
  }

  // Of a table of the raw entries, or of those of the relation alone, a row for each merged entry.
  template <class T>
  Matrix<T> merge(const Matrix<T>& table, int relation, const std::string& name, bool of_relation) const {
    const auto rows = of_relation ? rows_in_relation(relation) : Buffer<std::int64_t>();
    const auto row = [&](std::int64_t e) { return table.row(of_relation ? rows[e] : e); };
    Matrix<T> merged(mine(relation), table.columns);
    constexpr bool is_number = std::is_same_v<T, float> || std::is_same_v<T, Half>;
    const bool adds = is_number && (repeats_ == Repeats::kSum || repeats_ == Repeats::kMean);
    bool finite = true;
    each_merged(relation, [&](std::int64_t k, std::span<const std::int64_t> members) {
      auto kept = repeats_ == Repeats::kLast ? members.back() : members.front();
      if constexpr (std::is_same_v<T, std::int64_t>) {
        const auto time = [&](std::int64_t e) { return *row(e); };
        kept = latest_times_ ? std::ranges::max(members, {}, time) : std::ranges::min(members, {}, time);
      }
      std::copy_n(row(kept), table.columns, merged.row(k));
      if constexpr (is_number)
        for (std::int64_t j = 0; adds && members.size() > 1 && j < table.columns; ++j) {
          double sum = 0;
          for (const auto e : members) sum += to_float(row(e)[j]);
          if (repeats_ == Repeats::kMean) sum /= static_cast<double>(members.size());
          store_rounded(sum, merged(k, j));
          finite &= std::isfinite(to_float(merged(k, j)));
        }
    });
    agree(comm_, [&] {
      if (!finite)
        input_error(
            "graph file {}: {}: the sum of repeated edges is too large; give --duplicates mean, first "
            "or last",
            file_.path(), name);
    });
    return merged;
  }

  // Of each raw entry of the relation its place among those of this rank.
  Buffer<std::int64_t> rows_in_relation(int relation) const {
    Buffer<std::int64_t> rows(raw_.indices.size());
    std::int64_t k = 0;
    for (const auto e : entries_of(schema(), raw_, relation)) rows[e] = k++;
    return rows;
  }

  const Communicator& comm_;
  const GraphFile& file_;
  const Csr<Index>& raw_;
  const MergedRows<Index>* merged_;
  Repeats repeats_;
  bool latest_times_;
  // [relations][ranks + 1] of merged entries; none: []
  std::vector<std::vector<std::int64_t>> starts_;
};

}  // namespace espalier
