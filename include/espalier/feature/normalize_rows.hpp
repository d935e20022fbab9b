// graph.feature_norm: what becomes of features before they are used, or copied to a GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/comm/communicator.hpp"
#include "espalier/feature/row_form.hpp"

namespace espalier {

/// What "standard" subtracts from each column, and divides it by. Empty with another norm.
struct Standardization {
  std::vector<double> mean, deviation;
  friend bool operator==(const Standardization&, const Standardization&) = default;
};

/// Each column's mean and standard deviation over all vertices; 1 for a constant column. The sums
/// are exact in fixed point, so they do not depend on the grid. Collective over the ranks that have
/// rows of so many vertices together.
Standardization measure_columns(const RowsInParts& pieces, std::int64_t width, const Communicator& comm,
                                std::int64_t vertices);

/// "row" divides each row by the sum of its absolute values (Kipf and Welling 2017), those
/// that RowKind::first and step say; zero rows stay. "standard" is by `by`. `kind`: what the
/// rows will be.
void normalize(const std::string& norm, const Standardization& by, const RowKind& kind,
               MatrixView<float> rows);

}  // namespace espalier
