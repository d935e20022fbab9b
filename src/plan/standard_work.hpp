// Work that stands for a job's where a machine is measured: a graph and matrices larger than the
// caches, minibatches, rows.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "espalier/base/philox.hpp"
#include "espalier/dense/gemm.hpp"
#include "espalier/dense/spmm.hpp"
#include "espalier/feature/row_store.hpp"
#include "espalier/nn/dropout.hpp"
#include "espalier/sample/sampler.hpp"

namespace espalier::standard_work {

inline constexpr std::int64_t kVertices = 1 << 17, kDegree = 16, kWidth = 128;

// Rows of about kDegree columns, more often low ids.
inline DistCsr<std::int32_t> make_graph(const Grid& grid) {
  Csr<std::int32_t> a;
  a.rows = a.columns = kVertices;
  for (std::int64_t v = 0; v < kVertices; ++v) {
    std::array<std::int32_t, kDegree> columns{};
    const RandomStream stream = {.seed = 1, .row = static_cast<std::uint64_t>(v)};
    for (std::size_t k = 0; k < columns.size(); ++k) {
      const double x = to_unit_double(random64(stream, k));
      columns[k] = static_cast<std::int32_t>(x * x * static_cast<double>(kVertices));
    }
    std::ranges::sort(columns);
    const auto last = std::unique(columns.begin(), columns.end());
    a.indices.insert(a.indices.end(), columns.begin(), last);
    a.indptr.push_back(std::ssize(a.indices));
  }
  return distribute(grid, a, Topology::kReplicated);
}

inline std::vector<std::int64_t> seeds_of(std::uint64_t batch, std::int64_t size) {
  std::vector<std::int64_t> seeds;
  for (std::int64_t k = 0; k < size; ++k)
    seeds.push_back(k * (kVertices / size) + static_cast<std::int64_t>(batch));
  return seeds;
}

inline std::vector<Minibatch> sample_some(const Cpu& cpu, Sampler& sampler, std::int64_t batches,
                                          std::int64_t size) {
  std::vector<std::vector<std::int64_t>> seeds;
  std::vector<SeedBatch> list;
  for (std::int64_t b = 0; b < batches; ++b) seeds.push_back(seeds_of(static_cast<std::uint64_t>(b), size));
  for (std::int64_t b = 0; b < batches; ++b) list.push_back({b, seeds[b]});
  return sampler.sample(cpu, list, 0, 1);
}

inline Matrix<float> numbers(std::int64_t rows, std::int64_t columns) {
  Matrix<float> matrix(rows, columns);
  for (std::size_t k = 0; k < matrix.data.size(); ++k) matrix.data[k] = static_cast<float>(k % 17) - 8.0f;
  return matrix;
}

}  // namespace espalier::standard_work
