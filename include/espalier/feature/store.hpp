// The 1.5D feature store: H spread over the grid by block rows, and the fetch of a minibatch's input rows.
//
// P(i,j) holds rows partition.begin(i) .. end(i) of H, as float or as Half (2 bytes in memory and on the
// wire, converted on arrival). A fetch stays inside the process column: each rank asks each owner for the
// distinct rows it needs in one all-to-all-v of ids, 4 or 8 bytes each (base/index_type.hpp), and
// receives (distinct rows)(1 - c/p) f values. The rows may travel while the caller does something
// else: between begin_fetch and finish_fetch.
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
#include "espalier/sparse/csr.hpp"

namespace espalier {

/// The rows of one fetch on their way, and the memory that they need, which is kept for the next fetch.
class PendingFetch {
 public:
  /// Gives the rows an opportunity to move (PendingExchange::progress). Local.
  void progress() { exchange_.progress(); }

 private:
  friend class FeatureStore;

  /// Ids as they travel, grouped by owner: those that I want, and those that others want of me.
  template <class Id>
  struct Question {
    Buffer<Id> wanted, asked;
  };
  /// Of the width of one store; a fetch that served a store of another begins anew.
  template <class Id>
  Question<Id>& question() {
    if (!std::holds_alternative<Question<Id>>(question_)) question_.emplace<Question<Id>>();
    return std::get<Question<Id>>(question_);
  }

  std::vector<std::int64_t> sizes_;   // rows of each list
  std::vector<std::int64_t> source_;  // of each row, list after list: a place in arrived_, or ~(local row)
  std::vector<std::int64_t> counts_;  // [owners] rows that I want
  std::vector<std::int64_t> asked_counts_;  // [owners] rows that they want of me
  std::variant<Question<std::int32_t>, Question<std::int64_t>> question_;
  Buffer<std::byte> reply_, arrived_;  // rows as they are stored, in the order of asked and of wanted
  PendingExchange exchange_;           // last: it uses the buffers
};

/// What graph.feature_norm = "standard" has subtracted from each column, and divided it by. Empty with another norm.
struct Standardization {
  std::vector<double> mean, deviation;
  friend bool operator==(const Standardization&, const Standardization&) = default;
};

class FeatureStore {
 public:
  /// `local`: this rank's block of rows, partition.size(grid.row()) x f.
  FeatureStore(const Grid& grid, RowPartition partition, Matrix<float> local);
  FeatureStore(const Grid& grid, RowPartition partition, Matrix<Half> local);

  std::int64_t width() const;
  const RowPartition& partition() const { return partition_; }
  std::int64_t bytes() const;
  /// My rows of H.
  const std::variant<Matrix<float>, Matrix<Half>>& block() const { return block_; }

  /// Collective over the process column. rows[m](k, :) becomes row lists[m][k] of H; the ids of one list are
  /// distinct. A rank may pass no list. `rows` grows to the number of lists and does not shrink, so that matrices keep
  /// their memory.
  void fetch(const Cpu& cpu, std::span<const std::span<const std::int64_t>> lists,
             std::vector<Matrix<float>>& rows, std::string_view label) const;

  /// Collective over the process column: asks for the rows of `lists` and sends what others ask for, without waiting
  /// for rows. Several fetches may be under way, each with its own `fetch`; the lists are not used after the call.
  void begin_fetch(const Cpu& cpu, std::span<const std::span<const std::int64_t>> lists, PendingFetch& fetch,
                   std::string_view label) const;

  /// Waits for the rows of a begun fetch and writes them to `rows`, as above. Not collective; every rank must do it.
  void finish_fetch(const Cpu& cpu, PendingFetch& fetch, std::vector<Matrix<float>>& rows) const;

  /// Do all rows of H lie on this rank?
  bool all_local() const { return partition_.parts() == 1; }
  /// Is reading a row here as cheap as reading a copy of it?
  bool rows_are_near() const { return true; }

  /// Y = B H[ids]: aggregation fused with the gather of the rows, where all_local(). `block` has a column for each of
  /// `ids`; y becomes [block.rows, f]. The bits are those of fetching the rows first. Not collective.
  void aggregate(const Cpu& cpu, const BlockView<Cpu>& block, std::span<const std::int64_t> ids,
                 Matrix<float>& y) const;

  /// Divides each row by the sum of its absolute values (Kipf and Welling 2017); zero rows stay. Local.
  void normalize_rows();

  /// Subtracts each column's mean and divides by its standard deviation (over all n vertices; 1 for a
  /// constant column). The sums are exact in fixed point, so the result does not depend on the grid.
  /// Collective over the process column.
  void standardize();
  /// What standardize has done, the same on every rank.
  const Standardization& standardization() const { return standardization_; }

 private:
  template <class Id>
  void ask(const Cpu& cpu, std::span<const std::span<const std::int64_t>> lists, PendingFetch& fetch,
           std::string_view label) const;
  template <class Id>
  void plan(std::span<const std::span<const std::int64_t>> lists, PendingFetch& fetch,
            Buffer<Id>& wanted) const;
  template <class T, class Id>
  void reply(const Cpu& cpu, const Matrix<T>& local, const Buffer<Id>& asked, PendingFetch& fetch,
             std::string_view label) const;
  template <class T>
  void place(const Cpu& cpu, const Matrix<T>& local, const PendingFetch& fetch,
             std::vector<Matrix<float>>& rows) const;

  const Grid* grid_;
  RowPartition partition_;
  std::variant<Matrix<float>, Matrix<Half>> block_;  ///< my rows of H
  Standardization standardization_;
  mutable PendingFetch fetch_;  ///< of fetch(), for its memory
};

/// Collective over the grid. Reads the file's features in their stored type and applies `feature_norm`
/// ("none" | "row" | "standard"). Throws UserError(kInput) when the file has no features.
FeatureStore read_feature_store(const Grid& grid, const GraphFile& file, const std::string& feature_norm);

}  // namespace espalier
