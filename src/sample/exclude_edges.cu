// Leaving entries out on a GPU: a thread for each row.
#include "espalier/base/device_algorithms.hpp"
#include "espalier/base/launch.hpp"
#include "exclude_edges.both.cu"

namespace espalier {

void count_kept(const Cuda& cuda, const ThinnedBlock& block, std::int64_t rows,
                DeviceArray<std::int64_t>& indptr) {
  DeviceArray<std::int64_t> sizes(rows);
  auto* const size = sizes.data();
  for_each(cuda, "count_kept", rows, [=] __device__(std::int64_t row) { size[row] = block.count(row); });
  indptr.resize(rows + 1);
  exclusive_sum(cuda, size, indptr.data(), rows);
}

void write_kept(const Cuda& cuda, const ThinnedBlock& block, std::int64_t rows, const std::int64_t* indptr,
                std::int32_t* indices, float* values, std::uint8_t* relations) {
  for_each(cuda, "write_kept", rows,
           [=] __device__(std::int64_t row) { block.write(row, indptr[row], indices, values, relations); });
}

template void exclude_edges(const Cuda&, std::span<const SeedBatch>, std::vector<MinibatchOn<Cuda>>&);

}  // namespace espalier
