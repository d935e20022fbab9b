// Batches of each rank of a test: 1 to 4, and of many ranks the last one has none. Numbers and
// seeds are its own.
#pragma once

#include <cstdint>
#include <vector>

#include "espalier/sample/sampler.hpp"
#include "mpi_test.hpp"

namespace espalier {

struct UnevenBatches {
  std::vector<std::vector<std::int64_t>> seeds;
  std::vector<SeedBatch> batches;

  /// Of a graph with so many vertices; seeds descend.
  explicit UnevenBatches(std::int64_t vertices) {
    const int rank = test_world().rank(), size = test_world().size();
    const int count = size > 1 && rank == size - 1 ? 0 : rank % 4 + 1;
    for (int b = 0; b < count; ++b) {
      seeds.emplace_back();
      for (auto v = std::int64_t{rank + 3 * b}; v < vertices; v += 11 + 7 * b)
        seeds.back().push_back(vertices - 1 - v);
    }
    for (int b = 0; b < count; ++b)
      batches.push_back({100 * rank + 3 * b, seeds[static_cast<std::size_t>(b)]});
  }
};

}  // namespace espalier
