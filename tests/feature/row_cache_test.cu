// ranks: 1 4
// long ranks: 2 3 6
// Law of a cache of feature rows on GPUs: it changes no bit of what is fetched, and what it has is
// not sent, by both transports, from device memory and from pinned memory.
#include "row_cache_cases.hpp"

#include "comm/device_transports.hpp"
#include "dense/device_matrices.hpp"

namespace espalier {
namespace {

class RowCacheOnGpu : public CudaTest {};

template <class T>
Matrix<T, Cuda> cached_block(const Ownership& ownership, int part, std::int64_t width, Placement placement) {
  const auto block = stored_rows<T>(
      ownership, part, width, [](std::int64_t v, std::int64_t j) { return static_cast<float>(v * 7 + j); });
  Matrix<T, Cuda> matrix;
  matrix.rows = block.rows;
  matrix.columns = width;
  matrix.data = upload(own_gpu(), block.data, placement);
  return matrix;
}

TEST_F(RowCacheOnGpu, ChangesNoBitAndSendsNotWhatItHas) {
  for_every_device_grid(transports(), [](const Grid& grid, const DeviceGrid& device, bool by_nccl) {
    const bool copies = grid.replication() > 1;
    const auto ownership =
        ownership_of(copies ? Owned::kInRanges : Owned::kAtRandom, kCachedVertices, grid.rows());
    const RowStoreOn<Cuda> store(device, ownership,
                                 cached_block<float>(ownership, grid.row(), 5, Placement::kDevice));
    expect_cached_fetches(own_gpu(), device, store, false);
    if (copies || by_nccl) return;
    const RowStoreOn<Cuda> narrow(device, ownership,
                                  cached_block<Half>(ownership, grid.row(), 3, Placement::kHost));
    expect_cached_fetches(own_gpu(), device, narrow, false);
  });
}

}  // namespace
}  // namespace espalier
