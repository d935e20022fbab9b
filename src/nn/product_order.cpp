#include "espalier/nn/product_order.hpp"

namespace espalier {

namespace {

template <class Space>
BlockSize size_of(const BlockView<Space>& block) {
  return {static_cast<double>(block.rows), static_cast<double>(block.columns),
          static_cast<double>(block.entries())};
}

}  // namespace

ProductOrder cheaper_order(const BlockSize& block, std::int64_t in, std::int64_t out,
                           bool needs_input_gradient, double gather_cost) {
  // Forward, weight gradient, input gradient.
  const double gemm_passes = needs_input_gradient ? 3 : 2;
  const double gemm_per_row = gemm_passes * static_cast<double>(in) * static_cast<double>(out);
  const double gathers = gather_cost * block.entries();
  const double aggregate_first =
      gemm_per_row * block.rows + gathers * static_cast<double>(in) * (needs_input_gradient ? 2 : 1);
  const double multiply_first = gemm_per_row * block.columns + gathers * static_cast<double>(out) * 2;
  return multiply_first < aggregate_first ? ProductOrder::kMultiplyFirst : ProductOrder::kAggregateFirst;
}

ProductOrder cheaper_order(const BlockView<Cpu>& block, std::int64_t in, std::int64_t out,
                           bool needs_input_gradient) {
  return cheaper_order(size_of(block), in, out, needs_input_gradient);
}

ProductOrder cheaper_order(const BlockView<Cuda>& block, std::int64_t in, std::int64_t out,
                           bool needs_input_gradient) {
  return cheaper_order(size_of(block), in, out, needs_input_gradient, kGpuGatherCost);
}

}  // namespace espalier
