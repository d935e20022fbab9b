// What draws of node-wise samplers on a GPU share: rows and room for picks. For .cu files only.
#pragma once

#include "espalier/base/device_algorithms.hpp"
#include "espalier/base/launch.hpp"
#include "node_wise.hpp"
#include "row_rules.hpp"

namespace espalier {

/// The rows of P that a draw is applied to.
template <class Index>
struct RowsToDraw {
  const RowView<Index>* views;   ///< [count]
  const RowKey* keys;            ///< [count]
  const std::int64_t* diagonal;  ///< [count] of diagonal_position, or null: no row has one
  std::int64_t count;

  __device__ std::int64_t self_position(std::int64_t row) const {
    return diagonal == nullptr ? -1 : diagonal[row];
  }
};

/// The diagonal positions of rows, for kMatrix; empty otherwise.
template <class Index>
DeviceArray<std::int64_t> diagonal_positions(const Cuda& cuda, const LayerDraw& layer,
                                             const RowView<Index>* rows, const RowKey* keys,
                                             std::int64_t count, Aggregation aggregation) {
  if (aggregation != Aggregation::kMatrix) return {};
  DeviceArray<std::int64_t> positions(count);
  auto* to = positions.data();
  for_each(cuda, "diagonal_positions", count, [=] __device__(std::int64_t row) {
    to[row] =
        diagonal_position(rows[row], keys[row].vertex, layer.fanout_of(keys[row]), Aggregation::kMatrix);
  });
  return positions;
}

/// Makes room in `out` for picks_of(row) entries of each row; the host waits for their number.
template <class Index, class Picks>
std::int64_t make_room(const Cuda& cuda, std::int64_t rows, bool values, const Picks& picks_of,
                       Entries<Index, Cuda>& out) {
  DeviceArray<std::int64_t> picks(rows);
  auto* to = picks.data();
  for_each(cuda, "picks_of_rows", rows, [=] __device__(std::int64_t row) { to[row] = picks_of(row); });
  out.offsets.resize(rows + 1);
  exclusive_sum(cuda, picks.data(), out.offsets.data(), rows);
  const auto total = download(cuda, out.offsets.data() + rows, 1)[0];
  out.ids.resize(total);
  out.values.resize(values ? static_cast<std::size_t>(total) : 0);
  return total;
}

}  // namespace espalier
