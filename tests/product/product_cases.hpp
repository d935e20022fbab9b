// What the tests of the distributed product share: frontiers that every rank knows of every rank, operations on a
// row, and the results by loops over the whole matrix.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

#include "espalier/product/product.hpp"
#include "mpi_test.hpp"
#include "random_graph.hpp"

namespace espalier {

inline constexpr std::array kSchedules = {Schedule::kPull, Schedule::kPush, Schedule::kStaged,
                                          Schedule::kStagedOblivious};

using Entries = std::vector<std::pair<std::int64_t, float>>;  // of one row; 0 beside ids without values
using Sums = std::vector<std::pair<std::int64_t, std::uint64_t>>;

// ---- What every rank asks for, known to all -----------------------------------------------------

struct Batch {
  std::int64_t number;
  std::vector<std::int64_t> frontier;
  std::vector<std::int64_t> picks;  // ascending
};

inline std::vector<std::int64_t> random_subset(std::int64_t n, const RandomStream& stream) {
  std::vector<std::pair<std::uint64_t, std::int64_t>> drawn;
  for (std::int64_t v = 0; v < n; ++v)
    if (const auto word = random64(stream, static_cast<std::uint64_t>(v)); word % 3 != 0)
      drawn.emplace_back(word, v);
  std::sort(drawn.begin(), drawn.end());
  std::vector<std::int64_t> subset;
  for (const auto& [word, v] : drawn) subset.push_back(v);
  return subset;
}

// Frontiers: all vertices downwards, none, a random subset in random order, one vertex. Picks: random, none, all.
inline std::vector<Batch> batches_of(int rank, std::int64_t n) {
  constexpr std::array<int, 8> kCounts = {4, 0, 3, 1, 0, 2, 5, 0};  // rank 3 has one empty frontier
  std::vector<Batch> batches;
  for (int k = 0; k < kCounts[static_cast<std::size_t>(rank)]; ++k) {
    RandomStream stream = {.seed = test_seed(31),
                           .batch = static_cast<std::uint64_t>(k),
                           .row = static_cast<std::uint64_t>(rank)};
    Batch batch = {(std::int64_t{5} << 33) + 100 * rank + 7 * ((k + 2) % 5), {}, {}};
    const int kind = (k + rank / 2) % 4;
    if (kind == 0)
      for (auto v = n - 1; v >= 0; --v) batch.frontier.push_back(v);
    else if (kind == 2)
      batch.frontier = random_subset(n, stream);
    else if (kind == 3)
      batch.frontier = {static_cast<std::int64_t>(random64(stream, 0) % static_cast<std::uint64_t>(n))};
    stream.layer = 1;
    if ((k + rank) % 4 == 3)
      for (std::int64_t v = 0; v < n; ++v) batch.picks.push_back(v);
    else if ((k + rank) % 4 != 1)
      batch.picks = random_subset(n, stream);
    std::sort(batch.picks.begin(), batch.picks.end());
    batches.push_back(std::move(batch));
  }
  return batches;
}

inline StackedFrontier stack(const std::vector<Batch>& batches) {
  StackedFrontier q;
  for (const auto& batch : batches) q.add(batch.number, batch.frontier);
  return q;
}

// ---- Operations on a finished row ---------------------------------------------------------------

template <class Index>
class Identity final : public RowOperation<Index> {
 public:
  explicit Identity(bool values) : values_(values) {}
  bool has_values() const override { return values_; }
  void apply(std::span<const RowView<Index>> rows, std::span<const RowKey>,
             RowEntries<Index>& out) const override {
    for (const auto& row : rows) {
      out.indices.insert(out.indices.end(), row.indices, row.indices + row.size);
      if (row.values != nullptr) out.values.insert(out.values.end(), row.values, row.values + row.size);
      out.end_row();
    }
  }

 private:
  bool values_;
};

// Drops about half of the entries and may append one, by words that depend on (vertex, batch).
inline Entries keep_some(const Entries& row, RowKey key, std::int64_t n) {
  const RandomStream stream = {.seed = 77,
                               .batch = static_cast<std::uint64_t>(key.batch),
                               .row = static_cast<std::uint64_t>(key.vertex)};
  const auto word = random64(stream, 0);
  Entries kept;
  for (std::size_t k = 0; k < row.size(); ++k)
    if ((word >> (k % 61)) & 1)
      kept.emplace_back(row[k].first, row[k].second + static_cast<float>(word % 1024));
  if (word >> 63) kept.emplace_back(static_cast<std::int64_t>(word % static_cast<std::uint64_t>(n)), 0.5f);
  return kept;
}

template <class Index>
class KeepSome final : public RowOperation<Index> {
 public:
  KeepSome(std::int64_t n, bool values) : n_(n), values_(values) {}
  bool has_values() const override { return values_; }
  void apply(std::span<const RowView<Index>> rows, std::span<const RowKey> keys,
             RowEntries<Index>& out) const override {
    for (std::size_t r = 0; r < rows.size(); ++r) {
      Entries row;
      for (std::int64_t k = 0; k < rows[r].size; ++k)
        row.emplace_back(rows[r].indices[k], rows[r].values == nullptr ? 0.0f : rows[r].values[k]);
      for (const auto& [index, value] : keep_some(row, keys[r], n_)) {
        out.indices.push_back(static_cast<Index>(index));
        if (values_) out.values.push_back(value);
      }
      out.end_row();
    }
  }

 private:
  std::int64_t n_;
  bool values_;
};

// ---- The oracle: loops over the whole matrix ----------------------------------------------------

template <class Index>
Entries whole_row(const Csr<Index>& whole, std::int64_t v) {
  Entries row;
  for (auto k = whole.row_begin(v); k < whole.row_end(v); ++k)
    row.emplace_back(whole.indices[static_cast<std::size_t>(k)],
                     whole.has_values() ? whole.values[static_cast<std::size_t>(k)] : 0.0f);
  return row;
}

// Values are k/8, so with shift 6 a squared weight is the integer k^2.
template <class Index>
Sums sum_of(const Csr<Index>& whole, const std::vector<std::int64_t>& vertices, bool squared) {
  std::map<std::int64_t, std::uint64_t> sums;
  for (const auto v : vertices)
    for (const auto& [column, value] : whole_row(whole, v)) {
      const auto eighths = whole.has_values() ? static_cast<std::uint64_t>(8 * value) : 8;
      if (const auto weight = squared ? eighths * eighths : 1; weight > 0) sums[column] += weight;
    }
  return {sums.begin(), sums.end()};
}

template <class Index>
Entries meet(const Csr<Index>& whole, std::int64_t v, const std::vector<std::int64_t>& picks) {
  Entries met;
  const auto row = whole_row(whole, v);
  for (std::size_t place = 0; place < picks.size(); ++place)
    for (const auto& [column, value] : row)
      if (column == picks[place]) met.emplace_back(place, value);
  return met;
}

struct Expected {
  std::vector<Entries> rows, kept, met;
  std::vector<Sums> counts, squares;
};

template <class Index>
Expected expected_of(const Csr<Index>& whole, const std::vector<Batch>& batches) {
  Expected expected;
  for (const auto& batch : batches) {
    for (const auto v : batch.frontier) {
      expected.rows.push_back(whole_row(whole, v));
      expected.kept.push_back(keep_some(expected.rows.back(), {v, batch.number}, whole.rows));
      expected.met.push_back(meet(whole, v, batch.picks));
    }
    expected.counts.push_back(sum_of(whole, batch.frontier, false));
    expected.squares.push_back(sum_of(whole, batch.frontier, true));
  }
  return expected;
}

template <class Index>
struct Picks {
  std::vector<std::vector<Index>> lists;
  std::vector<std::span<const Index>> spans;
  explicit Picks(const std::vector<Batch>& batches) {
    for (const auto& batch : batches) lists.emplace_back(batch.picks.begin(), batch.picks.end());
    for (const auto& list : lists) spans.emplace_back(list);
  }
};

}  // namespace espalier
