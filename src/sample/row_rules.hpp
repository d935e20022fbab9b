// What a node-wise sampler takes of a row of P, and what picks are worth: rules of CPU and GPU.
#pragma once

#include <cstdint>

#include "espalier/base/fixed_point.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/base/philox.hpp"
#include "espalier/product/product.hpp"
#include "espalier/sample/block_value.hpp"
#include "espalier/sample/sampler.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

/// Where the entry (self, self) is in its row when it is to be kept out of the draw; -1 otherwise:
/// of a fanout of 0, too, which takes nothing.
template <class Index>
ESPALIER_HD inline std::int64_t diagonal_position(const RowView<Index>& row, std::int64_t self,
                                                  std::int64_t fanout, Aggregation aggregation) {
  if (aggregation != Aggregation::kMatrix || fanout == 0) return -1;
  const std::int64_t found = count_below(row.indices, row.size, static_cast<Index>(self));
  return found < row.size && row.indices[found] == self ? found : -1;
}

/// Of GraphSAGE's streams.
inline Purpose purpose_of_draws(const SamplerShape& shape) {
  return shape.weighted && shape.draw == DrawLaw::kRace ? Purpose::kRace : Purpose::kSample;
}

/// GraphSAGE: `fanout` of the `available` entries, or all (also for -1), and the diagonal.
struct GraphSageRow {
  std::int64_t self_position;  ///< of the diagonal, or -1
  std::int64_t available;      ///< entries that can be drawn
  std::int64_t fanout;

  ESPALIER_HD std::int64_t excluded() const { return self_position >= 0; }
  ESPALIER_HD bool whole() const { return fanout < 0 || available <= fanout; }
  ESPALIER_HD std::int64_t picks() const { return (whole() ? available : fanout) + excluded(); }
  /// The value of a pick of a row with values, made with equal weights.
  template <class Index>
  ESPALIER_HD float value(const RowView<Index>& row, std::int64_t position) const {
    return value_of(row.values[position], position);
  }
  ESPALIER_HD float value_of(float entry, std::int64_t position) const {
    return position == self_position || whole() ? entry : uniform_value(entry, available, fanout);
  }
};

/// The integer weights of a row of a weighted draw, or of a relation's part of one. A diagonal that
/// is kept out of the draw weighs nothing.
struct RowWeights {
  std::int64_t self_position;  ///< of the diagonal, or -1
  int shift;                   ///< of fixed_point_weight, the row's own

  /// Of an entry that can be drawn.
  ESPALIER_HD std::uint64_t of(float value) const {
    return fixed_point_weight(static_cast<double>(value), shift);
  }
  template <class Index>
  ESPALIER_HD std::uint64_t operator()(const RowView<Index>& row, std::int64_t position) const {
    return position == self_position ? 0 : of(row.values[position]);
  }
};

/// Des Raj's values of picks drawn in proportion to the integer weights of a row, which sum to
/// `total`: r_j / p_j is the weight left before draw j over the weight drawn. kMatrix: entries
/// times that factor; kMean: shares of the row's weight. in_order(j), j < s: the draws; chosen
/// [count]: the same positions and the diagonal, ascending; values [count] beside `chosen`.
template <class Index, class Order, class Position>
ESPALIER_HD inline void weigh_by_des_raj(const RowView<Index>& row, Aggregation aggregation,
                                         const RowWeights& weights, std::uint64_t total,
                                         const Order& in_order, std::int64_t s, const Position* chosen,
                                         std::int64_t count, float* values) {
  auto remaining = total;
  for (std::int64_t j = 1; j <= s; ++j) {
    const auto position = static_cast<Position>(in_order(j - 1));
    const auto weight = weights(row, position);
    const auto at = count_below(chosen, count, position);
    values[at] = aggregation == Aggregation::kMean
                     ? des_raj_share(remaining, weight, total, j, s)
                     : scaled_value(row.values[position], des_raj_factor(remaining, weight, j, s));
    remaining -= weight;
  }
}

/// r_u of column u, of 2^64: whoever asks in a batch and layer. Its top byte is byte u % 16 of
/// block 0 of row u / 16, so that a block serves sixteen columns; the 56 bits below it are
/// the upper ones of words 0 << 32 | 1 of block 1 of row u.
ESPALIER_HD inline std::uint32_t labor_byte(const KeyedStream& stream, std::int64_t column) {
  const auto at = static_cast<std::uint64_t>(column) % 16;
  return random32(stream.of_row(column / 16), at / 4) >> at % 4 * 8 & 255;
}
ESPALIER_HD inline std::uint64_t labor_low_bits(const KeyedStream& stream, std::int64_t column) {
  const auto block = random_block(stream.of_row(column), 1);
  return (std::uint64_t{block.v[0]} << 32 | block.v[1]) >> 8;
}

/// LABOR: each of `degree` entries is kept with probability fanout / degree; the diagonal always.
struct LaborRow {
  std::int64_t self_position;  ///< of the diagonal, or -1
  std::int64_t degree;         ///< entries without it
  std::int64_t fanout;         ///< at most degree

  ESPALIER_HD bool whole() const { return fanout == degree; }
  /// The byte of r that tells nothing: with a smaller one an entry is kept, with a larger one not.
  ESPALIER_HD std::uint32_t border() const {
    return static_cast<std::uint32_t>((static_cast<std::uint64_t>(fanout) << 8) /
                                      static_cast<std::uint64_t>(degree));
  }
  /// Of r with that byte and these low bits.
  ESPALIER_HD bool keeps(std::uint32_t byte, std::uint64_t low_bits) const {
    return mulhi(std::uint64_t{byte} << 56 | low_bits, static_cast<std::uint64_t>(degree)) <
           static_cast<std::uint64_t>(fanout);
  }
  /// `stream`: of the batch and the layer.
  ESPALIER_HD bool keeps(const KeyedStream& stream, std::int64_t position, std::int64_t column) const {
    if (position == self_position) return true;
    const auto byte = labor_byte(stream, column), at = border();
    return byte != at ? byte < at : keeps(byte, labor_low_bits(stream, column));
  }
  template <class Index>
  ESPALIER_HD float value(const RowView<Index>& row, std::int64_t position, Aggregation aggregation) const {
    return position == self_position           ? row.values[position]
           : aggregation == Aggregation::kMean ? mean_value(fanout)
                                               : uniform_value(row.values[position], degree, fanout);
  }
};

/// `degree`: entries of the row without the diagonal.
ESPALIER_HD inline LaborRow labor_row(std::int64_t self_position, std::int64_t degree, std::int64_t fanout) {
  return {self_position, degree, fanout < 0 || fanout > degree ? degree : fanout};
}
template <class Index>
ESPALIER_HD inline LaborRow labor_row(const RowView<Index>& row, std::int64_t self_position,
                                      std::int64_t fanout) {
  return labor_row(self_position, row.size - (self_position >= 0), fanout);
}

}  // namespace espalier
