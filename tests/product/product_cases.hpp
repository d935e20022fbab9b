// What the tests of the distributed product share: frontiers that every rank knows of every rank,
// operations on a row, and the results by loops over the whole matrix.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

#include "espalier/product/product.hpp"
#include "espalier/sparse/entries.hpp"
#include "mpi_test.hpp"
#include "partition/cut.hpp"
#include "partition/owned.hpp"
#include "random_graph.hpp"
#include "sparse/listed.hpp"

namespace espalier {

inline constexpr std::array kSchedules = {Schedule::kPull, Schedule::kPush, Schedule::kStaged,
                                          Schedule::kStagedOblivious};

/// What a product with the label x books its messages under.
inline constexpr std::array kLabels = {"x/ids", "x/rows", "x/reduction", "x/picks"};

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

// Frontiers: all vertices downwards, none, a random subset in random order, one vertex. Picks:
// random, none, all.
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

template <class Space>
FrontierOn<Space> stack(const Space& space, const std::vector<Batch>& batches) {
  std::vector<std::vector<std::int64_t>> frontiers;
  std::vector<std::int64_t> numbers;
  for (const auto& batch : batches) {
    frontiers.push_back(batch.frontier);
    numbers.push_back(batch.number);
  }
  return stack_frontier(space, frontiers, std::move(numbers));
}

/// The picks of all batches, in memory of the space.
template <class Index, class Space>
struct Picks {
  Array<Space, Index> ids;
  SharedList<std::int64_t, Space> offsets;

  Picks(const Space& space, const std::vector<Batch>& batches) {
    std::vector<Index> all;
    std::vector<std::int64_t> ends = {0};
    for (const auto& batch : batches) {
      all.insert(all.end(), batch.picks.begin(), batch.picks.end());
      ends.push_back(std::ssize(all));
    }
    ids = copy_to<Index>(space, all);
    offsets = {space, std::move(ends)};
  }
};

// ---- Operations on a finished row ---------------------------------------------------------------

template <class Index>
struct RuledEntry {
  bool kept;
  Index id;
  float value;
};

/// Which entries an operation leaves: all, or about half of them and perhaps one more, by a word
/// that depends on (vertex, batch).
struct RowRule {
  bool all;
  std::int64_t n;  ///< vertices

  /// Entry k <= row.size: the last is the one more.
  template <class Index>
  ESPALIER_HD RuledEntry<Index> entry(const RowView<Index>& row, const RowKey& key, std::int64_t k) const {
    const RandomStream stream = {.seed = 77,
                                 .batch = static_cast<std::uint64_t>(key.batch),
                                 .row = static_cast<std::uint64_t>(key.vertex)};
    const auto word = all ? 0 : random64(stream, 0);
    const bool more = (word >> 63) != 0;
    if (k == row.size)
      return {more, more ? static_cast<Index>(word % static_cast<std::uint64_t>(n)) : Index{}, 0.5f};
    return {all || ((word >> (k % 61)) & 1) != 0, row.indices[k],
            (row.values == nullptr ? 0.0f : row.values[k]) + static_cast<float>(word % 1024)};
  }
};

template <class Index>
void keep_entries(const Cpu& cpu, RowRule rule, const RowView<Index>* rows, const RowKey* keys,
                  std::int64_t count, bool values, Entries<Index>& out) {
  const auto fill = [&](std::int64_t first, std::int64_t last, Entries<Index>& chunk) {
    for (auto r = first; r < last; ++r) {
      for (std::int64_t k = 0; k <= rows[r].size; ++k) {
        const auto entry = rule.entry(rows[r], keys[r], k);
        if (entry.kept) chunk.ids.push_back(entry.id);
        if (entry.kept && values) chunk.values.push_back(entry.value);
      }
      chunk.end_row();
    }
  };
  collect_rows(cpu, count, fill, out);
}

/// The rule as an operation; on a GPU its keep_entries is the test's.
template <class Index, class Space>
class KeepEntries final : public RowOperation<Index, Space> {
 public:
  KeepEntries(RowRule rule, bool values) : rule_(rule), values_(values) {}
  bool has_values() const override { return values_; }
  void apply(const Space& space, const RowView<Index>* rows, const RowKey* keys, std::int64_t count,
             Entries<Index, Space>& out) const override {
    EXPECT_EQ(out.entries(), 0) << "out begins empty";
    keep_entries(space, rule_, rows, keys, count, values_, out);
  }

 private:
  RowRule rule_;
  bool values_;
};

/// The rule for a row known to the host.
inline ListedRow keep_some(const ListedRow& row, RowKey key, std::int64_t n) {
  std::vector<std::int64_t> ids;
  std::vector<float> values;
  for (const auto& [id, value] : row) {
    ids.push_back(id);
    values.push_back(value);
  }
  ListedRow kept;
  const RowView<std::int64_t> view = {ids.data(), Beside<const float>(values), std::ssize(row)};
  for (std::int64_t k = 0; k <= view.size; ++k)
    if (const auto entry = RowRule{false, n}.entry(view, key, k); entry.kept)
      kept.emplace_back(entry.id, entry.value);
  return kept;
}

// ---- The oracle: loops over the whole matrix ----------------------------------------------------

template <class Index>
ListedRow whole_row(const Csr<Index>& whole, std::int64_t v) {
  ListedRow row;
  for (auto k = whole.row_begin(v); k < whole.row_end(v); ++k)
    row.emplace_back(whole.indices[static_cast<std::size_t>(k)],
                     whole.has_values() ? whole.values[static_cast<std::size_t>(k)] : 0.0f);
  return row;
}

// Values are k/8, so with shift 6 a squared weight is the integer k^2.
template <class Index>
ListedSum sum_of(const Csr<Index>& whole, const std::vector<std::int64_t>& vertices, bool squared) {
  std::map<std::int64_t, std::uint64_t> sums;
  for (const auto v : vertices)
    for (const auto& [column, value] : whole_row(whole, v)) {
      const auto eighths = whole.has_values() ? static_cast<std::uint64_t>(8 * value) : 8;
      if (const auto weight = squared ? eighths * eighths : 1; weight > 0) sums[column] += weight;
    }
  return {sums.begin(), sums.end()};
}

template <class Index>
ListedRow meet(const Csr<Index>& whole, std::int64_t v, const std::vector<std::int64_t>& picks) {
  ListedRow met;
  const auto row = whole_row(whole, v);
  for (std::size_t place = 0; place < picks.size(); ++place)
    for (const auto& [column, value] : row)
      if (column == picks[place]) met.emplace_back(place, value);
  return met;
}

struct Expected {
  std::vector<ListedRow> rows, kept, met;
  std::vector<ListedSum> counts, squares;
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

// ---- What a product books -----------------------------------------------------------------------

/// Calls on one product, one after another; visit(name of the call) after each, with what
/// it booked.
template <class Index, class Space, class Visit>
void book_calls(const Space& space, const DistCsr<Index, Space>& a, Schedule schedule,
                const std::vector<Batch>& batches, Visit visit) {
  const auto q = stack(space, batches);
  const Picks<Index, Space> picks(space, batches);
  auto& traffic = a.grid->traffic();
  traffic.clear();
  const auto product = open_product(space, q, a, schedule, "x");
  visit("open");
  traffic.clear();
  product->apply(space, KeepEntries<Index, Space>({false, a.rows()}, true));
  visit("apply");
  traffic.clear();
  product->sum(space, {.squared = true, .shift = 6}, [](std::int64_t, auto&) {});
  visit("sum");
  traffic.clear();
  product->columns(space, picks.ids.data(), picks.offsets);
  visit("columns");
}

}  // namespace espalier
