// ranks: 1 2 3 4
// long ranks: 6
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
  Matrix<T> block(ownership.size(part), width);
  for (std::int64_t k = 0; k < block.rows * width; ++k) {
    const auto v = ownership.vertex(part, k / width);
    const auto x = static_cast<float>(v * 7 + k % width);
    if constexpr (std::is_same_v<T, Half>)
      block.data[static_cast<std::size_t>(k)] = to_half(x);
    else
      block.data[static_cast<std::size_t>(k)] = x;
  }
  Matrix<T, Cuda> matrix;
  matrix.rows = block.rows;
  matrix.columns = width;
  matrix.data = upload(own_gpu(), block.data, placement);
  return matrix;
}

TEST_F(RowCacheOnGpu, ChangesNoBitAndSendsNotWhatItHas) {
  for (const bool by_nccl : transports())
    for (const int c : divisors(test_world().size())) {
      const Grid grid(test_world(), c);
      setenv("ESPALIER_NO_NCCL", by_nccl ? "0" : "1", 1);
      const DeviceGrid device(own_gpu(), grid);
      unsetenv("ESPALIER_NO_NCCL");
      const auto ownership =
          ownership_of(c == 1 ? Owned::kAtRandom : Owned::kInRanges, kCachedVertices, grid.rows());
      const RowStoreOn<Cuda> store(device, ownership,
                                   cached_block<float>(ownership, grid.row(), 5, Placement::kDevice));
      expect_cached_fetches(own_gpu(), device, store, false);
      if (c > 1 || by_nccl) continue;
      const RowStoreOn<Cuda> narrow(device, ownership,
                                    cached_block<Half>(ownership, grid.row(), 3, Placement::kHost));
      expect_cached_fetches(own_gpu(), device, narrow, false);
    }
}

}  // namespace
}  // namespace espalier
