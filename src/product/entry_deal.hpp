// Entries of a matrix that is cut, to those that hold them.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "espalier/product/dist_csr.hpp"

namespace espalier {

// Who holds rows from `begin` on, entry k of which is in part[k]. A loop goes where a diagonal that
// is added would: with the first part that has another entry of the row, or of a row without one
// with part v mod parts, which holds it in any case. apart: columns are (relation, source).
template <class Index>
Buffer<std::uint64_t> holders_of_rows(std::int64_t begin, const Csr<Index>& rows, int parts, bool apart,
                                      Buffer<std::uint16_t>& part) {
  Buffer<std::uint64_t> sets(rows.rows, 0);
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    const auto is_loop = [&](std::int64_t k) { return !apart && rows.indices[k] == begin + row; };
    for (auto k = rows.row_begin(row); k < rows.row_end(row); ++k)
      if (!is_loop(k)) sets[row] |= std::uint64_t{1} << part[k];
    if (sets[row] == 0) sets[row] = std::uint64_t{1} << (begin + row) % parts;
    for (auto k = rows.row_begin(row); k < rows.row_end(row); ++k)
      if (is_loop(k)) part[k] = static_cast<std::uint16_t>(std::countr_zero(sets[row]));
  }
  return sets;
}

// Rows of the whole matrix, which ranks of a process column read piece by piece, to their holders.
template <class Index>
class EntryDeal {
 public:
  EntryDeal(const Grid& grid, const Ownership& ownership, std::int64_t columns, bool values, bool apart)
      : column_(grid.column_comm()), apart_(apart), holders_(ownership.rows(), grid.rows()) {
    a_ = empty_dist_csr<Index>(grid, ownership);
    a_.local.columns = columns;
    a_.has_values = a_.local.weighted = values;
  }

  // Collective over the column. Rows from `begin` on of mine, entry k with part[k]; those of the
  // ranks follow one another.
  void add(std::int64_t begin, const Csr<Index>& rows, Buffer<std::uint16_t> part) {
    auto sets = holders_of_rows(begin, rows, column_.size(), apart_, part);
    const auto counts = column_.all_gather(rows.rows, "setup");
    auto all = column_.all_gather_v(std::span<const std::uint64_t>(sets), "setup");
    holders_.append(all);
    const auto mine = std::accumulate(counts.begin(), counts.begin() + column_.rank(), std::int64_t{0});
    send(rows, part, std::span(all).subspan(mine, rows.rows));
  }

  DistCsr<Index> finish() {
    holders_.finish();
    const auto holders = std::make_shared<const RowHolders>(std::move(holders_));
    const auto marks = std::make_shared<const PartMarks<Cpu>>(holders->marks(a_.part));
    a_.local.rows = std::ssize(a_.local.indptr) - 1;
    a_.cut = std::make_shared<const CutRows>(CutRows{holders, marks});
    a_.cut_view = {holders->of(), {marks->words.data(), marks->before.data()}};
    return std::move(a_);
  }

 private:
  void send(const Csr<Index>& rows, const Buffer<std::uint16_t>& part, std::span<const std::uint64_t> sets) {
    const auto ranks = static_cast<std::size_t>(column_.size());
    std::vector<Buffer<std::int64_t>> sizes(ranks);
    std::vector<Buffer<Index>> indices(ranks);
    std::vector<Buffer<float>> values(ranks);
    for (std::int64_t row = 0; row < rows.rows; ++row) {
      for_each_part(sets[row], [&](int holder) { sizes[holder].push_back(0); });
      for (auto k = rows.row_begin(row); k < rows.row_end(row); ++k) {
        ++sizes[part[k]].back();
        indices[part[k]].push_back(rows.indices[k]);
        if (a_.has_values) values[part[k]].push_back(rows.values[k]);
      }
    }
    for (const auto size : send(sizes)) a_.local.indptr.push_back(a_.local.indptr.back() + size);
    const auto append = [](auto& all, const auto& more) { all.insert(all.end(), more.begin(), more.end()); };
    append(a_.local.indices, send(indices));
    if (a_.has_values) append(a_.local.values, send(values));
  }

  template <class T>
  Buffer<T> send(std::vector<Buffer<T>>& to) const {
    Buffer<T> sent;
    std::vector<std::int64_t> counts;
    for (auto& one : to) {
      counts.push_back(std::ssize(one));
      sent.insert(sent.end(), one.begin(), one.end());
      one = {};
    }
    return column_.all_to_all_v(std::span<const T>(sent), counts, "setup").data;
  }

  const Communicator& column_;
  bool apart_;
  RowHolders holders_;
  DistCsr<Index> a_;
};

}  // namespace espalier
