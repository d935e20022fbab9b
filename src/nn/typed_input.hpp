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

  /// The rows of X for a list with these runs: of the vertices whose type has features, in order.
  std::int64_t rows(std::span<const TypeRun> runs) const {
    std::int64_t count = 0;
    for (const auto& run : runs) count += has_features(run) ? run.end - run.begin : 0;
    return count;
  }

  /// h [vertices, hidden], resized. The runs cover the vertices, and lie in memory of the host;
  /// x [rows(runs), width].
  void forward(const Space& space, std::span<const TypeRun> runs, ConstMatrixView<T, Space> x,
               const std::vector<Parameter<T, Space>>& parameters, M& h) const {
    check_rows(runs, x.rows);
    h.resize(runs.empty() ? 0 : runs.back().end, width_);
    for_each_run(runs, [&](const TypeRun& run, const Place& place, std::int64_t row) {
      const auto to = rows_of(MatrixView<T, Space>(h), run);
      const auto& bias = parameters[place.bias].value;
      if (place.weight)
        gemm_plus_row<T>(space, bias, rows_from(x, row, run), parameters[*place.weight].value, to);
      else
        fill_rows<T>(space, bias, to);
    });
  }

  /// Overwrites the gradients of its tensors and, unless `dx` is null, of X (resized). `scratch` is
  /// memory to work in.
  void backward(const Space& space, std::span<const TypeRun> runs, ConstMatrixView<T, Space> x,
                const std::vector<Parameter<T, Space>>& parameters, const M& dh, std::vector<M>& gradients,
                M* dx, M& scratch) const {
    for (const auto& place : places_) {
      fill_zero(space, gradients[place.bias].data);
      if (place.weight) fill_zero(space, gradients[*place.weight].data);
    }
    if (dx != nullptr) dx->resize(x.rows, x.columns);
    for_each_run(runs, [&](const TypeRun& run, const Place& place, std::int64_t row) {
      const auto of_run = rows_of(ConstMatrixView<T, Space>(dh), run);
      if (place.weight)
        gemm_tn<T>(space, rows_from(x, row, run), of_run, gradients[*place.weight], Update::kAccumulate);
      scratch.resize(1, width_);
      sum_rows<T>(space, of_run, scratch);
      add_to(space, scratch, gradients[place.bias]);
      if (place.weight && dx != nullptr)  // dX_v = dH_v W_t^T
        gemm_nt<T>(space, of_run, parameters[*place.weight].value,
                   rows_from(MatrixView<T, Space>(*dx), row, run));
    });
  }

 private:
  struct Place {
    std::optional<std::size_t> weight;
    std::size_t bias = 0;
  };
  bool has_features(const TypeRun& run) const {
    return places_[static_cast<std::size_t>(run.type)].weight.has_value();
  }
  void check_rows(std::span<const TypeRun> runs, std::int64_t given) const {
    ESPALIER_CHECK(rows(runs) == given, "{} rows for {} vertices with features", given, rows(runs));
  }
  // Calls use(run, its tensors, its first row of X).
  template <class Use>
  void for_each_run(std::span<const TypeRun> runs, const Use& use) const {
    std::int64_t row = 0;
    for (const auto& run : runs) {
      use(run, places_[static_cast<std::size_t>(run.type)], row);
      if (has_features(run)) row += run.end - run.begin;
    }
  }
  template <class U>
  static MatrixView<U, Space> rows_of(MatrixView<U, Space> all, const TypeRun& run) {
    return rows_from(all, run.begin, run);
  }
  template <class U>
  static MatrixView<U, Space> rows_from(MatrixView<U, Space> all, std::int64_t first, const TypeRun& run) {
    return {run.end - run.begin, all.columns, all.row(first)};
  }
  static void add_to(const Space& space, const M& from, M& to) {
    add_rows<T>(space, ConstMatrixView<T, Space>(from), MatrixView<T, Space>(to));
  }

  std::vector<Place> places_;
  std::int64_t width_;
};

}  // namespace espalier
