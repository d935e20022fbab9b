// In which order a layer multiplies a block B, its input X and weights W, and what either costs.
//
//     (B X) W  aggregates first:    B X is [rows, in], the GEMM has `rows` rows
//     B (X W)  multiplies first:    X W is [columns, out], the GEMM has `columns` rows
//
// The two agree but for rounding. Which is cheaper depends on the widths and, in a minibatch,
// on how many more sources than destinations there are: at fanout 10 `columns` is several
// times `rows`.
#pragma once

#include <cstdint>

#include "espalier/base/execution.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

enum class ProductOrder {
  kAggregateFirst,
  kMultiplyFirst,
};

/// The sizes of a block, which need not be there.
struct BlockSize {
  double rows = 0, columns = 0, entry_count = 0;
  double entries() const { return entry_count; }
};

/// One element gathered by SpMM takes the time of about this many multiply-adds of GEMM. On one
/// core 4 G gathered elements/s were measured against 220 GFLOP/s; an H200 on paper gathers 3
/// TB/s = 750 G float32/s and does 25 T multiply-adds/s.
inline constexpr double kGatherCost = 24, kGpuGatherCost = 32;

/// The cheaper order of a training step, forward and backward, by counting multiply-adds; a
/// function of the minibatch only. `needs_input_gradient`: false in the first layer, where
/// aggregating first spares the transposed product.
ProductOrder cheaper_order(const BlockSize& block, std::int64_t in, std::int64_t out,
                           bool needs_input_gradient, double gather_cost = kGatherCost);
ProductOrder cheaper_order(const BlockView<Cpu>& block, std::int64_t in, std::int64_t out,
                           bool needs_input_gradient);
ProductOrder cheaper_order(const BlockView<Cuda>& block, std::int64_t in, std::int64_t out,
                           bool needs_input_gradient);

/// The order of exact evaluation, where a rank's block must not decide: by the widths alone.
inline ProductOrder evaluation_order(std::int64_t in, std::int64_t out) {
  return out < in ? ProductOrder::kMultiplyFirst : ProductOrder::kAggregateFirst;
}

}  // namespace espalier
