// The distributed product P = Q A of a bulk, its schedules behind one interface (design, 6).
//
// Q stacks the frontiers of many batches: hypersparse, each rank passes the rows of the batches it
// keeps, A is a DistCsr on the same grid. A sampler needs three results of such a product, and a
// schedule is one way of bringing them to the owner ranks:
//
//     apply     one row of P per frontier vertex v: row v of A, with an operation on the finished
//               row (nothing, or a draw), which may run where the row lies
//     sum       one row of P per batch: the exact integer sum of the rows of its frontier
//     columns   A(F, C) batch by batch: the entries of the frontier's rows in some columns
//               (block diagonal)
//
//     pull      the owner rank asks the owners in its process column for whole rows, each
//               distinct row once
//     push      ids travel to the owners, who apply, sum and select; only results travel back
//     staged    Algorithm 2 of Tripathy et al. 2024: P(i,j) serves the batches of its process row
//               from the block rows of its stages, fetched stage by stage down the column,
//               sparsity-aware; partial results are reduced along the row, to the owner rank of
//               each batch only (a reduce-scatter, right for any c)
//     staged-oblivious   the same with whole block rows broadcast instead of the rows
//                        that are needed
//
// All give the same result, bit for bit. In replicated mode, and on one block row, every row is
// local and nothing is sent. Each step books its bytes, and what the model expects of them
// (cost_model.hpp), under the caller's label with a suffix: /ids, /rows, /reduction, /picks.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "espalier/base/arrays.hpp"
#include "espalier/base/execution.hpp"
#include "espalier/base/shared_list.hpp"
#include "espalier/product/dist_csr.hpp"
#include "espalier/product/schedule.hpp"
#include "espalier/product/whole_rows.hpp"
#include "espalier/sparse/entries.hpp"
#include "espalier/sparse/segmented_rows.hpp"

namespace espalier {

/// The Q of one rank's share of a bulk. Batch b has the frontier vertices[offsets[b] ..
/// offsets[b+1]), all distinct, and the number numbers[b] in its epoch.
template <class Space>
struct FrontierOn {
  Array<Space, std::int64_t> vertices;      ///< [rows] global ids
  SharedList<std::int64_t, Space> offsets;  ///< [batches + 1]
  SharedList<std::int64_t, Space> numbers;  ///< [batches]

  std::int64_t batches() const { return numbers.size(); }
  std::int64_t rows() const { return offsets.back(); }
  std::int64_t begin(std::int64_t batch) const { return offsets[batch]; }
  std::int64_t size(std::int64_t batch) const { return offsets[batch + 1] - offsets[batch]; }
};
using Frontier = FrontierOn<Cpu>;

/// The frontier whose batches have these lists of vertices (of std::int64_t) and these numbers.
template <class Space, class Lists>
FrontierOn<Space> stack_frontier(const Space& space, const Lists& lists, std::vector<std::int64_t> numbers) {
  std::vector<std::int64_t> vertices, offsets = {0};
  for (const auto& list : lists) {
    vertices.insert(vertices.end(), std::begin(list), std::end(list));
    offsets.push_back(std::ssize(vertices));
  }
  return {copy_to(space, std::span<const std::int64_t>(vertices)),
          {space, std::move(offsets)},
          {space, std::move(numbers)}};
}

/// Which row of P: its vertex, its batch in the epoch, and, of a part of the row, the relation.
struct RowKey {
  std::int64_t vertex;
  std::int64_t batch;
  std::int64_t relation = 0;
};

/// What becomes of finished rows of P, wherever they are: a pure function of a row and its key.
template <class Index, class Space = Cpu>
class RowOperation {
 public:
  virtual ~RowOperation() = default;
  /// Do the results hold values? The same on every rank.
  virtual bool has_values() const = 0;
  /// out has a row for each of rows [count], keyed by keys [count]. On a GPU the host may wait.
  virtual void apply(const Space& space, const RowView<Index>* rows, const RowKey* keys, std::int64_t count,
                     Entries<Index, Space>& out) const = 0;
  /// What becomes of its results on pieces of a row.
  virtual JoinPieces join() const { return JoinPieces::kNever; }
  /// On the CPU: the same of rows that may be pieces, as `whole` knows by their vertices.
  virtual void apply_to_pieces(const Space&, const RowView<Index>* /*rows*/, const HeldWholeRows& /*whole*/,
                               const RowKey* /*keys*/, std::int64_t /*count*/,
                               Entries<Index, Space>& /*out*/) const {}
  /// kMerge: the results of rows whose candidates are rows [count], with the support of each; with
  /// an empty one a row is its result.
  virtual void merge(const Space&, const RowView<Index>* /*rows*/, const RowSupport* /*supports*/,
                     const RowKey* /*keys*/, std::int64_t /*count*/, Entries<Index, Space>& /*out*/) const {}
};

template <class Index, class Space = Cpu>
class Product {
 public:
  virtual ~Product() = default;

  /// One result row per row of Q, in its order. Collective.
  virtual Entries<Index, Space> apply(const Space& space, const RowOperation<Index, Space>& operation) = 0;

  /// Visits the sum of every batch; sums are not kept. `earlier`, of the first rows of each batch,
  /// may be used instead of them: on the CPU where rows are here, as Schedule::kPull brings them.
  /// Collective.
  virtual void sum(const Space& space, const EntryWeight& weight, const SumVisitor<Index, Space>& visit,
                   const EarlierSums<Index>* earlier = nullptr) = 0;
  /// Whether sum() uses `earlier`; if not, nobody has to keep it.
  virtual bool uses_earlier_sums() const { return false; }

  /// For every row of Q the entries in the columns of its batch: result ids are places in that
  /// list. Batch b has columns[offsets[b] .. offsets[b+1]), memory of the space: ascending global
  /// ids, distinct, fewer than 2^31. Values are A's; none when A has none. Collective.
  virtual Entries<std::int32_t, Space> columns(const Space& space, const Index* columns,
                                               const SharedList<std::int64_t, Space>& offsets) = 0;
};

/// Begins the product of `q` and `a`, both of which must outlive the result. Collective over the
/// grid, with the same `schedule` (not kAuto) and label on every rank; so are the members of the
/// result, called in the same order everywhere, also by ranks without a batch.
template <class Index, class Space>
std::unique_ptr<Product<Index, Space>> open_product(const Space& space, const FrontierOn<Space>& q,
                                                    const DistCsr<Index, Space>& a, Schedule schedule,
                                                    std::string_view label);

}  // namespace espalier
