// ranks: 1 2 3 4 6 8
// Laws of the distributed product: its three results equal a loop over the whole matrix, bit for bit, for every
// schedule, grid, topology, index width and thread count, also with fewer rows than ranks, ranks without a
// batch and empty frontiers; bytes are conserved, and are exactly those of the steps that a schedule consists of.
#include "espalier/dist/product.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>

#include "mpi_test.hpp"
#include "random_graph.hpp"

namespace espalier {
namespace {

constexpr std::array kSchedules = {Schedule::kPull, Schedule::kPush, Schedule::kStaged,
                                   Schedule::kStagedOblivious};
constexpr std::array kLabels = {"x/ids", "x/rows", "x/reduction", "x/picks"};

using Entries = std::vector<std::pair<std::int64_t, float>>;  // of one row; 0 beside ids without values
using Sums = std::vector<std::pair<std::int64_t, std::uint64_t>>;

// ---- What every rank asks for, known to all -----------------------------------------------------------------

struct Batch {
  std::int64_t number;
  std::vector<std::int64_t> frontier;
  std::vector<std::int64_t> picks;  // ascending
};

std::vector<std::int64_t> random_subset(std::int64_t n, const RandomStream& stream) {
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
std::vector<Batch> batches_of(int rank, std::int64_t n) {
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

StackedFrontier stack(const std::vector<Batch>& batches) {
  StackedFrontier q;
  for (const auto& batch : batches) q.add(batch.number, batch.frontier);
  return q;
}

// ---- Operations on a finished row ---------------------------------------------------------------------------

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
Entries keep_some(const Entries& row, RowKey key, std::int64_t n) {
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

// ---- The oracle: loops over the whole matrix ----------------------------------------------------------------

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

// ---- Comparisons --------------------------------------------------------------------------------------------

template <class Id>
void expect_rows(const RowEntries<Id>& got, const std::vector<Entries>& expected, bool values) {
  EXPECT_EQ(got.rows(), std::ssize(expected));
  EXPECT_EQ(got.offsets.back(), std::ssize(got.indices));
  EXPECT_EQ(got.values.size(), values ? got.indices.size() : 0);
  if (got.rows() != std::ssize(expected) || got.values.size() != (values ? got.indices.size() : 0)) return;
  std::int64_t wrong = 0;
  for (std::int64_t r = 0; r < got.rows(); ++r) {
    Entries row = expected[static_cast<std::size_t>(r)], mine;
    for (auto k = got.begin(r); k < got.begin(r) + got.size(r); ++k)
      mine.emplace_back(got.indices[static_cast<std::size_t>(k)],
                        values ? got.values[static_cast<std::size_t>(k)] : 0.0f);
    if (!values)
      for (auto& [index, value] : row) value = 0;
    wrong += mine != row;
  }
  EXPECT_EQ(wrong, 0) << "wrong rows of " << got.rows();
}

template <class Index>
void expect_sums(const Cpu& cpu, Product<Index>& product, const EntryWeight& weight,
                 const std::vector<Sums>& expected) {
  std::vector<Sums> got(expected.size());
  std::vector<int> visits(expected.size(), 0);
  product.sum(cpu, weight, [&](std::int64_t batch, const SparseSum<Index>& sum) {
    const auto b = static_cast<std::size_t>(batch);
    if (b >= got.size()) return;
    ++visits[b];
    for (std::size_t k = 0; k < sum.columns.size(); ++k) got[b].emplace_back(sum.columns[k], sum.sums[k]);
  });
  EXPECT_EQ(visits, std::vector<int>(expected.size(), 1)) << "every batch is visited once";
  EXPECT_TRUE(got == expected) << (weight.squared ? "squared" : "counts");
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

template <class Index>
void expect_product(const DistCsr<Index>& a, Schedule schedule, int threads,
                    const std::vector<Batch>& batches, const Expected& expected) {
  const Cpu cpu = {threads};
  const auto q = stack(batches);
  const Picks<Index> picks(batches);
  const bool values = a.has_values;
  const auto product = open_product(cpu, q, a, schedule, "x");
  expect_rows(product->apply(cpu, Identity<Index>(values)), expected.rows, values);
  expect_sums(cpu, *product, {}, expected.counts);
  expect_rows(product->columns(cpu, picks.spans), expected.met, values);
  // Each result can be taken again, in any order; what operations return need not hold what A holds.
  expect_sums(cpu, *product, {.squared = true, .shift = 6}, expected.squares);
  expect_rows(product->apply(cpu, KeepSome<Index>(a.rows(), true)), expected.kept, true);
  expect_rows(product->apply(cpu, KeepSome<Index>(a.rows(), false)), expected.kept, false);
}

template <class Index>
void expect_every_grid(std::int64_t n, std::int64_t degree, bool weighted, int threads) {
  const auto whole = random_graph<Index>(n, degree, weighted, test_seed(3));
  const auto batches = batches_of(test_world().rank(), n);
  const auto expected = expected_of(whole, batches);
  for (const int c : divisors(test_world().size())) {
    const Grid grid(test_world(), c);
    for (const auto topology : {Topology::kPartitioned, Topology::kReplicated}) {
      const auto a = distribute(grid, whole, topology);
      for (const auto schedule : kSchedules) {
        SCOPED_TRACE(fmt::format("seed {} n {} c {} {} {} {} bytes, {} threads", test_seed(3), n, c,
                                 topology == Topology::kPartitioned ? "partitioned" : "replicated",
                                 name_of(schedule), sizeof(Index), threads));
        expect_product(a, schedule, threads, batches, expected);
      }
    }
  }
}

TEST(Product, EqualsLoopsOverTheWholeMatrixInt32) {
  for (const std::int64_t n : {3, 5, 64, 157})
    for (const bool weighted : {false, true})
      expect_every_grid<std::int32_t>(n, 6, weighted, n % 4 == 1 ? 2 : 1);
}

TEST(Product, EqualsLoopsOverTheWholeMatrixInt64) {
  for (const std::int64_t n : {3, 5, 64, 157})
    for (const bool weighted : {false, true})
      expect_every_grid<std::int64_t>(n, 6, weighted, n % 4 == 1 ? 1 : 2);
}

// More than 512 rows on a rank: threads work on several chunks.
TEST(Product, DoesNotDependOnTheNumberOfThreads) {
  for (const int threads : {1, 2, 3}) expect_every_grid<std::int32_t>(701, 3, true, threads);
}

// A matrix with values, but without an entry.
TEST(Product, OfAMatrixWithoutEntriesIsEmpty) {
  Csr<std::int32_t> whole = {
      .rows = 10, .columns = 10, .indptr = Buffer<std::int64_t>(11, 0), .indices = {}, .values = {}};
  const auto batches = batches_of(test_world().rank(), 10);
  const auto expected = expected_of(whole, batches);
  for (const int c : divisors(test_world().size())) {
    const Grid grid(test_world(), c);
    for (const bool values : {false, true})
      for (const auto schedule : kSchedules) {
        auto a = distribute(grid, whole, Topology::kPartitioned);
        a.has_values = values;
        expect_product(a, schedule, 1, batches, expected);
      }
  }
}

// ---- Bytes --------------------------------------------------------------------------------------------------

// Calls on one product, one after another; visit(name of the call) after each, with what it booked.
template <class Index, class Visit>
void book_calls(const DistCsr<Index>& a, Schedule schedule, const std::vector<Batch>& batches, Visit visit) {
  const auto q = stack(batches);
  const Picks<Index> picks(batches);
  auto& traffic = a.grid->traffic();
  traffic.clear();
  const auto product = open_product({1}, q, a, schedule, "x");
  visit("open");
  traffic.clear();
  product->apply({1}, KeepSome<Index>(a.rows(), true));
  visit("apply");
  traffic.clear();
  product->sum({1}, {.squared = true, .shift = 6}, [](std::int64_t, const SparseSum<Index>&) {});
  visit("sum");
  traffic.clear();
  product->columns({1}, picks.spans);
  visit("columns");
}

TEST(ProductBytes, SentAreReceivedUnderEveryLabelAndThereIsNoOtherLabel) {
  const auto whole = random_graph<std::int32_t>(157, 6, true, test_seed(3));
  const auto batches = batches_of(test_world().rank(), 157);
  for (const int c : divisors(test_world().size())) {
    const Grid grid(test_world(), c);
    const auto a = distribute(grid, whole, Topology::kPartitioned);
    for (const auto schedule : kSchedules)
      book_calls(a, schedule, batches, [&](const std::string& call) {
        std::array<std::int64_t, kLabels.size()> surplus{};
        std::set<std::string> unknown;
        for (const auto& [label, volume] : grid.traffic().all())
          if (volume.bytes_received + volume.bytes_sent > 0) unknown.insert(label);
        for (std::size_t k = 0; k < kLabels.size(); ++k) {
          const auto volume = grid.traffic().of(kLabels[k]);
          surplus[k] = volume.bytes_sent - volume.bytes_received;
          unknown.erase(kLabels[k]);
        }
        test_world().all_reduce(std::span<std::int64_t>(surplus), Reduction::kSum, "check");
        EXPECT_EQ(surplus, (std::array<std::int64_t, kLabels.size()>{}))
            << name_of(schedule) << " " << call << " c " << c;
        EXPECT_TRUE(unknown.empty()) << *unknown.begin();
      });
  }
}

TEST(ProductBytes, RowsThatAllRanksHoldSendNothing) {
  const int p = test_world().size();
  const auto whole = random_graph<std::int32_t>(50, 4, true, test_seed(3));
  const auto batches = batches_of(test_world().rank(), 50);
  for (const int c : divisors(p)) {
    const Grid grid(test_world(), c);
    for (const auto topology : {Topology::kPartitioned, Topology::kReplicated}) {
      if (topology == Topology::kPartitioned && c < p) continue;
      const auto a = distribute(grid, whole, topology);
      for (const auto schedule : kSchedules)
        book_calls(a, schedule, batches, [&](const std::string& call) {
          const auto volume = grid.traffic().of_stage("x");
          EXPECT_EQ(volume.messages + volume.bytes_sent + volume.bytes_received, 0) << call;
          EXPECT_EQ(volume.predicted_messages + volume.predicted_bytes, 0) << call;
        });
    }
  }
}

// What a rank of a group receives when keepers ask it for rows, by hand: `server` is the place in the group of
// the rank that serves a vertex, `ranks` are the group's.
template <class Index>
struct ServedBytes {
  std::int64_t ids = 0, rows = 0, kept = 0, sums = 0, picks = 0, met = 0;

  template <class Server>
  ServedBytes(const Csr<Index>& whole, const std::vector<int>& ranks, int me, Server server) {
    constexpr auto kId = std::int64_t{sizeof(Index)};
    const std::int64_t value = whole.has_values() ? 4 : 0;
    ids = 8 * (std::ssize(ranks) - 1);  // one count per rank
    for (int asker = 0; asker < static_cast<int>(ranks.size()); ++asker)
      for (const auto& batch : batches_of(ranks[static_cast<std::size_t>(asker)], whole.rows)) {
        std::map<int, std::vector<std::int64_t>> by_server;
        for (const auto v : batch.frontier) by_server[server(v)].push_back(v);
        for (const auto& [place, vertices] : by_server) {
          if (place == asker) continue;
          if (place == me) {
            ids += 16 + kId * std::ssize(vertices);  // a line, then the ids
            picks += 8 + kId * std::ssize(batch.picks);
          }
          if (asker != me) continue;
          sums += 8 + (kId + 8) * std::ssize(sum_of(whole, vertices, true));
          for (const auto v : vertices) {
            const auto row = whole_row(whole, v);
            rows += kId + std::ssize(row) * (kId + value);
            kept += kId + std::ssize(keep_some(row, {v, batch.number}, whole.rows)) * (kId + 4);
            met += kId + std::ssize(meet(whole, v, batch.picks)) * (4 + value);
          }
        }
      }
  }
};

using Bytes =
    std::map<std::string, std::array<std::int64_t, kLabels.size()>>;  // by call, in the order of kLabels

template <class Index>
void expect_bytes(const DistCsr<Index>& a, Schedule schedule, Bytes expected) {
  SCOPED_TRACE(fmt::format("{} c {} {} bytes, values {}", name_of(schedule), a.grid->replication(),
                           sizeof(Index), a.has_values));
  book_calls(a, schedule, batches_of(test_world().rank(), a.rows()), [&](const std::string& call) {
    for (std::size_t k = 0; k < kLabels.size(); ++k)
      EXPECT_EQ(a.grid->traffic().of(kLabels[k]).bytes_received, expected[call][k])
          << call << " " << kLabels[k];
  });
}

// Runs work(grid, whole, a) for both index widths, with and without values, on every grid with several block rows.
template <class Work>
void for_every_partitioned(Work work) {
  const auto with = [&]<class Index>(Index, bool weighted) {
    const auto whole = random_graph<Index>(157, 6, weighted, test_seed(3));
    for (const int c : divisors(test_world().size())) {
      const Grid grid(test_world(), c);
      if (grid.rows() > 1) work(grid, whole, distribute(grid, whole, Topology::kPartitioned));
    }
  };
  for (const bool weighted : {false, true}) {
    with(std::int32_t{}, weighted);
    with(std::int64_t{}, weighted);
  }
}

std::vector<int> ranks_of_column(const Grid& grid) {
  std::vector<int> ranks;
  for (int i = 0; i < grid.rows(); ++i) ranks.push_back(i * grid.replication() + grid.column());
  return ranks;
}

// The vertices that the batches of these ranks need, each once.
std::set<std::int64_t> needed(const std::vector<int>& ranks, std::int64_t n) {
  std::set<std::int64_t> vertices;
  for (const int rank : ranks)
    for (const auto& batch : batches_of(rank, n))
      vertices.insert(batch.frontier.begin(), batch.frontier.end());
  return vertices;
}

template <class Index>
std::int64_t row_bytes(const Csr<Index>& whole, std::int64_t v) {
  const std::int64_t id = sizeof(Index), value = whole.has_values() ? 4 : 0;
  return id + whole.row_size(v) * (id + value);
}

TEST(ProductBytes, PullMovesEachDistinctRemoteRowOnce) {
  for_every_partitioned([]<class Index>(const Grid& grid, const Csr<Index>& whole, const DistCsr<Index>& a) {
    std::int64_t rows = 0, ids = 8 * (grid.rows() - 1);
    for (const int rank : ranks_of_column(grid))
      for (const auto v : needed({rank}, whole.rows))
        if (rank == test_world().rank())
          rows += a.is_local(v) ? 0 : row_bytes(whole, v);
        else
          ids += a.is_local(v) ? std::int64_t{sizeof(Index)} : 0;
    expect_bytes(a, Schedule::kPull, {{"open", {ids, rows, 0, 0}}});
  });
}

TEST(ProductBytes, PushMovesIdsLinesAndResults) {
  for_every_partitioned([]<class Index>(const Grid& grid, const Csr<Index>& whole, const DistCsr<Index>& a) {
    const ServedBytes<Index> bytes(whole, ranks_of_column(grid), grid.row(),
                                   [&](std::int64_t v) { return a.partition.owner(v); });
    expect_bytes(a, Schedule::kPush,
                 {{"open", {bytes.ids, 0, 0, 0}},
                  {"apply", {0, bytes.kept, 0, 0}},
                  {"sum", {0, 0, bytes.sums, 0}},
                  {"columns", {0, bytes.met, 0, bytes.picks}}});
  });
}

// Rows come down the column once per process row, and go to the keeper of their batch only.
TEST(ProductBytes, StagedFetchesWhatItsRowNeedsAndSendsEachKeeperItsOwn) {
  for_every_partitioned([]<class Index>(const Grid& grid, const Csr<Index>& whole, const DistCsr<Index>& a) {
    const int c = grid.replication(), parts = grid.rows();
    std::vector<int> column_of;  // of each block
    for (int j = 0; j < c; ++j)
      column_of.insert(column_of.end(), static_cast<std::size_t>(parts / c + (j < parts % c ? 1 : 0)), j);
    const auto server = [&](std::int64_t v) {
      return column_of[static_cast<std::size_t>(a.partition.owner(v))];
    };
    const auto ranks_of_row = [&](int row) {
      std::vector<int> ranks;
      for (int j = 0; j < c; ++j) ranks.push_back(row * c + j);
      return ranks;
    };
    const ServedBytes<Index> bytes(whole, ranks_of_row(grid.row()), grid.column(), server);
    std::int64_t ids = bytes.ids, rows = 0, blocks = 0;
    for (int part = 0; part < parts; ++part) {
      if (column_of[static_cast<std::size_t>(part)] != grid.column()) continue;
      ids += 8 * (parts - 1);  // counts of one stage
      for (auto v = a.partition.begin(part); v < a.partition.end(part); ++v)
        blocks += part == grid.row() ? 0 : row_bytes(whole, v);
    }
    for (int row = 0; row < parts; ++row)
      for (const auto v : needed(ranks_of_row(row), whole.rows)) {
        if (server(v) != grid.column()) continue;
        if (row == grid.row())
          rows += a.is_local(v) ? 0 : row_bytes(whole, v);
        else
          ids += a.is_local(v) ? std::int64_t{sizeof(Index)} : 0;
      }
    Bytes expected = {{"open", {ids, rows, 0, 0}},
                      {"apply", {0, 0, bytes.rows, 0}},
                      {"sum", {0, 0, bytes.sums, 0}},
                      {"columns", {0, 0, bytes.met, bytes.picks}}};
    expect_bytes(a, Schedule::kStaged, expected);
    expected["open"] = {bytes.ids, blocks, 0, 0};
    expect_bytes(a, Schedule::kStagedOblivious, expected);
  });
}

}  // namespace
}  // namespace espalier
