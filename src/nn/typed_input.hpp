// The linear maps that bring the rows of several types of vertices to one width: H_v = X_v W_t +
// b_t for a vertex v of type t; b_t alone where the type has no features.
#pragma once

#include <optional>
#include <vector>

#include "espalier/base/arrays.hpp"
#include "espalier/base/error.hpp"
#include "espalier/dense/gemm.hpp"
#include "espalier/nn/convolution.hpp"
#include "espalier/nn/network_shape.hpp"
#include "espalier/nn/parameter.hpp"
#include "row_sum.hpp"

namespace espalier {

template <class T, class Space>
class TypedInput {
  using M = Matrix<T, Space>;

 public:
  /// Its tensors begin at `first` among the network's.
  TypedInput(const NetworkShape& shape, std::size_t first)
      : places_(shape.types.size()), width_(shape.hidden) {
    for (const auto& tensor : input_tensors(shape)) {
      auto& place = places_[static_cast<std::size_t>(tensor.type)];
      (tensor.is_bias ? place.bias : place.weight.emplace()) = first++;
    }
  }
  bool empty() const { return places_.empty(); }

  /// h [x.rows, hidden], resized. The runs cover the rows, and lie in memory of the host.
  void forward(const Space& space, std::span<const TypeRun> runs, ConstMatrixView<T, Space> x,
               const std::vector<Parameter<T, Space>>& parameters, M& h) const {
    check_cover(runs, x.rows);
    h.resize(x.rows, width_);
    for (const auto& run : runs) {
      const auto& place = places_[static_cast<std::size_t>(run.type)];
      const MatrixView<T, Space> to = rows_of(MatrixView<T, Space>(h), run);
      const auto& bias = parameters[place.bias].value;
      if (place.weight)
        gemm_plus_row<T>(space, bias, rows_of(x, run), parameters[*place.weight].value, to);
      else
        fill_rows<T>(space, bias, to);
    }
  }

  /// Overwrites the gradients of its tensors and, unless `dx` is null, of X (resized): 0 in rows
  /// that are not looked at. `scratch` is memory to work in.
  void backward(const Space& space, std::span<const TypeRun> runs, ConstMatrixView<T, Space> x,
                const std::vector<Parameter<T, Space>>& parameters, const M& dh, std::vector<M>& gradients,
                M* dx, M& scratch) const {
    for (const auto& place : places_) {
      fill_zero(space, gradients[place.bias].data);
      if (place.weight) fill_zero(space, gradients[*place.weight].data);
    }
    for (const auto& run : runs) {
      const auto& place = places_[static_cast<std::size_t>(run.type)];
      const auto of_run = rows_of(ConstMatrixView<T, Space>(dh), run);
      if (place.weight)
        gemm_tn<T>(space, rows_of(x, run), of_run, gradients[*place.weight], Update::kAccumulate);
      scratch.resize(1, width_);
      sum_rows<T>(space, of_run, scratch);
      add_to(space, scratch, gradients[place.bias]);
    }
    if (dx != nullptr) backward_of_rows(space, runs, parameters, dh, x.columns, *dx);
  }

 private:
  /// dX_v = dH_v W_t^T.
  void backward_of_rows(const Space& space, std::span<const TypeRun> runs,
                        const std::vector<Parameter<T, Space>>& parameters, const M& dh, std::int64_t columns,
                        M& dx) const {
    dx.resize(dh.rows, columns);
    fill_zero(space, dx.data);
    for (const auto& run : runs)
      if (const auto weight = places_[static_cast<std::size_t>(run.type)].weight)
        gemm_nt<T>(space, rows_of(ConstMatrixView<T, Space>(dh), run), parameters[*weight].value,
                   rows_of(MatrixView<T, Space>(dx), run));
  }
  static void check_cover(std::span<const TypeRun> runs, std::int64_t rows) {
    const auto covered = runs.empty() ? 0 : runs.back().end;
    ESPALIER_CHECK(covered == rows, "types of {} vertices for {} rows", covered, rows);
  }

  struct Place {
    std::optional<std::size_t> weight;
    std::size_t bias = 0;
  };
  template <class U>
  static MatrixView<U, Space> rows_of(MatrixView<U, Space> all, const TypeRun& run) {
    return {run.end - run.begin, all.columns, all.row(run.begin)};
  }
  static void add_to(const Space& space, const M& from, M& to) {
    add_rows<T>(space, ConstMatrixView<T, Space>(from), MatrixView<T, Space>(to));
  }

  std::vector<Place> places_;
  std::int64_t width_;
};

}  // namespace espalier
