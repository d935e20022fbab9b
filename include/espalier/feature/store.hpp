// The 1.5D feature store: H spread over the grid by block rows, and the fetch of a minibatch's input rows.
//
// P(i,j) holds rows partition.begin(i) .. end(i) of H, as float or as Half (2 bytes in memory and on the
// wire, converted on arrival). A fetch stays inside the process column: each rank asks each owner for the
// distinct rows it needs in one all-to-all-v, and receives (distinct rows)(1 - c/p) f values.
#pragma once

#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "espalier/base/execution.hpp"
#include "espalier/base/half.hpp"
#include "espalier/comm/grid.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/partition/row_partition.hpp"

namespace espalier {

class FeatureStore {
 public:
  /// `local`: this rank's block of rows, partition.size(grid.row()) x f.
  FeatureStore(const Grid& grid, RowPartition partition, Matrix<float> local);
  FeatureStore(const Grid& grid, RowPartition partition, Matrix<Half> local);

  std::int64_t width() const;
  const RowPartition& partition() const { return partition_; }
  std::int64_t bytes() const;

  /// Collective over the process column. rows[m](k, :) becomes row lists[m][k] of H; the ids of one list are
  /// distinct. A rank may pass no list.
  void fetch(const Cpu& cpu, std::span<const std::span<const std::int64_t>> lists,
             std::vector<Matrix<float>>& rows, std::string_view label) const;

  /// Divides each row by the sum of its absolute values (Kipf and Welling 2017); zero rows stay. Local.
  void normalize_rows();

  /// Subtracts each column's mean and divides by its standard deviation (over all n vertices; 1 for a
  /// constant column). The sums are exact in fixed point, so the result does not depend on the grid.
  /// Collective over the process column.
  void standardize();

 private:
  /// My rows of H, and the buffers of a fetch, which keep their size from step to step.
  template <class T>
  struct Block {
    Matrix<T> rows;
    Buffer<T> reply, arrived;
  };

  template <class T>
  void fetch_as(const Cpu& cpu, Block<T>& block, std::span<const std::span<const std::int64_t>> lists,
                std::vector<Matrix<float>>& rows, std::string_view label) const;

  const Grid* grid_;
  RowPartition partition_;
  mutable std::variant<Block<float>, Block<Half>> block_;
};

/// Collective over the grid. Reads the file's features in their stored type and applies `feature_norm`
/// ("none" | "row" | "standard"). Throws UserError(kInput) when the file has no features.
FeatureStore read_feature_store(const Grid& grid, const GraphFile& file, const std::string& feature_norm);

}  // namespace espalier
