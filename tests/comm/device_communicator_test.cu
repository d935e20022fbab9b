// ranks: 1 2 3 4
// long ranks: 6
// Laws of the CUDA implementation of Communicator, by NCCL (where each rank has a GPU of its own)
// and through the host: it moves what Communicator moves and books what Communicator books, in the
// order of the compute stream.
#include "espalier/comm/device_communicator.hpp"

#include <unistd.h>

#include "comm/device_transports.hpp"
#include "comm/emulated_switches.hpp"
#include "espalier/comm/exchange_rounds.hpp"

// Of the emulated NCCL: groups of sends and receives so far.
int espalier_emulated_exchanges() __attribute__((weak));

namespace espalier {
namespace {

class DeviceCommunicatorTest : public CudaTest {};

template <class T>
Buffer<T> numbers_of(int rank, std::size_t count) {
  Buffer<T> numbers(count);
  for (std::size_t k = 0; k < count; ++k)
    numbers[k] = static_cast<T>((k * 7919 + static_cast<std::size_t>(rank) * 104729) % 1000) / 8;
  return numbers;
}

void expect_same_volume(const Volume& a, const Volume& b) {
  EXPECT_EQ(a.messages, b.messages);
  EXPECT_EQ(a.rounds, b.rounds);
  EXPECT_EQ(a.bytes_sent, b.bytes_sent);
  EXPECT_EQ(a.bytes_received, b.bytes_received);
}

// How many items rank s sends to rank r in round k: sometimes none.
std::int64_t items(int s, int r, int k) {
  return (s * 5 + r * 3 + k) % 4 == 0 ? 0 : (s + 2 * r) % 3 * 17 + k;
}

template <class T>
struct Exchange {
  std::vector<std::int64_t> send_counts, receive_counts;
  Buffer<T> send, expected;
  DeviceArray<T> device_send, received;

  Exchange(const Cuda& gpu, const Communicator& comm, int round) {
    for (int r = 0; r < comm.size(); ++r) {
      send_counts.push_back(items(comm.rank(), r, round));
      receive_counts.push_back(items(r, comm.rank(), round));
    }
    send = numbers_of<T>(comm.rank() + 10 * round, count(send_counts));
    comm.all_to_all_v(std::span<const T>(send), send_counts, receive_counts, expected, "host");
    device_send = upload(gpu, send);
    received.resize(count(receive_counts));
  }
  DevicePendingExchange begin(const DeviceCommunicator& comm) {
    return comm.begin_all_to_all_v(device_send.data(), send_counts, received.data(), receive_counts,
                                   "device");
  }
  static std::size_t count(const std::vector<std::int64_t>& counts) {
    return static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  }
};

template <class T>
void expect_all_to_all(const Cuda& gpu, const Communicator& comm, bool by_nccl) {
  const DeviceCommunicator device(gpu, comm, by_nccl);
  for (int round = 0; round < 3; ++round) {
    comm.traffic().clear();
    Exchange<T> exchange(gpu, comm, round);
    exchange.begin(device).finish();
    EXPECT_EQ(download(gpu, exchange.received), exchange.expected) << "round " << round;
    expect_same_volume(comm.traffic().of("device"), comm.traffic().of("host"));
  }
}

TEST_F(DeviceCommunicatorTest, AllToAllVMovesAndBooksWhatTheHostsDoes) {
  for (const bool by_nccl : transports()) {
    SCOPED_TRACE(by_nccl);
    expect_all_to_all<float>(own_gpu(), test_world(), by_nccl);
    expect_all_to_all<std::int64_t>(own_gpu(), test_world(), by_nccl);
    expect_all_to_all<std::uint8_t>(own_gpu(), test_world(), by_nccl);
  }
}

std::vector<GpuPlace> places_of(const std::vector<int>& switches) {
  std::vector<GpuPlace> places;
  for (int rank = 0; rank < test_world().size(); ++rank)
    places.push_back({.node = 0, .pcie_switch = switches[static_cast<std::size_t>(rank)]});
  return places;
}

TEST_F(DeviceCommunicatorTest, InRoundsTheSameMovesAndIsBooked) {
  if (!is_emulated()) GTEST_SKIP() << "the switches are this machine's";
  const auto& world = test_world();
  for (const auto& switches : {std::vector<int>{0, 0, 1, 1, 2, 2}, std::vector<int>{0, 1, 0, 0, 1, 0},
                               std::vector<int>{0, 0, 0, 0, 0, 0}}) {
    const EmulatedSwitches emulated(switches);
    const auto places = places_of(switches);
    const auto rounds = static_cast<int>(exchange_rounds(places).size());
    const DeviceCommunicator device(own_gpu(), world, true);
    EXPECT_EQ(device.exchange_rounds(), std::max(rounds, 1));
    expect_all_to_all<float>(own_gpu(), world, true);
    expect_all_to_all<std::uint8_t>(own_gpu(), world, true);
  }
}

TEST_F(DeviceCommunicatorTest, ARoundIsAGroupOfSendsAndReceives) {
  if (!is_emulated()) GTEST_SKIP() << "the switches are this machine's";
  const auto& world = test_world();
  for (const auto& switches : {std::vector<int>{0, 0, 1, 1, 2, 2}, std::vector<int>{0, 0, 0, 0, 0, 0}}) {
    const EmulatedSwitches emulated(switches);
    const DeviceCommunicator device(own_gpu(), world, true);
    if (switches.back() > 0)
      EXPECT_EQ(device.exchange_rounds(),
                (std::vector<int>{0, 1, 1, 3, 5, 9, 13})[static_cast<std::size_t>(world.size())]);
    Exchange<float> exchange(own_gpu(), world, 1);
    std::vector<std::vector<int>> expected;
    for (const auto& partners : partners_by_round(places_of(switches), device.rank()))
      if (std::any_of(partners.begin(), partners.end(), [&](int partner) {
            const auto at = static_cast<std::size_t>(partner);
            return partner != device.rank() && exchange.send_counts[at] + exchange.receive_counts[at] > 0;
          }))
        expected.push_back(partners);
    const int before = espalier_emulated_exchanges();
    exchange.begin(device).finish();
    EXPECT_EQ(espalier_emulated_exchanges() - before, static_cast<int>(expected.size()));
  }
}

void expect_exchanges_under_way_do_not_mix() {
  const auto& gpu = own_gpu();
  for (const bool by_nccl : transports()) {
    SCOPED_TRACE(by_nccl);
    const DeviceCommunicator device(gpu, test_world(), by_nccl);
    Exchange<double> one(gpu, test_world(), 0), two(gpu, test_world(), 1), three(gpu, test_world(), 2);
    auto first = one.begin(device), second = two.begin(device);
    const auto values = upload(gpu, Buffer<std::int64_t>{1, 2});
    DeviceArray<std::int64_t> sums(2);
    copy(gpu, values, sums);
    device.all_reduce(sums.data(), 2, Reduction::kSum, "x");
    three.begin(device).finish();
    EXPECT_EQ(download(gpu, three.received), three.expected);
    second.finish();
    second.finish();  // nothing is under way
    first.finish();
    EXPECT_EQ(download(gpu, one.received), one.expected);
    EXPECT_EQ(download(gpu, two.received), two.expected);
    EXPECT_EQ(download(gpu, sums), (Buffer<std::int64_t>{device.size(), 2 * device.size()}));
    first = one.begin(device);  // takes the place of a finished one, and is dropped
  }
}

TEST_F(DeviceCommunicatorTest, ExchangesUnderWayDoNotMix) {
  expect_exchanges_under_way_do_not_mix();
  const EmulatedSwitches emulated({0, 0, 1, 1, 2, 2});
  expect_exchanges_under_way_do_not_mix();
}

template <class T>
void expect_reduced(const DeviceCommunicator& device, std::size_t count) {
  const auto& gpu = own_gpu();
  auto& traffic = device.host().traffic();
  for (const auto reduction : {Reduction::kSum, Reduction::kMin, Reduction::kMax}) {
    traffic.clear();
    auto numbers = numbers_of<T>(device.rank(), count);
    auto values = upload(gpu, numbers);
    device.host().all_reduce(std::span<T>(numbers), reduction, "host");
    device.all_reduce(values.data(), static_cast<std::int64_t>(count), reduction, "device");
    EXPECT_EQ(download(gpu, values), numbers);  // multiples of 1/8: sums are exact
    expect_same_volume(traffic.of("device"), traffic.of("host"));
  }
}

TEST_F(DeviceCommunicatorTest, AllReduceReducesAndBooksWhatTheHostsDoes) {
  for (const bool by_nccl : transports()) {
    SCOPED_TRACE(by_nccl);
    const DeviceCommunicator device(own_gpu(), test_world(), by_nccl);
    for (const std::size_t count : {1u, 33u, 1000u}) {
      expect_reduced<float>(device, count);
      expect_reduced<double>(device, count);
      expect_reduced<std::int64_t>(device, count);
      expect_reduced<std::uint64_t>(device, count);
    }
  }
}

template <class T>
void expect_broadcast(const DeviceCommunicator& device, int root, std::size_t count) {
  const auto& gpu = own_gpu();
  auto& traffic = device.host().traffic();
  traffic.clear();
  auto numbers = numbers_of<T>(device.rank(), count);
  auto values = upload(gpu, numbers);
  device.host().broadcast(std::span<T>(numbers), root, "host");
  device.broadcast(values.data(), static_cast<std::int64_t>(count), root, "device");
  EXPECT_EQ(numbers, numbers_of<T>(root, count));
  EXPECT_EQ(download(gpu, values), numbers);
  expect_same_volume(traffic.of("device"), traffic.of("host"));
}

TEST_F(DeviceCommunicatorTest, BroadcastGivesWhatAnyRootHasAndBooksWhatTheHostsDoes) {
  for (const bool by_nccl : transports()) {
    SCOPED_TRACE(by_nccl);
    const DeviceCommunicator device(own_gpu(), test_world(), by_nccl);
    for (int root = device.size() - 1; root >= 0; --root)
      for (const std::size_t count : {0u, 1u, 1000u}) {
        expect_broadcast<float>(device, root, count);
        expect_broadcast<std::int64_t>(device, root, count);
        expect_broadcast<std::uint8_t>(device, root, count);
      }
  }
}

// Nobody waits between them: what one left in memory of the host is still to be copied.
TEST_F(DeviceCommunicatorTest, BroadcastsThatFollowEachOtherKeepApart) {
  const auto& gpu = own_gpu();
  for (const bool by_nccl : transports()) {
    SCOPED_TRACE(by_nccl);
    const DeviceCommunicator device(gpu, test_world(), by_nccl);
    for (int root = 0; root < device.size(); ++root) {
      std::vector<DeviceArray<float>> arrays;
      for (const std::size_t count : {1000, 999, 1000})
        arrays.push_back(upload(gpu, numbers_of<float>(device.rank() + static_cast<int>(count), count)));
      for (auto& array : arrays)
        device.broadcast(array.data(), static_cast<std::int64_t>(array.size()), root, "device");
      for (const auto& array : arrays)
        EXPECT_EQ(download(gpu, array),
                  numbers_of<float>(root + static_cast<int>(array.size()), array.size()));
    }
  }
}

TEST_F(DeviceCommunicatorTest, AllGatherVPutsArraysInRankOrder) {
  const auto& gpu = own_gpu();
  const int p = test_world().size(), me = test_world().rank();
  for (const bool by_nccl : transports()) {
    SCOPED_TRACE(by_nccl);
    const DeviceCommunicator device(gpu, test_world(), by_nccl);
    std::vector<std::int64_t> counts;
    Buffer<std::int32_t> expected;
    std::int64_t received = 0;
    for (int r = 0; r < p; ++r) {
      counts.push_back(r % 2 == 1 ? 0 : 3 + 10 * r);  // odd ranks have nothing
      const auto theirs = numbers_of<std::int32_t>(r, static_cast<std::size_t>(counts.back()));
      expected.insert(expected.end(), theirs.begin(), theirs.end());
      received += r == me ? 0 : 4 * counts.back();
    }
    const auto own = counts[static_cast<std::size_t>(me)];
    const auto mine = upload(gpu, numbers_of<std::int32_t>(me, static_cast<std::size_t>(own)));
    DeviceArray<std::int32_t> all(expected.size());
    test_world().traffic().clear();
    device.all_gather_v(mine.data(), counts, all.data(), "gather");
    EXPECT_EQ(download(gpu, all), expected);
    const auto volume = test_world().traffic().of("gather");
    EXPECT_EQ(volume.bytes_received, received);
    EXPECT_EQ(volume.bytes_sent, 4 * own * (p - 1));
    EXPECT_EQ(volume.rounds, p > 1);
  }
}

TEST_F(DeviceCommunicatorTest, OneRankSendsNothing) {
  const auto& gpu = own_gpu();
  const auto alone = test_world().split(test_world().rank(), 0);
  const DeviceCommunicator device(gpu, alone, true);
  alone.traffic().clear();
  expect_all_to_all<float>(gpu, alone, true);
  alone.traffic().clear();
  const auto numbers = upload(gpu, Buffer<float>{1, 2, 3});
  DeviceArray<float> gathered(3);
  const std::int64_t count = 3;
  device.all_gather_v(numbers.data(), {&count, 1}, gathered.data(), "x");
  device.all_reduce(gathered.data(), 3, Reduction::kSum, "x");
  EXPECT_EQ(download(gpu, gathered), (Buffer<float>{1, 2, 3}));
  EXPECT_EQ(alone.traffic().of("x").messages, 0);
}

TEST_F(DeviceCommunicatorTest, AGridFindsOutWhetherRanksShareAGpu) {
  const auto& world = test_world();
  for (const int c : divisors(world.size())) {
    const Grid grid(world, c);
    const DeviceGrid own(own_gpu(), grid);
    const bool each_has_one = place_on_node(world).ranks <= count_gpus();
    EXPECT_STREQ(own.transport(), each_has_one ? "NCCL" : "host buffers and MPI");
    if (world.rank() == world.size() - 1) setenv("ESPALIER_NO_NCCL", "1", 1);
    const DeviceGrid forbidden(own_gpu(), grid);
    unsetenv("ESPALIER_NO_NCCL");
    EXPECT_STREQ(forbidden.transport(), "host buffers and MPI");
    const DeviceGrid shared(Cuda(0), grid);
    own_gpu().use();  // a process takes one GPU, and this one has taken another
    EXPECT_STREQ(shared.transport(), world.size() == 1 ? "NCCL" : "host buffers and MPI");
    for (const auto* device : {&own, &forbidden, &shared}) {
      EXPECT_EQ(device->row_comm().size(), c);
      EXPECT_EQ(device->column_comm().rank(), grid.row());
      Exchange<float> row(own_gpu(), grid.row_comm(), 1), column(own_gpu(), grid.column_comm(), 2);
      auto pending = row.begin(device->row_comm());
      column.begin(device->column_comm()).finish();
      pending.finish();
      EXPECT_EQ(download(own_gpu(), row.received), row.expected);
      EXPECT_EQ(download(own_gpu(), column.received), column.expected);
    }
  }
}

// The emulation's ncclCommAbort waits for the other ranks, as the library's may.
TEST_F(DeviceCommunicatorTest, OneThatAnErrorTakesDownWaitsForNobody) {
  if (transports().size() == 1) GTEST_SKIP() << "ranks share a GPU";
  const auto& world = test_world();
  auto device = std::make_unique<DeviceCommunicator>(own_gpu(), world, true);
  const auto fail = [&] {
    const auto taken_down = std::move(device);
    throw std::runtime_error("of one rank");
  };
  alarm(60);  // seconds; a rank that waits is ended
  if (world.rank() == 0) EXPECT_THROW(fail(), std::runtime_error);
  world.barrier();
  if (world.rank() > 0) EXPECT_THROW(fail(), std::runtime_error);
  alarm(0);
}

// NCCL refuses ranks at one place of the bus, whatever the ids of the slices there.
TEST_F(DeviceCommunicatorTest, SlicesOfAGpuAreTheSameToNccl) {
  if (!is_emulated()) GTEST_SKIP() << "no slices";
  const auto& world = test_world();
  setenv("ESPALIER_EMULATED_SLICES", "2", 1);
  const Grid grid(world, 1);
  const DeviceGrid sliced(own_gpu(), grid);
  EXPECT_STREQ(sliced.transport(), world.size() == 1 ? "NCCL" : "host buffers and MPI");
  unsetenv("ESPALIER_EMULATED_SLICES");
}

TEST_F(DeviceCommunicatorTest, RanksOfANodeTakeItsGpusInTurn) {
  const int gpus = count_gpus();
  for (int place = 0; place < 3 * gpus; ++place)
    EXPECT_EQ(gpu_for({.ranks = 3 * gpus, .place = place}), place % gpus);
}

}  // namespace
}  // namespace espalier
