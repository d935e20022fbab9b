// ranks: 1 2 3 4 6
// long ranks: 8
// Laws of the distributed product: bytes are conserved, and are exactly those of the steps that a
// schedule consists of.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "product/product_cases.hpp"

namespace espalier {
namespace {

TEST(ProductBytes, SentAreReceivedUnderEveryLabelAndThereIsNoOtherLabel) {
  const auto whole = random_graph<std::int32_t>(157, 6, true, test_seed(3));
  const auto batches = batches_of(test_world().rank(), 157);
  for (const int c : divisors(test_world().size())) {
    const Grid grid(test_world(), c);
    const auto a = distribute(grid, whole, Topology::kPartitioned);
    for (const auto schedule : kSchedules)
      book_calls(Cpu{1}, a, schedule, batches, [&](const std::string& call) {
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
        book_calls(Cpu{1}, a, schedule, batches, [&](const std::string& call) {
          const auto volume = grid.traffic().of_stage("x");
          EXPECT_EQ(volume.messages + volume.bytes_sent + volume.bytes_received, 0) << call;
          EXPECT_EQ(volume.predicted_messages + volume.predicted_bytes, 0) << call;
        });
    }
  }
}

// What a rank of a group receives when owner ranks ask it for rows, by hand: `server` is the place
// in the group of the rank that serves a vertex, `ranks` are the group's.
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

// By call, in the order of kLabels.
using Bytes = std::map<std::string, std::array<std::int64_t, kLabels.size()>>;

template <class Index>
void expect_bytes(const DistCsr<Index>& a, Schedule schedule, Bytes expected) {
  SCOPED_TRACE(fmt::format("{} c {} {} bytes, values {}", name_of(schedule), a.grid->replication(),
                           sizeof(Index), a.has_values));
  book_calls(Cpu{1}, a, schedule, batches_of(test_world().rank(), a.rows()), [&](const std::string& call) {
    for (std::size_t k = 0; k < kLabels.size(); ++k)
      EXPECT_EQ(a.grid->traffic().of(kLabels[k]).bytes_received, expected[call][k])
          << call << " " << kLabels[k];
  });
}

// Runs work(grid, whole, a) for both index widths, with and without values, on every grid with
// several block rows.
template <class Work>
void for_every_partitioned(Work work) {
  const auto with = [&]<class Index>(Index, bool weighted) {
    const auto whole = random_graph<Index>(157, 6, weighted, test_seed(3));
    for (const int c : divisors(test_world().size())) {
      const Grid grid(test_world(), c);
      if (grid.rows() == 1) continue;
      for (const auto owned : {Owned::kInRanges, Owned::kAtRandom})
        work(grid, whole, distribute(grid, whole, ownership_of(owned, whole.rows, grid.rows())));
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
bool is_local(const DistCsr<Index>& a, std::int64_t v) {
  return a.ownership.owner(v) == a.part;
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
          rows += is_local(a, v) ? 0 : row_bytes(whole, v);
        else
          ids += is_local(a, v) ? std::int64_t{sizeof(Index)} : 0;
    expect_bytes(a, Schedule::kPull, {{"open", {ids, rows, 0, 0}}});
  });
}

TEST(ProductBytes, PushMovesIdsLinesAndResults) {
  for_every_partitioned([]<class Index>(const Grid& grid, const Csr<Index>& whole, const DistCsr<Index>& a) {
    const ServedBytes<Index> bytes(whole, ranks_of_column(grid), grid.row(),
                                   [&](std::int64_t v) { return a.ownership.owner(v); });
    expect_bytes(a, Schedule::kPush,
                 {{"open", {bytes.ids, 0, 0, 0}},
                  {"apply", {0, bytes.kept, 0, 0}},
                  {"sum", {0, 0, bytes.sums, 0}},
                  {"columns", {0, bytes.met, 0, bytes.picks}}});
  });
}

// Rows come down the column once per process row, and go to the owner rank of their batch only.
TEST(ProductBytes, StagedFetchesWhatItsRowNeedsAndSendsEachKeeperItsOwn) {
  for_every_partitioned([]<class Index>(const Grid& grid, const Csr<Index>& whole, const DistCsr<Index>& a) {
    const int c = grid.replication(), parts = grid.rows();
    std::vector<int> column_of;  // of each block
    for (int j = 0; j < c; ++j)
      column_of.insert(column_of.end(), static_cast<std::size_t>(parts / c + (j < parts % c ? 1 : 0)), j);
    const auto server = [&](std::int64_t v) {
      return column_of[static_cast<std::size_t>(a.ownership.owner(v))];
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
      for (std::int64_t k = 0; k < a.ownership.size(part); ++k)
        blocks += part == grid.row() ? 0 : row_bytes(whole, a.ownership.vertex(part, k));
    }
    for (int row = 0; row < parts; ++row)
      for (const auto v : needed(ranks_of_row(row), whole.rows)) {
        if (server(v) != grid.column()) continue;
        if (row == grid.row())
          rows += is_local(a, v) ? 0 : row_bytes(whole, v);
        else
          ids += is_local(a, v) ? std::int64_t{sizeof(Index)} : 0;
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
