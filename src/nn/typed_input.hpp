// The linear maps that bring the rows of several types of vertices to one width: H_v = X_v W_t +
// b_t for a vertex v of type t; b_t alone where the type has no rows.
#pragma once

#include <optional>
#include <vector>

#include "espalier/base/arrays.hpp"
#include "espalier/base/error.hpp"
#include "espalier/dense/gemm.hpp"
#include "espalier/nn/network.hpp"
#include "espalier/nn/network_shape.hpp"
#include "espalier/nn/views.hpp"
#include "type_map.hpp"

namespace espalier {

template <class T, class Space>
class TypedInput {
  using M = Matrix<T, Space>;

 public:
  /// Its tensors begin at `first` among the network's.
  TypedInput(const NetworkShape& shape, std::size_t first)
      : places_(shape.types.size()), width_(shape.hidden) {
    for (std::size_t t = 0; t < places_.size(); ++t) places_[t].table = shape.types[t].table;
    for (const auto& tensor : input_tensors(shape)) {
      auto& place = places_[static_cast<std::size_t>(tensor.type)];
      (tensor.is_bias ? place.bias : place.weight.emplace()) = first++;
    }
  }

  /// The rows of a table for a list with these runs.
  std::int64_t rows(std::span<const TypeRun> runs, int table) const {
    std::int64_t count = 0;
    for (const auto& run : runs) count += place_of(run).table == table ? run.end - run.begin : 0;
    return count;
  }

  /// h [vertices, hidden], resized. The runs cover the vertices, and lie in memory of the host;
  /// x.tables[k] [rows(runs, k), width of its rows].
  void forward(const Space& space, std::span<const TypeRun> runs, const InputRows<T, Space>& x,
               const std::vector<Parameter<T, Space>>& parameters, M& h) const {
    check_rows(runs, x);
    h.resize(runs.empty() ? 0 : runs.back().end, width_);
    for_each_run(runs, [&](const TypeRun& run, const Place& place, std::int64_t row) {
      const auto count = run.end - run.begin;
      const auto to = rows_from(MatrixView<T, Space>(h), run.begin, count);
      const auto& bias = parameters[place.bias].value;
      if (place.weight)
        gemm_plus_row<T>(space, bias, rows_from(table_of(x, place), row, count),
                         parameters[*place.weight].value, to);
      else
        fill_rows<T>(space, bias, to);
    });
  }

  /// Overwrites the gradients of its tensors and those of X that are asked for. `scratch` is memory
  /// to work in.
  void backward(const Space& space, std::span<const TypeRun> runs, const InputRows<T, Space>& x,
                const std::vector<Parameter<T, Space>>& parameters, const M& dh, std::vector<M>& gradients,
                const InputGradients<T, Space>& dx, M& scratch) const {
    for (const auto& place : places_) {
      fill_zero(space, gradients[place.bias].data);
      if (place.weight) fill_zero(space, gradients[*place.weight].data);
    }
    for (std::size_t k = 0; k < x.tables.size(); ++k)
      if (auto* const to = dx.of(static_cast<int>(k))) to->resize(x.tables[k]->rows, x.tables[k]->columns);
    for_each_run(runs, [&](const TypeRun& run, const Place& place, std::int64_t row) {
      const auto count = run.end - run.begin;
      const auto of_run = rows_from(ConstMatrixView<T, Space>(dh), run.begin, count);
      if (place.weight)
        gemm_tn<T>(space, rows_from(table_of(x, place), row, count), of_run, gradients[*place.weight],
                   Update::kAccumulate);
      add_row_sum<T>(space, of_run, gradients[place.bias], scratch);
      if (auto* const to = dx.of(place.table); place.weight && to != nullptr)  // dX_v = dH_v W_t^T
        gemm_nt<T>(space, of_run, parameters[*place.weight].value,
                   rows_from(MatrixView<T, Space>(*to), row, count));
    });
  }

 private:
  struct Place {
    std::optional<std::size_t> weight;
    std::size_t bias = 0;
    int table = -1;  ///< whose rows are its; -1: none
  };
  const Place& place_of(const TypeRun& run) const { return places_[static_cast<std::size_t>(run.type)]; }
  static ConstMatrixView<T, Space> table_of(const InputRows<T, Space>& x, const Place& place) {
    return *x.tables[static_cast<std::size_t>(place.table)];
  }
  void check_rows(std::span<const TypeRun> runs, const InputRows<T, Space>& x) const {
    for (int k = 0; k < std::ssize(x.tables); ++k) {
      const auto given = x.tables[static_cast<std::size_t>(k)]->rows;
      ESPALIER_CHECK(rows(runs, k) == given, "{} rows of table {} for {} vertices", given, k, rows(runs, k));
    }
  }
  // Calls use(run, its tensors, its first row of its table).
  template <class Use>
  void for_each_run(std::span<const TypeRun> runs, const Use& use) const {
    std::vector<std::int64_t> rows(places_.size());  // of each table, of which there are no more
    for (const auto& run : runs) {
      const auto& place = place_of(run);
      use(run, place, place.table < 0 ? 0 : rows[static_cast<std::size_t>(place.table)]);
      if (place.table >= 0) rows[static_cast<std::size_t>(place.table)] += run.end - run.begin;
    }
  }

  std::vector<Place> places_;
  std::int64_t width_;
};

}  // namespace espalier
