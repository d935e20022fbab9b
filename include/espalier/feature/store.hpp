// The 1.5D feature store: H spread over the grid by block rows, and the fetch of a minibatch's
// input rows.
//
// P(i,j) holds rows partition.begin(i) .. end(i) of H as they are stored: as float or as Half (2
// bytes in memory and on the wire), on a GPU also as BFloat16, in its memory or in pinned memory of
// the host (graph.features_on), which the gather reads over the bus. What a fetch gives is float32.
// It stays inside the process column: each rank asks each owner for the distinct rows it needs in
// one all-to-all-v of ids, 4 or 8 bytes each (base/index_type.hpp), and receives
// (distinct rows)(1 - c/p) f values. The rows may travel while the caller does something else:
// between begin_fetch and finish_fetch.
#pragma once

#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "espalier/comm/device_communicator.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/partition/group_by_owner.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

/// Rows of H in one of the types that a space stores.
template <class Space>
using StoredRows = ForSpace<Space, std::variant<Matrix<float>, Matrix<Half>>,
                            std::variant<Matrix<float, Cuda>, Matrix<Half, Cuda>, Matrix<BFloat16, Cuda>>>;

/// One list of ids for each minibatch, memory of the space.
using IdLists = std::span<const std::span<const std::int64_t>>;

template <class Space>
class FeatureStoreOn;

/// The rows of one fetch on their way, and the memory that they need, which is kept for the next
/// fetch.
template <class Space>
class PendingFetchOn {
 public:
  /// Gives the rows an opportunity to move (PendingExchange::progress). Local.
  void progress() { exchange_.progress(); }

 private:
  friend class FeatureStoreOn<Space>;

  /// Ids as they travel: those that I want, grouped by owner, my own last, and those that others
  /// want of me.
  template <class Id>
  struct Question {
    OwnerGroups<Id, Space> wanted;
    Array<Space, Id> asked;
  };
  /// Of the width of one store; a fetch that served a store of another begins anew.
  template <class Id>
  Question<Id>& question() {
    if (!std::holds_alternative<Question<Id>>(question_)) question_.template emplace<Question<Id>>();
    return std::get<Question<Id>>(question_);
  }

  std::vector<std::int64_t> sizes_;  // rows of each list
  Array<Space, std::int64_t>
      source_;  // of each row, list after list: a place in arrived_, or ~(row of my block)
  std::variant<Question<std::int32_t>, Question<std::int64_t>> question_;
  Array<Space, std::byte> reply_, arrived_;  // rows as they are stored, in the order of asked
                                             // and of wanted
  PendingExchangeOn<Space> exchange_;        // last: it uses the arrays
};
using PendingFetch = PendingFetchOn<Cpu>;

/// What graph.feature_norm = "standard" has subtracted from each column, and divided it by. Empty
/// with another norm.
struct Standardization {
  std::vector<double> mean, deviation;
  friend bool operator==(const Standardization&, const Standardization&) = default;
};

template <class Space>
class FeatureStoreOn {
 public:
  /// `block`: this rank's rows, partition.size(grid.row()) x f. The grid must stay.
  FeatureStoreOn(const GridOn<Space>& grid, RowPartition partition, StoredRows<Space> block);

  std::int64_t width() const;
  const RowPartition& partition() const { return partition_; }
  /// Of the block on this rank.
  std::int64_t bytes() const;
  /// My rows of H.
  const StoredRows<Space>& block() const { return block_; }
  /// Do all rows of H lie on this rank?
  bool all_local() const { return partition_.parts() == 1; }
  /// Is reading a row here as cheap as reading a copy of it? Not over the bus.
  bool rows_are_near() const;

  /// Collective over the process column. rows[m](k, :) becomes row lists[m][k] of H; the ids of one
  /// list are distinct. A rank may pass no list. `rows` grows to the number of lists and does not
  /// shrink, so that matrices keep their memory.
  void fetch(const Space& space, IdLists lists, std::vector<Matrix<float, Space>>& rows,
             std::string_view label) const;

  /// Collective over the process column: asks for the rows of `lists` and sends what others ask
  /// for, without waiting for rows. Several fetches may be under way, each with its own `fetch`;
  /// the lists are not used after the call.
  void begin_fetch(const Space& space, IdLists lists, PendingFetchOn<Space>& fetch,
                   std::string_view label) const;

  /// Waits for the rows of a begun fetch and writes them to `rows`, as above. Not collective; every
  /// rank must do it.
  void finish_fetch(const Space& space, PendingFetchOn<Space>& fetch,
                    std::vector<Matrix<float, Space>>& rows) const;

  /// Y = B H[ids]: aggregation fused with the gather of the rows, where all_local(). `block` has a
  /// column for each of `ids`; y becomes [block.rows, f]. The bits are those of fetching the rows
  /// first. Not collective.
  void aggregate(const Space& space, const BlockView<Space>& block, std::span<const std::int64_t> ids,
                 Matrix<float, Space>& y) const;

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

 private:
  template <class Id>
  void ask(const Space& space, PendingFetchOn<Space>& fetch, std::string_view label) const;
  template <class T, class Id>
  void answer(const Space& space, ConstMatrixView<T, Space> own,
              const std::vector<std::int64_t>& asked_counts, PendingFetchOn<Space>& fetch,
              std::string_view label) const;

  const GridOn<Space>* grid_;
  RowPartition partition_;
  StoredRows<Space> block_;  ///< my rows of H
  Standardization standardization_;
  mutable PendingFetchOn<Space> fetch_;  ///< of fetch(), for its memory
};
using FeatureStore = FeatureStoreOn<Cpu>;

/// Collective over the grid. Reads the file's features in their stored type and applies
/// `feature_norm` ("none" | "row" | "standard"); `standard`: the mean and deviation that the last
/// goes by, where they are not those of this graph. Throws UserError(kInput) when the file has no
/// features.
FeatureStore read_feature_store(const Grid& grid, const GraphFile& file, const std::string& feature_norm,
                                const Standardization& standard = {});

/// A copy of `host` for the GPU; the host's may go afterwards. `narrow`: float32 rows are kept as
/// bfloat16. Local.
FeatureStoreOn<Cuda> to_device(const Cuda& cuda, const DeviceGrid& grid, const FeatureStore& host,
                               Placement placement, bool narrow = false);

}  // namespace espalier
