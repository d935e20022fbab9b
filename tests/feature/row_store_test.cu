// ranks: 1 2 3 4 6
// Laws of a RowStore on GPUs: what is pushed is there as a loop over all minibatches would have
// left it, to the last bit, on every grid, in every copy, by both transports; it moves the bytes
// that the host's store moves.
#include "espalier/feature/row_store.hpp"

#include <cmath>

#include "comm/device_transports.hpp"
#include "dense/device_matrices.hpp"
#include "row_store_cases.hpp"

namespace espalier {
namespace {

class RowStoreOnGpu : public CudaTest {};

Matrix<float, Cuda> on_gpu(const Matrix<float>& host) {
  Matrix<float, Cuda> matrix(host.rows, host.columns);
  matrix.data = upload(own_gpu(), host.data);
  return matrix;
}

void push(RowStoreOn<Cuda>& store, const std::vector<PushedBatch>& batches, Push mode) {
  std::vector<DeviceArray<std::int64_t>> arrays;
  std::vector<std::span<const std::int64_t>> lists;
  std::vector<std::int64_t> numbers;
  std::vector<Matrix<float, Cuda>> rows;
  for (const auto& batch : batches) {
    arrays.push_back(upload(own_gpu(), Buffer<std::int64_t>(batch.ids.begin(), batch.ids.end())));
    lists.emplace_back(arrays.back().data(), batch.ids.size());
    numbers.push_back(batch.number);
    rows.push_back(on_gpu(batch.rows));
  }
  store.push(own_gpu(), lists, numbers, rows, mode, "device");
}

void push_on_host(RowStore& store, const std::vector<PushedBatch>& batches, Push mode) {
  std::vector<std::span<const std::int64_t>> lists;
  std::vector<std::int64_t> numbers;
  std::vector<Matrix<float>> rows;
  for (const auto& batch : batches) {
    lists.emplace_back(batch.ids);
    numbers.push_back(batch.number);
    rows.push_back(batch.rows);
  }
  store.push(Cpu{1}, lists, numbers, rows, mode, "host");
}

// Whatever rows the ranks ask for: each rank others, backwards.
void expect_fetched(const RowStoreOn<Cuda>& store, const Matrix<float>& expected) {
  Buffer<std::int64_t> ids;
  for (auto v = expected.rows - 1 - test_world().rank() % 2; v >= 0; v -= 2) ids.push_back(v);
  const auto on_device = upload(own_gpu(), ids);
  const std::vector<std::span<const std::int64_t>> lists = {{on_device.data(), ids.size()}};
  std::vector<Matrix<float, Cuda>> rows;
  store.fetch(own_gpu(), lists, rows, "fetch");
  const auto fetched = download(own_gpu(), rows[0].data);
  for (std::size_t k = 0; k < ids.size(); ++k)
    EXPECT_TRUE(std::equal(expected.row(ids[k]), expected.row(ids[k]) + expected.columns,
                           fetched.begin() + static_cast<std::int64_t>(k) * expected.columns));
}

DeviceGrid device_grid(const Grid& grid, bool by_nccl) {
  setenv("ESPALIER_NO_NCCL", by_nccl ? "0" : "1", 1);
  DeviceGrid device(own_gpu(), grid);
  unsetenv("ESPALIER_NO_NCCL");
  return device;
}

TEST_F(RowStoreOnGpu, PushedRowsAreThoseOfALoopOverAllMinibatches) {
  const auto seed = test_seed(7);
  SCOPED_TRACE(fmt::format("seed {}", seed));
  for (const bool by_nccl : transports())
    for (const int c : divisors(test_world().size()))
      for (const auto& [vertices, width, owned] : {std::tuple{1, 3, Owned::kAtRandom},
                                                   {60, 5, Owned::kInRanges},
                                                   {60, 5, Owned::kByTheLast},
                                                   {200, 32, Owned::kAtRandom}}) {
        SCOPED_TRACE(fmt::format("nccl {} c {} vertices {} width {} owned {}", by_nccl, c, vertices, width,
                                 static_cast<int>(owned)));
        const Grid grid(test_world(), c);
        const auto device = device_grid(grid, by_nccl);
        auto expected = first_rows(vertices, width);
        const auto partition = ownership_of(owned, vertices, grid.rows());
        const auto own = rows_of_part(expected, partition, grid.row());
        RowStoreOn<Cuda> store(device, partition, on_gpu(own));
        RowStore host(grid, partition, own);
        for (std::uint64_t round = 0; round < 4; ++round) {
          const auto batches = random_batches(seed + round, round == 2 ? 0 : 11, vertices, width);
          const auto mode = round == 1 ? Push::kOverwrite : Push::kAdd;
          const auto mine = of_rank(batches, test_world().rank(), test_world().size());
          grid.traffic().clear();
          push(store, mine, mode);
          push_on_host(host, mine, mode);
          push_in_a_loop(batches, mode, expected);
          expect_fetched(store, expected);
          EXPECT_EQ(download(own_gpu(), std::get<Matrix<float, Cuda>>(store.block()).data),
                    rows_of_part(expected, partition, grid.row()).data);
          const auto a = grid.traffic().of("device"), b = grid.traffic().of("host");
          EXPECT_EQ(a.bytes_received, b.bytes_received);
          EXPECT_EQ(a.messages, b.messages);
          EXPECT_EQ(a.predicted_bytes, b.predicted_bytes);
          EXPECT_EQ(a.predicted_messages, b.predicted_messages);
        }
      }
}

// What a GPU's store saves is what the host's would, and either reads it.
TEST_F(RowStoreOnGpu, StateGoesToTheHostAndBack) {
  const Grid grid(test_world(), 1);
  const DeviceGrid device(own_gpu(), grid);
  const auto rows = first_rows(60, 5);
  const auto partition = block_partition(60, grid.rows());
  const auto own = rows_of_part(rows, partition, grid.row());
  RowStoreOn<Cuda> store(device, partition, on_gpu(own));
  const auto state = store.state(own_gpu(), "table");
  Buffer<float> saved(static_cast<std::size_t>(own.rows * 5));
  if (!saved.empty()) state.read(state.mine.at(0), saved.data());
  EXPECT_TRUE(std::ranges::equal(saved, own.data)) << "one copy saves all of its block row";
  Matrix<float> other(own.rows, 5);
  std::ranges::fill(other.data, 0.0f);
  RowStoreOn<Cuda> restored(device, partition, on_gpu(other));
  restored.restore(own_gpu(), {"table", 60, 5, {{0, 60}}, [&](RowRange range, float* to) {
                                 std::copy_n(rows.row(range.begin), range.size() * 5, to);
                               }});
  EXPECT_EQ(download(own_gpu(), std::get<Matrix<float, Cuda>>(restored.block()).data), own.data);
}

}  // namespace
}  // namespace espalier
