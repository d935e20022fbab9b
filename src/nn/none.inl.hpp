// What a network without layers (model.layers = 0) consists of: one layer that gives each vertex
// its own row of the input, and has no tensors. Its blocks have no entries (fanout 0).
#pragma once

#include "espalier/base/arrays.hpp"
#include "espalier/nn/layer.hpp"

namespace espalier {

template <class T, class Space>
class NoLayer final : public Layer<T, Space> {
  using M = Matrix<T, Space>;
  using Tensors = typename Layer<T, Space>::Tensors;

 public:
  explicit NoLayer(const LayerShape&) {}

  void forward(const Space& space, const BlockView<Space>& block, const LayerInput<T, Space>& x, Tensors,
               const KeyedStream&, M& z) override {
    copy_own(space, block, x, z);
  }

  void backward(const Space& space, const BlockView<Space>& block, const LayerInput<T, Space>& x, Tensors,
                const M& dz, LayerScratch<T, Space>&, std::span<M>, M* dx) override {
    if (dx == nullptr) return;
    dx->resize(x.rows, x.columns);
    if (x.rows > block.rows) fill_zero(space, dx->data);
    copy_within(space, dz.data.data(), dz.rows * dz.columns, dx->data.data());
  }

  void evaluate(const Space& space, const BlockView<Space>& block, const LayerInput<T, Space>& x, Tensors,
                LayerScratch<T, Space>&, M& z) const override {
    copy_own(space, block, x, z);
  }

 private:
  static void copy_own(const Space& space, const BlockView<Space>& block, ConstMatrixView<T, Space> x, M& z) {
    z.resize(block.rows, x.columns);
    copy_within(space, x.data, z.rows * z.columns, z.data.data());
  }
};

inline LayerCosts no_costs(const LayerShape& s, const BlockSize& b) {
  const double numbers = b.rows * static_cast<double>(s.out);
  return {.forward = {0, 0, numbers}, .backward = {0, 0, numbers}, .evaluation = {0, 0, numbers}};
}

inline constexpr LayerKind kNoLayer = {
    .name = "none",
    .about = "no layer: a vertex's own row",
    .tensors = [](const LayerShape&) { return std::vector<TensorShape>(); },
    .costs = no_costs};

}  // namespace espalier
