// graph.feature_norm: what becomes of features before they are used, or copied to a GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "espalier/comm/communicator.hpp"
#include "espalier/feature/row_storage.hpp"

namespace espalier {

/// What "standard" subtracts from each column, and divides it by. Empty with another norm.
struct Standardization {
  std::vector<double> mean, deviation;
  friend bool operator==(const Standardization&, const Standardization&) = default;
};

/// Divides each row by the sum of its absolute values (Kipf and Welling 2017), of `pairs`
/// (dense/paired_rows.hpp) those of their numbers; zero rows stay.
void normalize_rows(StoredRows<Cpu>& rows, bool pairs = false);

/// Each column's mean and standard deviation over all vertices; 1 for a constant column. The sums
/// are exact in fixed point, so they do not depend on the grid. Collective over the ranks that have
/// rows of so many vertices together. `each_piece` calls what it is given with every piece of the
/// rows of this rank, and is called several times.
using PieceVisit = std::function<void(const StoredRows<Cpu>&)>;
Standardization measure_columns(const std::function<void(const PieceVisit&)>& each_piece, std::int64_t width,
                                const Communicator& comm, std::int64_t vertices);

void standardize(StoredRows<Cpu>& rows, const Standardization& by);

}  // namespace espalier
