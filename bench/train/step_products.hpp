// The GEMMs and SpMMs of one step of a GraphSAGE network, by themselves: their shapes, operations
// and bytes, ours and OpenBLAS's.
#pragma once

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "espalier/dense/gemm.hpp"
#include "espalier/dense/spmm.hpp"
#include "espalier/nn/network.hpp"
#include "espalier/sparse/transpose.hpp"
#include "rates.hpp"

namespace espalier::bench {

enum class Part { kForward, kBackward, kBoth };

/// X W, X^T dZ or dZ W^T: m rows of a minibatch, k inputs, n outputs.
struct Gemm {
  enum Kind { kForward, kWeightGradient, kInputGradient } kind;
  std::int64_t m, k, n;
  double flops() const { return 2.0 * static_cast<double>(m * k * n); }
};

struct Spmm {
  const Block* block;
  std::int64_t f;
  double bytes() const { return static_cast<double>((block->entries() + block->rows) * (4 * f + 8)); }
};

class StepProducts {
 public:
  StepProducts(const NetworkShape& shape, const std::vector<BlockView<>>& blocks) {
    for (const auto& block : blocks) {
      blocks_.push_back(copy_of(block));
      transposed_.push_back(transpose(block));
    }
    for (int layer = 1; layer <= shape.layers; ++layer)
      add_layer(static_cast<std::size_t>(layer - 1), layer == 1 ? shape.inputs : shape.hidden,
                layer == shape.layers ? shape.classes : shape.hidden);
    allocate();
  }

  double flops(Part part) const {
    double sum = 0;
    for (const auto& one : gemms_)
      if (belongs(one, part)) sum += one.flops();
    return sum;
  }
  double spmm_bytes(Part part) const {
    double sum = 0;
    if (part != Part::kBackward)
      for (const auto& one : forward_) sum += one.bytes();
    if (part != Part::kForward)
      for (const auto& one : backward_) sum += one.bytes();
    return sum;
  }

  void multiply(Part part, int threads) {
    for (const auto& one : gemms_)
      if (belongs(one, part)) multiply(one, threads, ours_);
  }
  double blas_seconds(Part part, int threads) {
    openblas_set_num_threads(threads);
    return seconds_of([&] {
      for (const auto& one : gemms_)
        if (belongs(one, part)) multiply_by_blas(one);
    });
  }
  void aggregate(Part part, int threads) {
    if (part != Part::kBackward)
      for (const auto& one : forward_) aggregate(one, threads);
    if (part != Part::kForward)
      for (const auto& one : backward_) aggregate(one, threads);
  }

  /// Elements of the GEMMs farther from OpenBLAS's than terms 2^-22 (bench/dense/gemm_bench.cpp
  /// says why).
  std::int64_t count_wrong(int threads) {
    openblas_set_num_threads(threads);
    std::int64_t wrong = 0;
    for (const auto& one : gemms_) {
      multiply(one, threads, ours_);
      multiply_by_blas(one);
      const auto [rows, columns, terms] = result_of(one);
      const double tolerance = 0x1p-22 * static_cast<double>(terms);
      for (std::size_t e = 0; e < static_cast<std::size_t>(rows * columns); ++e)
        wrong += !(std::abs(static_cast<double>(ours_[e]) - static_cast<double>(theirs_[e])) <= tolerance);
    }
    return wrong;
  }

 private:
  struct Extent {
    std::int64_t rows, columns, terms;
  };

  // Z = X_d W_self + (B X) W_neighbour in the cheaper order, and the gradients of both sides
  // (nn/sage.inl.hpp). Layer 1 needs no gradient of its input.
  void add_layer(std::size_t place, std::int64_t in, std::int64_t out) {
    const auto& block = blocks_[place];
    const bool needs_input_gradient = place > 0;
    const bool multiplies_first =
        cheaper_order(block, in, out, needs_input_gradient) == ProductOrder::kMultiplyFirst;
    for (const auto rows : {block.rows, multiplies_first ? block.columns : block.rows}) {
      gemms_.push_back({Gemm::kForward, rows, in, out});
      gemms_.push_back({Gemm::kWeightGradient, rows, in, out});
      if (needs_input_gradient) gemms_.push_back({Gemm::kInputGradient, rows, in, out});
    }
    const auto f = multiplies_first ? out : in;
    forward_.push_back({&block, f});
    if (multiplies_first || needs_input_gradient) backward_.push_back({&transposed_[place], f});
  }

  static bool belongs(const Gemm& one, Part part) {
    return part == Part::kBoth || (part == Part::kForward) == (one.kind == Gemm::kForward);
  }

  static Extent result_of(const Gemm& one) {
    switch (one.kind) {
      case Gemm::kForward:
        return {one.m, one.n, one.k};
      case Gemm::kWeightGradient:
        return {one.k, one.n, one.m};
      case Gemm::kInputGradient:
        return {one.m, one.k, one.n};
    }
    return {};
  }

  void allocate() {
    std::int64_t tall = 0, flat = 0;
    for (const auto& one : gemms_) {
      tall = std::max(tall, one.m * std::max(one.k, one.n));
      flat = std::max(flat, one.k * one.n);
    }
    for (const auto* list : {&forward_, &backward_})
      for (const auto& one : *list)
        tall = std::max(tall, std::max(one.block->rows, one.block->columns) * one.f);
    const auto fill = [](Buffer<float>& to, std::int64_t size, std::uint64_t seed) {
      to.resize(static_cast<std::size_t>(size));
      for (std::size_t e = 0; e < to.size(); ++e)
        to[e] = static_cast<float>(2 * to_unit_double(random64({.seed = seed}, e)) - 1);
    };
    fill(x_, tall, 1), fill(dz_, tall, 2), fill(w_, flat, 3);
    ours_.resize(static_cast<std::size_t>(std::max(tall, flat)));
    theirs_.resize(ours_.size());
  }

  void multiply(const Gemm& one, int threads, Buffer<float>& to) {
    const Cpu cpu{threads};
    const ConstMatrixView<float> x(one.m, one.k, x_.data()), dz(one.m, one.n, dz_.data()),
        w(one.k, one.n, w_.data());
    const auto extent = result_of(one);
    const MatrixView<float> result(extent.rows, extent.columns, to.data());
    if (one.kind == Gemm::kForward) gemm<float>(cpu, x, w, result);
    if (one.kind == Gemm::kWeightGradient) gemm_tn<float>(cpu, x, dz, result);
    if (one.kind == Gemm::kInputGradient) gemm_nt<float>(cpu, dz, w, result);
  }

  void multiply_by_blas(const Gemm& one) {
    const auto extent = result_of(one);
    const bool turns_a = one.kind == Gemm::kWeightGradient, turns_b = one.kind == Gemm::kInputGradient;
    const auto& a = turns_b ? dz_ : x_;
    const auto& b = turns_a ? dz_ : w_;
    cblas_sgemm(CblasRowMajor, turns_a ? CblasTrans : CblasNoTrans, turns_b ? CblasTrans : CblasNoTrans,
                static_cast<int>(extent.rows), static_cast<int>(extent.columns),
                static_cast<int>(extent.terms), 1.0f, a.data(), static_cast<int>(turns_b ? one.n : one.k),
                b.data(), static_cast<int>(one.n), 0.0f, theirs_.data(), static_cast<int>(extent.columns));
  }

  void aggregate(const Spmm& one, int threads) {
    spmm<float>(Cpu{threads}, *one.block, ConstMatrixView<float>(one.block->columns, one.f, x_.data()),
                MatrixView<float>(one.block->rows, one.f, ours_.data()));
  }

  std::vector<Block> blocks_, transposed_;
  std::vector<Gemm> gemms_;
  std::vector<Spmm> forward_, backward_;
  Buffer<float> x_, dz_, w_, ours_, theirs_;
};

}  // namespace espalier::bench
