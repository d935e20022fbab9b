// Local ids on a GPU: the twin of local_ids.hpp for all batches of a call at once.
//
// One bit per id of the graph and batch, for what a batch knew before and for what is new. Counters, one for every
// 256 ids, say how many bits of either kind lie before: a new id comes behind all known ones at its rank among the
// new ones, a known id keeps its place, which is found by its rank among the known ones. So the lists come out as the
// CPU's do, whatever the order of threads. Batches go in groups whose bits fit a budget.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "espalier/base/device_array.hpp"

namespace espalier {

/// The lists of vertices of many batches, one under the other: batch b has vertices[offsets[b] .. offsets[b + 1]),
/// distinct global ids.
struct DeviceFrontier {
  DeviceArray<std::int64_t> vertices;        ///< [rows]
  std::vector<std::int64_t> offsets = {0};   ///< [batches + 1], for the host
  DeviceArray<std::int64_t> device_offsets;  ///< the same, for kernels

  std::int64_t batches() const { return std::ssize(offsets) - 1; }
  std::int64_t rows() const { return offsets.back(); }
  std::int64_t begin(std::int64_t batch) const { return offsets[static_cast<std::size_t>(batch)]; }
  std::int64_t size(std::int64_t batch) const {
    return offsets[static_cast<std::size_t>(batch) + 1] - begin(batch);
  }
};

/// Ids of many batches, one under the other, in any order and any number of times.
template <class Index>
struct StackedPicks {
  const Index* ids = nullptr;  ///< [offsets.back()] device memory, global ids
  std::span<const std::int64_t>
      offsets;  ///< [batches + 1] host memory: batch b has ids[offsets[b] .. offsets[b + 1])
};

/// F[l-1] of F[l]: every batch's list followed by the picks that it lacked, ascending. local[k] (device memory)
/// becomes the place of pick k in the new list of its batch. For a graph of `ids` vertices. Fails when a
/// batch has 2^31 places or more, or a vertex twice. `budget`: bytes for the bits of a group of batches, 0: a default.
/// The host waits once for each group.
template <class Index>
DeviceFrontier extend(const Cuda& cuda, std::int64_t ids, const DeviceFrontier& frontier,
                      const StackedPicks<Index>& picks, std::int32_t* local, std::int64_t budget = 0);

}  // namespace espalier
