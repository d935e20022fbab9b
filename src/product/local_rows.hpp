// The three results of a product for rows that already lie on this rank: the leaves under every schedule.
//
// `rows` are views; segments[k] .. segments[k+1] are the rows of one batch. Threads work on chunks of rows (or
// on whole batches) and the pieces are put together in order, so results do not depend on their number.
#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "espalier/base/error.hpp"
#include "espalier/product/collect_rows.hpp"
#include "espalier/product/product.hpp"
#include "espalier/sparse/select_columns.hpp"

namespace espalier {

template <class Index>
RowEntries<Index> apply_to_rows(const Cpu& cpu, std::span<const RowView<Index>> rows,
                                std::span<const RowKey> keys, const RowOperation<Index>& operation) {
  return collect_rows<Index>(
      cpu, std::ssize(rows), [&](std::int64_t first, std::int64_t last, RowEntries<Index>& out) {
        const auto from = static_cast<std::size_t>(first), count = static_cast<std::size_t>(last - first);
        operation.apply(rows.subspan(from, count), keys.subspan(from, count), out);
      });
}

/// visit(k, sum of the rows of segment k), by several threads at once.
template <class Index>
void sum_segments(const Cpu& cpu, std::span<const RowView<Index>> rows,
                  std::span<const std::int64_t> segments, std::int64_t columns, const EntryWeight& weight,
                  const SumVisitor<Index>& visit) {
#pragma omp parallel num_threads(cpu.threads)
  {
    SparseSum<Index> sum;
    // The entries of a mean's row are equal: what the last one counted is kept.
    float last = std::numeric_limits<float>::quiet_NaN();
    std::uint64_t of_last = 0;
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t k = 0; k < std::ssize(segments) - 1; ++k) {
      const auto i = static_cast<std::size_t>(k);
      sum_rows(
          rows.subspan(static_cast<std::size_t>(segments[i]),
                       static_cast<std::size_t>(segments[i + 1] - segments[i])),
          columns,
          [&](const RowView<Index>& row, std::int64_t entry) {
            if (row.values == nullptr) return weight(nullptr);
            if (row.values[entry] != last) of_last = weight(&(last = row.values[entry]));
            return of_last;
          },
          sum);
      visit(k, sum);
    }
  }
}

/// For every row the entries in columns[k] of its segment k; result indices are places in that list.
template <class Index>
RowEntries<std::int32_t> select_columns(const Cpu& cpu, std::span<const RowView<Index>> rows,
                                        std::span<const std::int64_t> segments,
                                        std::span<const std::span<const Index>> columns) {
  for (const auto& list : columns)
    ESPALIER_CHECK(std::ssize(list) < (std::int64_t{1} << 31), "{} columns of one batch; take fewer",
                   list.size());
  return collect_rows<std::int32_t>(
      cpu, std::ssize(rows), [&](std::int64_t first, std::int64_t last, RowEntries<std::int32_t>& out) {
        auto segment = std::upper_bound(segments.begin(), segments.end(), first) - segments.begin() - 1;
        ColumnSelection<Index> chosen;
        chosen.choose(columns[static_cast<std::size_t>(segment)]);
        for (auto r = first; r < last; ++r) {
          if (segments[static_cast<std::size_t>(segment) + 1] <= r) {
            while (segments[static_cast<std::size_t>(segment) + 1] <= r) ++segment;
            chosen.choose(columns[static_cast<std::size_t>(segment)]);
          }
          const auto& row = rows[static_cast<std::size_t>(r)];
          chosen.meet(row, [&](std::int64_t column, std::int64_t entry) {
            out.indices.push_back(static_cast<std::int32_t>(column));
            if (row.values != nullptr) out.values.push_back(row.values[entry]);
          });
          out.end_row();
        }
      });
}

}  // namespace espalier
