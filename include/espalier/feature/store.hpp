// The features: a RowStore that is read from the graph file, normalised, and then only read.
#pragma once

#include <vector>

#include "espalier/feature/row_store.hpp"
#include "espalier/graph/graph_file.hpp"

namespace espalier {

/// What graph.feature_norm = "standard" has subtracted from each column, and divided it by. Empty
/// with another norm.
struct Standardization {
  std::vector<double> mean, deviation;
  friend bool operator==(const Standardization&, const Standardization&) = default;
};

template <class Space>
class FeatureStoreOn : private RowStoreOn<Space> {
  using Rows = RowStoreOn<Space>;

 public:
  using Rows::Rows;

  using Rows::advance;
  using Rows::all_local;
  using Rows::begin_counts;
  using Rows::begin_fetch;
  using Rows::block;
  using Rows::fetch;
  using Rows::finish_fetch;
  using Rows::held;
  using Rows::hold;
  using Rows::ownership;
  using Rows::width;

  /// What may be read, as of any store.
  const RowStoreOn<Space>& rows() const { return *this; }

  /// Divides each row by the sum of its absolute values (Kipf and Welling 2017); zero rows stay.
  /// Local.
  void normalize_rows() requires std::is_same_v<Space, Cpu>;

  /// Subtracts each column's mean and divides by its standard deviation (over all n vertices; 1 for
  /// a constant column). The sums are exact in fixed point, so the result does not depend on the
  /// grid. Collective over the process column.
  void standardize() requires std::is_same_v<Space, Cpu>;
  /// The same with a mean and a deviation of each column that were measured before. Local.
  void standardize(Standardization by) requires std::is_same_v<Space, Cpu>;
  /// What standardize has done, the same on every rank.
  const Standardization& standardization() const requires std::is_same_v<Space, Cpu> {
    return standardization_;
  }

  /// The ranks of `node`, this one among them, which run on one machine, keep one copy of the rows
  /// that they own, where all of them read them instead of asking each other; rows that no rank of
  /// the node owns are asked for as before. False, on every rank, where they cannot share memory.
  /// Collective over the grid, whose ranks are each in one node. The last thing done to a store:
  /// its rows are not changed afterwards.
  bool share(const Communicator& node) requires std::is_same_v<Space, Cpu>;

 private:
  using Rows::block_;
  using Rows::grid_;
  using Rows::owners_;
  using Rows::ownership_;
  using Rows::reach_;
  using Rows::reached_parts_;
  using Rows::shared_;

  Standardization standardization_;
};
using FeatureStore = FeatureStoreOn<Cpu>;

/// A copy of `host` for the GPU; the host's may go afterwards. `narrow`: float32 rows are kept as
/// bfloat16. Local.
FeatureStoreOn<Cuda> to_device(const Cuda& cuda, const DeviceGrid& grid, const FeatureStore& host,
                               Placement placement, bool narrow = false);

}  // namespace espalier
