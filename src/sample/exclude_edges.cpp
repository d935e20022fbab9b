#include "exclude_edges.both.cu"

#include "espalier/sample/local_ids.hpp"

namespace espalier {

void count_kept(const Cpu& cpu, const ThinnedBlock& block, std::int64_t rows, Buffer<std::int64_t>& indptr) {
  indptr.resize(rows + 1);
  indptr[0] = 0;
#pragma omp parallel for num_threads(threads_for(cpu, rows).threads) schedule(static)
  for (std::int64_t row = 0; row < rows; ++row) indptr[row + 1] = block.count(row);
  for (std::int64_t row = 0; row < rows; ++row) indptr[row + 1] += indptr[row];
}

void write_kept(const Cpu& cpu, const ThinnedBlock& block, std::int64_t rows, const std::int64_t* indptr,
                std::int32_t* indices, float* values, std::uint8_t* relations) {
#pragma omp parallel for num_threads(threads_for(cpu, indptr[rows]).threads) schedule(static)
  for (std::int64_t row = 0; row < rows; ++row) block.write(row, indptr[row], indices, values, relations);
}

template void exclude_edges(const Cpu&, std::span<const SeedBatch>, std::vector<Minibatch>&);

}  // namespace espalier
