#include "espalier/feature/normalize_rows.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "espalier/base/error.hpp"
#include "espalier/base/fixed_point.hpp"

namespace espalier {

namespace {

// The exact sum over all vertices of term(column, value), column by column: fixed point with each
// column's own bound.
template <class Term>
std::vector<double> column_sums(const RowsInParts& pieces, std::int64_t width, const Communicator& comm,
                                std::int64_t vertices, Term term) {
  const auto each_term = [&](auto use) {
    pieces([&](const Matrix<float>& piece) {
      for (std::int64_t i = 0; i < piece.rows; ++i)
        for (std::int64_t j = 0; j < piece.columns; ++j) use(j, term(j, static_cast<double>(piece(i, j))));
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

Standardization measure_columns(const RowsInParts& pieces, std::int64_t width, const Communicator& comm,
                                std::int64_t vertices) {
  const auto n = static_cast<double>(vertices);
  auto mean = column_sums(pieces, width, comm, vertices, [](std::int64_t, double x) { return x; });
  for (auto& m : mean) m /= n;
  auto deviation = column_sums(pieces, width, comm, vertices, [&](std::int64_t j, double x) {
    const double difference = x - mean[j];
    return difference * difference;
  });
  for (auto& d : deviation) d = d > 0 ? std::sqrt(d / n) : 1.0;
  return {std::move(mean), std::move(deviation)};
}

namespace {

void divide_by_sums(const RowKind& kind, MatrixView<float> rows) {
  for (std::int64_t i = 0; i < rows.rows; ++i) {
    double sum = 0;
    for (auto j = kind.first; j < rows.columns; j += kind.step)
      sum += std::abs(static_cast<double>(rows(i, j)));
    if (sum == 0) continue;
    for (auto j = kind.first; j < rows.columns; j += kind.step)
      rows(i, j) = static_cast<float>(rows(i, j) / sum);
  }
}

void standardize(MatrixView<float> rows, const Standardization& by) {
  ESPALIER_CHECK(std::ssize(by.mean) == rows.columns && std::ssize(by.deviation) == rows.columns,
                 "means of {} columns for {}", by.mean.size(), rows.columns);
  for (std::int64_t i = 0; i < rows.rows; ++i)
    for (std::int64_t j = 0; j < rows.columns; ++j)
      rows(i, j) = static_cast<float>((rows(i, j) - by.mean[j]) / by.deviation[j]);
}

}  // namespace

void normalize(const std::string& norm, const Standardization& by, const RowKind& kind,
               MatrixView<float> rows) {
  if (norm == "row") divide_by_sums(kind, rows);
  if (norm == "standard") standardize(rows, by);
}

}  // namespace espalier
