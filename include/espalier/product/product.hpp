// The distributed product P = Q A of a bulk, and its three schedules behind one interface (design, section 6).
//
// Q stacks the frontiers of many batches: hypersparse, each rank passes the rows of the batches it keeps, A is
// a DistCsr on the same grid. A sampler needs three results of such a product, and a schedule is one way of
// bringing them to the keepers:
//
//     apply     one row of P per frontier vertex v: row v of A, with an operation on the finished row (nothing,
//               or a draw), which may run where the row lies
//     sum       one row of P per batch: the exact integer sum of the rows of its frontier
//     columns   A(F, C) batch by batch: the entries of the frontier's rows in some columns (block diagonal)
//
//     pull      the keeper asks the owners in its process column for whole rows, each distinct row once
//     push      ids travel to the owners, who apply, sum and select; only results travel back
//     staged    Algorithm 2 of Tripathy et al. 2024: P(i,j) serves the batches of its process row from the block
//               rows of its stages, fetched stage by stage down the column, sparsity-aware; partial results are
//               reduced along the row, to the keeper of each batch only (a reduce-scatter, right for any c)
//     staged-oblivious   the same with whole block rows broadcast instead of the rows that are needed
//
// All give the same result, bit for bit. In replicated mode, and on one block row, every row is local and
// nothing is sent. Each step books its bytes, and what the model expects of them (cost_model.hpp), under the
// caller's label with a suffix: /ids, /rows, /reduction, /picks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "espalier/base/execution.hpp"
#include "espalier/product/dist_csr.hpp"
#include "espalier/product/schedule.hpp"
#include "espalier/sparse/entry_weight.hpp"
#include "espalier/sparse/sum_rows.hpp"

namespace espalier {

/// The Q of one rank's share of a bulk. Batch b has the frontier vertices[offsets[b] .. offsets[b+1]), all
/// distinct, and the number numbers[b] in its epoch.
struct StackedFrontier {
  Buffer<std::int64_t> vertices;                              ///< [rows] global ids
  Buffer<std::int64_t> offsets = Buffer<std::int64_t>(1, 0);  ///< [batches + 1]
  Buffer<std::int64_t> numbers;                               ///< [batches]

  std::int64_t batches() const { return std::ssize(numbers); }
  std::int64_t rows() const { return std::ssize(vertices); }
  std::int64_t begin(std::int64_t batch) const { return offsets[static_cast<std::size_t>(batch)]; }
  std::int64_t end(std::int64_t batch) const { return offsets[static_cast<std::size_t>(batch) + 1]; }
  void add(std::int64_t number, std::span<const std::int64_t> frontier) {
    vertices.insert(vertices.end(), frontier.begin(), frontier.end());
    offsets.push_back(rows());
    numbers.push_back(number);
  }
};

/// Which row of P: the vertex, and the number of the batch in its epoch.
struct RowKey {
  std::int64_t vertex;
  std::int64_t batch;
};

/// Sparse rows one after another: row q has indices[offsets[q] .. offsets[q+1]) and the values beside them
/// (none when the values are empty).
template <class Id>
struct RowEntries {
  Buffer<std::int64_t> offsets = Buffer<std::int64_t>(1, 0);
  Buffer<Id> indices;
  Buffer<float> values;

  std::int64_t rows() const { return std::ssize(offsets) - 1; }
  std::int64_t begin(std::int64_t row) const { return offsets[static_cast<std::size_t>(row)]; }
  std::int64_t size(std::int64_t row) const {
    return offsets[static_cast<std::size_t>(row) + 1] - begin(row);
  }
  void end_row() { offsets.push_back(std::ssize(indices)); }
  void clear() {
    offsets.resize(1);
    indices.clear();
    values.clear();
  }
};

/// The bytes of all entries.
template <class Id>
double entry_bytes(const RowEntries<Id>& rows) {
  return static_cast<double>(rows.indices.size() * sizeof(Id) + rows.values.size() * sizeof(float));
}

/// What becomes of a finished row of P, on whichever rank holds it: a pure function of the row and its key.
template <class Index>
class RowOperation {
 public:
  virtual ~RowOperation() = default;
  /// Do the results hold values? The same on every rank.
  virtual bool has_values() const = 0;
  /// Appends one row to `out` for each of `rows`. Called by several threads at once.
  virtual void apply(std::span<const RowView<Index>> rows, std::span<const RowKey> keys,
                     RowEntries<Index>& out) const = 0;
};

/// Takes the sum of one batch, by its place in the StackedFrontier. Called by several threads at once, for
/// different batches.
template <class Index>
using SumVisitor = std::function<void(std::int64_t batch, const SparseSum<Index>& sum)>;

template <class Index>
class Product {
 public:
  virtual ~Product() = default;

  /// One result row per row of Q, in its order. Collective.
  virtual RowEntries<Index> apply(const Cpu& cpu, const RowOperation<Index>& operation) = 0;

  /// Visits the sum of every batch; sums are not kept. Collective.
  virtual void sum(const Cpu& cpu, const EntryWeight& weight, const SumVisitor<Index>& visit) = 0;

  /// For every row of Q the entries in the columns of its batch: result indices are places in that list.
  /// columns[b]: ascending global ids, distinct. Values are A's; none when A has none. Collective.
  virtual RowEntries<std::int32_t> columns(const Cpu& cpu,
                                           std::span<const std::span<const Index>> columns) = 0;
};

/// Begins the product of `q` and `a`, both of which must outlive the result. Collective over the grid, with the
/// same `schedule` (not kAuto) and label on every rank; so are the members of the result, called in the same
/// order everywhere, also by ranks without a batch.
template <class Index>
std::unique_ptr<Product<Index>> open_product(const Cpu& cpu, const StackedFrontier& q,
                                             const DistCsr<Index>& a, Schedule schedule,
                                             std::string_view label);

}  // namespace espalier
