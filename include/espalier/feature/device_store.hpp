// The feature store on a GPU: my block row of H in device memory, or in pinned host memory that the gather kernel reads
// over the bus (graph.features_on), and the fetch of minibatches' input rows between GPUs.
//
// Rows are stored as the host's store has them, float32 or float16, or rounded to bfloat16; what a fetch gives is
// float32. Where all rows are local a fetch is one kernel per list. Otherwise each list is grouped by owner, ids and
// rows travel in one all-to-all-v each, as on the CPU, with the same bytes.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "espalier/base/device_array.hpp"
#include "espalier/comm/device_communicator.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/feature/store.hpp"
#include "espalier/partition/row_partition.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

/// The rows of one fetch on their way, and the memory that they need, which is kept for the next fetch.
class DevicePendingFetch {
 public:
  DevicePendingFetch();
  ~DevicePendingFetch();
  DevicePendingFetch(DevicePendingFetch&&) noexcept;
  DevicePendingFetch& operator=(DevicePendingFetch&&) noexcept;
  /// Through host buffers: gives the rows an opportunity to move. With NCCL they move by themselves.
  void progress();

 private:
  friend class DeviceFeatureStore;
  struct State;
  std::unique_ptr<State> state_;
};

class DeviceFeatureStore {
 public:
  /// A copy of `host`'s block; the host's may go afterwards. `narrow`: float32 rows are kept as bfloat16. Local.
  DeviceFeatureStore(const Cuda& cuda, const DeviceGrid& grid, const FeatureStore& host, Placement placement,
                     bool narrow = false);
  /// `local`: this rank's block of rows, in device memory.
  DeviceFeatureStore(const DeviceGrid& grid, RowPartition partition, Matrix<float, Cuda> local);
  ~DeviceFeatureStore();
  DeviceFeatureStore(DeviceFeatureStore&&) noexcept;

  std::int64_t width() const;
  const RowPartition& partition() const;
  /// Of the block on this rank.
  std::int64_t bytes() const;
  bool all_local() const { return partition().parts() == 1; }
  /// Not in memory of the host: a row comes over the bus each time it is read.
  bool rows_are_near() const;

  /// As FeatureStore: rows[m](k, :) becomes row lists[m][k] of H. The lists are device memory. Collective over the
  /// process column.
  void fetch(const Cuda& cuda, std::span<const std::span<const std::int64_t>> lists,
             std::vector<Matrix<float, Cuda>>& rows, std::string_view label) const;
  void begin_fetch(const Cuda& cuda, std::span<const std::span<const std::int64_t>> lists,
                   DevicePendingFetch& fetch, std::string_view label) const;
  void finish_fetch(const Cuda& cuda, DevicePendingFetch& fetch,
                    std::vector<Matrix<float, Cuda>>& rows) const;

  /// y = B H[ids] where all_local().
  void aggregate(const Cuda& cuda, const BlockView<Cuda>& block, std::span<const std::int64_t> ids,
                 Matrix<float, Cuda>& y) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

template <class Space>
using FeatureStoreOn = ForSpace<Space, FeatureStore, DeviceFeatureStore>;
template <class Space>
using PendingFetchOn = ForSpace<Space, PendingFetch, DevicePendingFetch>;

}  // namespace espalier
