// The distributed product P = Q A on GPUs: the twin of product.hpp for node-wise samplers. Row by row: an operation
// applied to finished rows of P, where they lie.
#pragma once

#include <memory>
#include <string_view>

#include "espalier/base/device_array.hpp"
#include "espalier/comm/device_communicator.hpp"
#include "espalier/product/product.hpp"

namespace espalier {

/// RowEntries in device memory.
template <class Id>
struct DeviceRowEntries {
  DeviceArray<std::int64_t> offsets;  ///< [rows + 1]
  DeviceArray<Id> indices;
  DeviceArray<float> values;  ///< beside indices, or empty

  std::int64_t rows() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
};

/// What becomes of finished rows of P: a pure function of each row and its key.
template <class Index>
class DeviceRowOperation {
 public:
  virtual ~DeviceRowOperation() = default;
  virtual bool has_values() const = 0;
  /// out has one row for each of `rows` [count], keyed by `keys` [count]; both, and what the views point to, are
  /// memory that kernels read. The host may wait, for numbers of entries.
  virtual void apply(const Cuda& cuda, const RowView<Index>* rows, const RowKey* keys, std::int64_t count,
                     DeviceRowEntries<Index>& out) const = 0;
};

/// One result row per row of Q, in its order. `keys` [count], device memory: the rows of Q that this rank keeps. `schedule`:
/// kPull or kPush, which give the same bits; with one block row, where every row is local, nothing is sent. Collective
/// over the grid.
template <class Index>
void apply_product(const Cuda& cuda, const DeviceGrid& grid, const RowKey* keys, std::int64_t count,
                   const DeviceDistCsr<Index>& a, Schedule schedule, std::string_view label,
                   const DeviceRowOperation<Index>& operation, DeviceRowEntries<Index>& out);

}  // namespace espalier
