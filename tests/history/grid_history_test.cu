// ranks: 1 2 3 4
// Law: a cache of history over GPUs is one cache of all batches, by both transports, with the words
// and the bytes of the host's.
#include "comm/device_transports.hpp"
#include "history/grid_history_cases.hpp"

namespace espalier {
namespace {

class GridHistoryOnGpu : public CudaTest {};

TEST_F(GridHistoryOnGpu, IsOneCacheOfAllBatches) {
  const auto seed = test_seed(41);
  for (const bool by_nccl : transports())
    for (const auto& shape : grid_history_shapes()) {
      SCOPED_TRACE(fmt::format("seed {} nccl {} {}", seed, by_nccl, name_of(shape)));
      const Grid grid(test_world(), 1);
      const DeviceGrid device(own_gpu(), grid, by_nccl ? Transport::kBest : Transport::kHost);
      grid.traffic().clear();
      const auto state = expect_grid_as_a_map(own_gpu(), device, shape, 80, 9, seed);
      const auto find = grid.traffic().of("find"), read = grid.traffic().of("read"),
                 end = grid.traffic().of("end");
      grid.traffic().clear();
      EXPECT_EQ(expect_grid_as_a_map(Cpu{1}, grid, shape, 80, 9, seed), state);
      for (const auto& [label, volume] : {std::pair{"find", find}, {"read", read}, {"end", end}}) {
        EXPECT_EQ(grid.traffic().of(label).bytes_received, volume.bytes_received) << label;
        EXPECT_EQ(grid.traffic().of(label).messages, volume.messages) << label;
        EXPECT_EQ(grid.traffic().of(label).predicted_bytes, volume.predicted_bytes) << label;
      }
    }
}

}  // namespace
}  // namespace espalier
