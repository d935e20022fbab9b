#include "espalier/feature/normalize_rows.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "espalier/base/error.hpp"
#include "espalier/base/fixed_point.hpp"

namespace espalier {

namespace {

void store_value(float& to, float value) {
  to = value;
}
void store_value(Half& to, float value) {
  to = to_half(value);
}

// Of rows that are numbers still.
template <class Rows, class Use>
void with_numbers(Rows& rows, Use use) {
  std::visit(
      [&](auto& local) {
        if constexpr (requires { local.packing; })
          ESPALIER_CHECK(false, "quantised rows are not normalised{}", "");
        else
          use(local);
      },
      rows);
}

// Divides the numbers at first, first + step, .. of each row by the sum of their absolute values.
template <class T>
void normalize(Matrix<T>& rows, std::int64_t first, std::int64_t step) {
  for (std::int64_t i = 0; i < rows.rows; ++i) {
    double sum = 0;
    for (auto j = first; j < rows.columns; j += step)
      sum += std::abs(static_cast<double>(to_float(rows(i, j))));
    if (sum == 0) continue;
    for (auto j = first; j < rows.columns; j += step)
      store_value(rows(i, j), static_cast<float>(to_float(rows(i, j)) / sum));
  }
}

}  // namespace

void normalize_rows(StoredRows<Cpu>& rows, bool pairs) {
  with_numbers(rows, [&](auto& local) { pairs ? normalize(local, 1, 2) : normalize(local, 0, 1); });
}

namespace {

using Pieces = std::function<void(const PieceVisit&)>;

// The exact sum over all vertices of term(column, value), column by column: fixed point with each
// column's own bound.
template <class Term>
std::vector<double> column_sums(const Pieces& each_piece, std::int64_t width, const Communicator& comm,
                                std::int64_t vertices, Term term) {
  const auto each_term = [&](auto use) {
    each_piece([&](const StoredRows<Cpu>& rows) {
      with_numbers(rows, [&](const auto& piece) {
        for (std::int64_t i = 0; i < piece.rows; ++i)
          for (std::int64_t j = 0; j < piece.columns; ++j)
            use(j, term(j, static_cast<double>(to_float(piece(i, j)))));
      });
    });
  };
  std::vector<double> bound(static_cast<std::size_t>(width), 0.0);
  each_term([&](std::int64_t j, double x) { bound[j] = std::max(bound[j], std::abs(x)); });
  comm.all_reduce(std::span<double>(bound), Reduction::kMax, "setup");
  std::vector<FixedPointScale> scale;
  for (const double largest : bound) scale.emplace_back(largest, vertices);
  std::vector<std::int64_t> fixed(bound.size(), 0);
  each_term([&](std::int64_t j, double x) { fixed[j] += scale[j].to_fixed(x); });
  comm.all_reduce(std::span<std::int64_t>(fixed), Reduction::kSum, "setup");
  std::vector<double> sums;
  for (std::size_t j = 0; j < fixed.size(); ++j) sums.push_back(scale[j].to_double(fixed[j]));
  return sums;
}

}  // namespace

Standardization measure_columns(const Pieces& each_piece, std::int64_t width, const Communicator& comm,
                                std::int64_t vertices) {
  const auto n = static_cast<double>(vertices);
  auto mean = column_sums(each_piece, width, comm, vertices, [](std::int64_t, double x) { return x; });
  for (auto& m : mean) m /= n;
  auto deviation = column_sums(each_piece, width, comm, vertices, [&](std::int64_t j, double x) {
    const double difference = x - mean[j];
    return difference * difference;
  });
  for (auto& d : deviation) d = d > 0 ? std::sqrt(d / n) : 1.0;
  return {std::move(mean), std::move(deviation)};
}

void standardize(StoredRows<Cpu>& rows, const Standardization& by) {
  with_numbers(rows, [&](auto& local) {
    ESPALIER_CHECK(std::ssize(by.mean) == local.columns && std::ssize(by.deviation) == local.columns,
                   "means of {} columns for {}", by.mean.size(), local.columns);
    for (std::int64_t i = 0; i < local.rows; ++i)
      for (std::int64_t j = 0; j < local.columns; ++j)
        store_value(local(i, j), static_cast<float>((to_float(local(i, j)) - by.mean[j]) / by.deviation[j]));
  });
}

}  // namespace espalier
