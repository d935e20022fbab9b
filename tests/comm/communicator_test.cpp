// ranks: 1 2 3 4 6
// long ranks: 8
// Laws: collectives move exactly what they are given, at any rank count, and book exactly the bytes
// that crossed.
#include <gtest/gtest.h>

#include <array>

#include "espalier/base/work_queue.hpp"
#include "espalier/comm/communicator.hpp"
#include "mpi_test.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

TEST(Communicator, AllToAllVDeliversEveryPieceAndBooksItsBytes) {
  const auto& world = test_world();
  const int p = world.size(), me = world.rank();
  world.traffic().clear();
  // Rank s sends (s + 2 r) % 3 copies of 100 s + r to rank r: some pairs exchange nothing.
  std::vector<std::int64_t> counts;
  Buffer<std::int32_t> send;
  std::int64_t crossing = 0;
  for (int r = 0; r < p; ++r) {
    counts.push_back((me + 2 * r) % 3);
    if (r != me) crossing += 4 * counts.back();
    for (std::int64_t k = 0; k < counts.back(); ++k) send.push_back(100 * me + r);
  }
  const auto received = world.all_to_all_v(std::span<const std::int32_t>(send), counts, "piece");
  std::size_t at = 0;
  for (int s = 0; s < p; ++s) {
    EXPECT_EQ(received.counts[static_cast<std::size_t>(s)], (s + 2 * me) % 3);
    for (std::int64_t k = 0; k < received.counts[static_cast<std::size_t>(s)]; ++k)
      EXPECT_EQ(received.data[at++], 100 * s + me);
  }
  EXPECT_EQ(at, received.data.size());
  const auto sent = world.traffic().of("piece").bytes_sent;
  EXPECT_EQ(sent, crossing + 8 * (p - 1)) << "pieces plus one 64-bit count per peer";
  const auto total_sent = world.all_reduce(sent, Reduction::kSum, "check");
  const auto total_received =
      world.all_reduce(world.traffic().of("piece").bytes_received, Reduction::kSum, "check");
  EXPECT_EQ(total_sent, total_received) << "bytes are conserved";
}

// Rank s sends `round` + (s + r) % 3 values to rank r, each naming round, s and r.
struct Round {
  std::vector<std::int64_t> send_counts, receive_counts;
  Buffer<std::int64_t> send, received;

  Round(std::int64_t round, const Communicator& comm) {
    for (int r = 0; r < comm.size(); ++r) {
      const auto count = round + (comm.rank() + r) % 3;
      send_counts.push_back(count);
      receive_counts.push_back(count);
      for (std::int64_t k = 0; k < count; ++k) send.push_back(name(round, comm.rank(), r, k));
    }
  }
  static std::int64_t name(std::int64_t round, int from, int to, std::int64_t k) {
    return round * 1000000 + from * 10000 + to * 100 + k;
  }
  void expect_received(std::int64_t round, const Communicator& comm) const {
    std::size_t at = 0;
    for (int s = 0; s < comm.size(); ++s)
      for (std::int64_t k = 0; k < receive_counts[static_cast<std::size_t>(s)]; ++k)
        EXPECT_EQ(received[at++], name(round, s, comm.rank(), k)) << "round " << round;
    EXPECT_EQ(at, received.size());
  }
};

TEST(Communicator, ExchangesUnderWayDoNotMix) {
  const auto& world = test_world();
  const auto begin = [&](Round& round) {
    return world.begin_all_to_all_v(std::span<const std::int64_t>(round.send), round.send_counts,
                                    round.receive_counts, round.received, "begun");
  };
  world.traffic().clear();
  Round zero(0, world), one(1, world), many(40, world);
  auto first = begin(zero), second = begin(many);
  EXPECT_EQ(world.all_reduce(1, Reduction::kSum, "x"), world.size()) << "another collective in between";
  auto third = begin(one);
  Round blocking(5, world);
  world.all_to_all_v(std::span<const std::int64_t>(blocking.send), blocking.send_counts,
                     blocking.receive_counts, blocking.received, "x");
  blocking.expect_received(5, world);
  third.finish();
  one.expect_received(1, world);
  auto moved = std::move(second);
  for (int k = 0; k < 3; ++k) moved.progress();
  moved.finish();
  moved.finish();  // nothing is under way
  many.expect_received(40, world);
  first.finish();
  zero.expect_received(0, world);
  std::int64_t crossing = 0;
  for (const auto* round : {&zero, &one, &many})
    for (int r = 0; r < world.size(); ++r)
      if (r != world.rank()) crossing += 8 * round->send_counts[static_cast<std::size_t>(r)];
  EXPECT_EQ(world.traffic().of("begun").bytes_sent, crossing);
  EXPECT_EQ(world.traffic().of("begun").bytes_received, crossing);
}

TEST(Communicator, AnExchangeThatIsDroppedArrives) {
  const auto& world = test_world();
  Round dropped(30, world);
  {
    const auto exchange =
        world.begin_all_to_all_v(std::span<const std::int64_t>(dropped.send), dropped.send_counts,
                                 dropped.receive_counts, dropped.received, "x");
  }
  dropped.expect_received(30, world);
}

// Both threads do many collectives, of different kinds and lengths, at the same time.
TEST(Communicator, ADuplicateServesAnotherThreadAndItsOwnLedger) {
  if (!threads_may_communicate()) GTEST_SKIP() << "this MPI library lets one thread communicate";
  const auto& world = test_world();
  const auto other = world.duplicate();
  world.traffic().clear();
  const auto exchange_often = [](const Communicator& comm, int times) {
    for (int k = 0; k < times; ++k) {
      Round round(k % 7, comm);
      comm.all_to_all_v(std::span<const std::int64_t>(round.send), round.send_counts, round.receive_counts,
                        round.received, "exchange");
      round.expect_received(k % 7, comm);
    }
  };
  WorkQueue beside(true);
  const auto exchanged = beside.add([&] { exchange_often(other, 300); });
  for (int k = 0; k < 200; ++k)
    EXPECT_EQ(world.all_reduce(std::int64_t{world.rank() + k}, Reduction::kMax, "reduce"),
              world.size() - 1 + k);
  exchanged.get();
  const std::int64_t peers = world.size() - 1;
  EXPECT_EQ(world.traffic().of("exchange").bytes_sent, 0);
  EXPECT_EQ(other.traffic().of("reduce").bytes_sent, 0);
  EXPECT_EQ(world.traffic().of("reduce").messages, 200 * 2 * peers);
  const auto sent = other.traffic().of("exchange").bytes_sent;
  EXPECT_EQ(sent > 0, peers > 0);
  world.traffic().book("exchange", {.bytes_sent = 5});
  world.traffic().take_over(other.traffic());
  EXPECT_EQ(world.traffic().of("exchange").bytes_sent, sent + 5);
  EXPECT_TRUE(other.traffic().all().empty());
}

// What `work` books on this rank.
template <class Work>
Volume booked(const Communicator& comm, const Work& work) {
  comm.traffic().clear();
  work();
  return comm.traffic().of("case");
}

void expect_volume(const Volume& volume, std::int64_t rounds, std::int64_t sent, std::int64_t received) {
  EXPECT_EQ(volume.rounds, rounds);
  EXPECT_EQ(volume.bytes_sent, sent);
  EXPECT_EQ(volume.bytes_received, received);
}

// The table of traffic.hpp, per rank.
void expect_table(const Communicator& comm) {
  const std::int64_t p = comm.size(), me = comm.rank(), once = p > 1;
  std::vector<double> numbers(static_cast<std::size_t>(5 * p), 1.0);  // n = 40 p bytes
  const auto reduction =
      booked(comm, [&] { comm.all_reduce(std::span<double>(numbers), Reduction::kMax, "case"); });
  expect_volume(reduction, once, 80 * (p - 1), 80 * (p - 1));
  const std::int64_t root = p - 1;
  const auto broadcast = booked(
      comm, [&] { comm.broadcast(std::span<double>(numbers).first(3), static_cast<int>(root), "case"); });
  expect_volume(broadcast, once, me == root ? 24 * (p - 1) : 0, me == root ? 0 : 24);
  const auto gather = booked(comm, [&] { comm.all_gather(std::array<float, 3>{}, "case"); });
  expect_volume(gather, once, 12 * (p - 1), 12 * (p - 1));
  const auto exchange = booked(comm, [&] {
    comm.exchange_counts(std::vector<std::int64_t>(static_cast<std::size_t>(p), me), "case");
  });
  expect_volume(exchange, once, 8 * (p - 1), 8 * (p - 1));
  // Rank r has r + 1 numbers; their count, 8 bytes per rank, is gathered first.
  const auto gather_v = booked(comm, [&] {
    comm.all_gather_v(std::span<const double>(numbers).first(static_cast<std::size_t>(me + 1)), "case");
  });
  expect_volume(gather_v, 2 * once, 8 * (p - 1) + 8 * (me + 1) * (p - 1),
                8 * (p - 1) + 8 * (p * (p + 1) / 2 - (me + 1)));
}

TEST(Communicator, EveryCollectiveBooksTheBytesOfTheTable) {
  expect_table(test_world());
  for (const int c : divisors(test_world().size())) {
    const Grid grid(test_world(), c);
    expect_table(grid.row_comm());
    expect_table(grid.column_comm());
  }
}

// A round is one for all ranks, also for those with nothing to say in it.
TEST(Communicator, AnExchangeIsARoundForEveryRank) {
  const auto& world = test_world();
  const auto p = static_cast<std::size_t>(world.size());
  std::vector<std::int64_t> from_last(p), mine(p);
  if (world.rank() == world.size() - 1) from_last[0] = 1;
  if (world.rank() == 0) mine[p - 1] = 1;
  Buffer<std::int64_t> received;
  const std::vector<std::int64_t> sent(static_cast<std::size_t>(from_last[0]), 7);
  const auto volume = booked(world, [&] {
    world.all_to_all_v(std::span<const std::int64_t>(sent), from_last, mine, received, "case");
  });
  EXPECT_EQ(volume.rounds, p > 1);
}

TEST(Communicator, LabelsKeepTheirOwnSums) {
  const auto& world = test_world();
  world.traffic().clear();
  for (const char* label : {"a", "b", "a"}) world.all_gather(std::int64_t{0}, label);
  const std::int64_t once = world.size() > 1;
  expect_volume(world.traffic().of("a"), 2 * once, 16 * (world.size() - 1), 16 * (world.size() - 1));
  expect_volume(world.traffic().of("b"), once, 8 * (world.size() - 1), 8 * (world.size() - 1));
  expect_volume(world.traffic().of("none"), 0, 0, 0);
}

TEST(Communicator, ReductionsAndGathers) {
  const auto& world = test_world();
  const int p = world.size(), me = world.rank();
  EXPECT_EQ(world.all_reduce(std::int64_t{me}, Reduction::kSum, "x"), p * (p - 1) / 2);
  EXPECT_EQ(world.all_reduce(me, Reduction::kMax, "x"), p - 1);
  EXPECT_EQ(world.all_reduce(std::uint64_t{1} << 63, Reduction::kSum, "x"),
            p % 2 ? std::uint64_t{1} << 63 : 0)
      << "sums of uint64 wrap: digests rely on it";
  const std::vector<int> mine(static_cast<std::size_t>(me), me);
  const auto all = world.all_gather_v(std::span<const int>(mine), "x");
  std::size_t at = 0;
  for (int r = 0; r < p; ++r)
    for (int k = 0; k < r; ++k) EXPECT_EQ(all[at++], r);
  EXPECT_EQ(world.broadcast_text(me == p - 1 ? "from the last" : "", p - 1, "x"), "from the last");
}

TEST(Grid, EveryDivisorGivesRowsAndColumns) {
  for (const int c : divisors(test_world().size())) {
    const Grid grid(test_world(), c);
    EXPECT_EQ(grid.rows() * grid.replication(), grid.ranks());
    EXPECT_EQ(grid.row() * c + grid.column(), grid.world().rank());
    EXPECT_EQ(grid.row_comm().size(), c);
    EXPECT_EQ(grid.row_comm().rank(), grid.column());
    EXPECT_EQ(grid.column_comm().size(), grid.rows());
    EXPECT_EQ(grid.column_comm().rank(), grid.row());
  }
}

TEST(Grid, RefusesAReplicationThatDoesNotDivide) {
  EXPECT_THROW(Grid(test_world(), test_world().size() + 1), UserError);
  EXPECT_THROW(Grid(test_world(), 0), UserError);
}

TEST(Agree, TheErrorOfOneRankIsTheErrorOfAll) {
  const auto& world = test_world();
  const int guilty = world.size() / 2;
  EXPECT_EQ(message_of(ExitCode::kInput,
                       [&] {
                         agree(world, [&] {
                           if (world.rank() >= guilty) input_error("bad row on rank {}", world.rank());
                         });
                       }),
            fmt::format("bad row on rank {}", guilty));
  EXPECT_NO_THROW(agree(world, [] {}));
}

}  // namespace
}  // namespace espalier
