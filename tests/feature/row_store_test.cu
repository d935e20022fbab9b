// ranks: 1 2 3 4
// long ranks: 6
// Laws of a RowStore on GPUs: it fetches what the host's store fetches, bit for bit, moves
// the same bytes under the same label, from device memory and from pinned memory, by both
// transports; fetches under way keep their rows.
#include "espalier/feature/row_store.hpp"

#include "comm/device_transports.hpp"
#include "dense/device_matrices.hpp"
#include "espalier/dense/spmm.hpp"
#include "row_store_cases.hpp"

namespace espalier {
namespace {

class RowStoreOnGpu : public CudaTest {};

using Lists = std::vector<std::vector<std::int64_t>>;

float entry(std::int64_t i, std::int64_t j) {
  const RandomStream stream = {.seed = test_seed(4), .row = static_cast<std::uint64_t>(i)};
  return static_cast<float>(to_unit_double(random64(stream, static_cast<std::uint64_t>(j))) * 10 - 3);
}

template <class T>
RowStore host_store(const Grid& grid, std::int64_t n, std::int64_t width, bool narrow = false) {
  const auto partition = block_partition(n, grid.rows());
  return RowStore(grid, partition,
                  stored_rows<T>(partition, grid.row(), width, [&](std::int64_t i, std::int64_t j) {
                    return narrow ? to_float(to_bfloat16(entry(i, j))) : entry(i, j);
                  }));
}

// The numbers of `entry` in codes.
struct InCodes;
template <>
RowStore host_store<InCodes>(const Grid& grid, std::int64_t n, std::int64_t width, bool) {
  constexpr int kBits = 4;
  const auto partition = block_partition(n, grid.rows());
  const auto numbers = stored_rows<float>(partition, grid.row(), width, entry);
  const Quantisation packing = {width, kBits, Buffer<double>(width, -3.0), Buffer<double>(width, 10.0 / 15)};
  StoredRows<Cpu> rows({kind_asked(kBits), width, std::make_shared<Quantisation>(packing)}, numbers.rows);
  write_rows(rows.form, numbers, rows.data);
  return RowStore(grid, partition, std::move(rows));
}

// Lists of different lengths, in no order; some ranks have none, some an empty one.
Lists lists_of(std::int64_t n, int rank) {
  if (rank % 3 == 1) return {};
  std::vector<std::int64_t> first, second;
  for (std::int64_t i = n - 1; i >= 0; i -= 2) first.push_back(i);
  for (std::int64_t i = rank % 3; i < n; i += 3) second.push_back(i * 5 % n);
  std::sort(second.begin(), second.end());
  second.erase(std::unique(second.begin(), second.end()), second.end());
  if (!second.empty()) std::swap(second.front(), second.back());
  return {first, {}, second};
}

using DeviceLists = ListsOnSpace<Cuda>;

std::vector<Matrix<float>> fetched_by_host(const RowStore& store, const Lists& lists) {
  std::vector<Matrix<float>> rows;
  store.fetch({1}, std::vector<std::span<const std::int64_t>>(lists.begin(), lists.end()), rows, "host");
  return rows;
}

void expect_rows(const std::vector<Matrix<float, Cuda>>& rows, const std::vector<Matrix<float>>& expected) {
  ASSERT_GE(rows.size(), expected.size());
  for (std::size_t m = 0; m < expected.size(); ++m) {
    EXPECT_EQ(rows[m].rows, expected[m].rows);
    EXPECT_EQ(rows[m].columns, expected[m].columns);
    EXPECT_EQ(download(own_gpu(), rows[m].data), expected[m].data) << "list " << m;
  }
}

struct Case {
  Placement placement;
  std::int64_t n, width;
};

template <class Check>
void for_every_case(const Check& check) {
  for_every_device_grid(transports(), [&](const Grid& grid, const DeviceGrid& device, bool by_nccl) {
    const int c = grid.replication();
    for (const auto placement : {Placement::kDevice, Placement::kHost})
      for (const auto& [n, width] : {std::pair{2, 1}, {7, 3}, {50, 32}, {97, 5}}) {
        if (placement == Placement::kHost && c > 1 && c < test_world().size()) continue;
        SCOPED_TRACE(fmt::format("nccl {} c {} pinned {} n {} width {}", by_nccl, c,
                                 placement == Placement::kHost, n, width));
        check(grid, device, Case{placement, n, width});
      }
  });
}

template <class T>
void expect_fetch(const Grid& grid, const DeviceGrid& on_gpus, const Case& of, bool narrow = false) {
  const auto& gpu = own_gpu();
  // Narrow rows have two bytes a number, as the rows of this store of halves: its bytes are those
  // that are expected.
  const auto host = host_store<T>(grid, of.n, of.width, narrow);
  const auto halves = host_store<Half>(grid, of.n, of.width);
  const auto store = to_device(gpu, on_gpus, host, of.placement, narrow);
  EXPECT_EQ(store.width(), of.width);
  EXPECT_EQ(store.storage().row_bytes(), (narrow ? halves : host).storage().row_bytes());
  auto& traffic = grid.traffic();
  std::vector<Matrix<float, Cuda>> rows;
  for (int round = 0; round < 2; ++round) {
    const auto lists = lists_of(of.n, grid.world().rank() + round);
    const DeviceLists device(gpu, lists);
    traffic.clear();
    const auto expected = fetched_by_host(host, lists);
    if (narrow) {
      traffic.clear();
      fetched_by_host(halves, lists);
    }
    store.fetch(gpu, device.spans, rows, "device");
    expect_rows(rows, expected);
    expect_same_traffic({{"x", traffic.of("device")}}, {{"x", traffic.of("host")}});
  }
}

TEST_F(RowStoreOnGpu, FetchesAndBooksWhatTheHostsStoreDoes) {
  for_every_case([](const Grid& grid, const DeviceGrid& device, const Case& of) {
    expect_fetch<float>(grid, device, of);
    expect_fetch<Half>(grid, device, of);
    expect_fetch<InCodes>(grid, device, of);
    expect_fetch<float>(grid, device, of, true);
  });
}

// Blocks of 2^31 / parts rows and more, of which the store has the first ones only: below 2^31
// vertices ids travel in 4 bytes, beyond in 8, as on the host.
TEST_F(RowStoreOnGpu, IdsTravelAtTheirOwnWidth) {
  constexpr std::int64_t kRows = 3, kColumns = 4, kWide = std::int64_t{1} << 31;
  for (const bool by_nccl : transports())
    for (const std::int64_t n : {kWide - 1, kWide + 1, 3 * kWide}) {
      SCOPED_TRACE(n);
      const Grid grid(test_world(), 1);
      const auto device = device_grid(grid, by_nccl);
      const auto partition = block_partition(n, grid.rows());
      Matrix<float> local(kRows, kColumns);
      for (std::int64_t i = 0; i < kRows; ++i)
        for (std::int64_t j = 0; j < kColumns; ++j) local(i, j) = entry(partition.begin(grid.row()) + i, j);
      const RowStore host(grid, partition, std::move(local));
      const auto store = to_device(own_gpu(), device, host, Placement::kDevice);
      Lists lists(1);
      for (int part = grid.rows() - 1; part >= 0; --part)
        for (std::int64_t i = kRows - 1; i >= 0; --i) lists[0].push_back(partition.begin(part) + i);
      grid.traffic().clear();
      const auto expected = fetched_by_host(host, lists);
      std::vector<Matrix<float, Cuda>> rows;
      store.fetch(own_gpu(), DeviceLists(own_gpu(), lists).spans, rows, "device");
      expect_rows(rows, expected);
      const std::int64_t peers = grid.rows() - 1, id_bytes = n < kWide ? 4 : 8;
      const auto volume = grid.traffic().of("device");
      EXPECT_EQ(volume.bytes_received, 8 * peers + peers * kRows * (id_bytes + 4 * kColumns));
      EXPECT_EQ(volume.bytes_received, grid.traffic().of("host").bytes_received);
      EXPECT_EQ(volume.predicted_bytes, grid.traffic().of("host").predicted_bytes);
    }
}

TEST_F(RowStoreOnGpu, NarrowRowsAreRoundedOnce) {
  const Grid grid(test_world(), 1);
  const DeviceGrid device(own_gpu(), grid);
  const auto narrow = to_device(own_gpu(), device, host_store<float>(grid, 31, 6), Placement::kDevice, true);
  const Lists lists = {{30, 0, 17, 1}};
  std::vector<Matrix<float, Cuda>> rows;
  narrow.fetch(own_gpu(), DeviceLists(own_gpu(), lists).spans, rows, "x");
  expect_rows(rows, fetched_by_host(host_store<float>(grid, 31, 6, true), lists));
}

// A fetch begins before the one before it has finished; the lists are gone by then.
TEST_F(RowStoreOnGpu, FetchesUnderWayKeepTheirRows) {
  const auto& gpu = own_gpu();
  for_every_case([&](const Grid& grid, const DeviceGrid& device, const Case& of) {
    const auto host = host_store<float>(grid, of.n, of.width);
    const auto store = to_device(gpu, device, host, of.placement);
    PendingFetchOn<Cuda> pending[2];
    std::vector<Matrix<float>> expected[2];
    std::vector<Matrix<float, Cuda>> rows;
    for (int step = 0; step < 5; ++step) {
      const auto lists = lists_of(of.n, grid.world().rank() + step);
      expected[step % 2] = fetched_by_host(host, lists);
      store.begin_counts(gpu, DeviceLists(gpu, lists).spans, pending[step % 2], "fetch");
      store.advance(gpu, pending[step % 2], FetchMove::kRows, "fetch");
      if (step == 0) continue;
      pending[1 - step % 2].progress();
      store.finish_fetch(gpu, pending[1 - step % 2], rows);
      expect_rows(rows, expected[1 - step % 2]);
    }
    // The last one is given up, and its memory used again.
    const auto lists = lists_of(of.n, grid.world().rank());
    store.begin_counts(gpu, DeviceLists(gpu, lists).spans, pending[0], "fetch");
    store.advance(gpu, pending[0], FetchMove::kRows, "fetch");
    store.finish_fetch(gpu, pending[0], rows);
    expect_rows(rows, fetched_by_host(host, lists));
  });
}

TEST_F(RowStoreOnGpu, TakesRowsThatLieOnTheDevice) {
  const auto& gpu = own_gpu();
  const Grid grid(test_world(), 1);
  const DeviceGrid device(gpu, grid);
  const auto host = host_store<float>(grid, 41, 4);
  const auto local = host.storage().rows().floats();
  Matrix<float, Cuda> on_device(local.rows, local.columns);
  upload(gpu, std::span<const float>(local.data, on_device.data.size()), on_device.data);
  const RowStoreOn<Cuda> store(device, host.ownership(), std::move(on_device));
  const auto lists = lists_of(41, grid.world().rank());
  std::vector<Matrix<float, Cuda>> rows;
  store.fetch(gpu, DeviceLists(gpu, lists).spans, rows, "x");
  expect_rows(rows, fetched_by_host(host, lists));
}

}  // namespace
}  // namespace espalier
