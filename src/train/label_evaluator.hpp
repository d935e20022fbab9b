// Evaluates the logits of several labels per vertex, exactly and alike on every grid.
//
// A ranking needs all scores of a label side by side: the vertices that each rank evaluates are
// dealt out by columns, once their labels and in every evaluation their logits. What a rank then
// counts of its columns (metrics.hpp) are integers and one number per column, which all ranks get
// by a sum in which each has one term.
#pragma once

#include <array>
#include <numeric>

#include "espalier/partition/ownership.hpp"
#include "espalier/train/evaluation.hpp"
#include "espalier/train/metrics.hpp"
#include "espalier/train/targets.hpp"

namespace espalier {

/// A tall matrix whose rows are spread over ranks, dealt out by columns, so that each rank has some
/// columns whole.
class ColumnDeal {
 public:
  /// Collective. This rank has so many rows; `columns` is the same everywhere.
  ColumnDeal(const Communicator& world, std::int64_t rows, std::int64_t columns)
      : world_(world),
        rows_(world.all_gather(rows, "setup")),
        columns_(block_partition(columns, world.size())) {}

  /// My columns: begin() .. end().
  std::int64_t begin() const { return columns_.begin(world_.rank()); }
  std::int64_t end() const { return columns_.end(world_.rank()); }
  /// Rows of all ranks.
  std::int64_t all_rows() const { return std::accumulate(rows_.begin(), rows_.end(), std::int64_t{0}); }

  /// Collective. `at(i, j)`: entry j of my row number i. Row k of the result is column begin() + k:
  /// its entries of all rows, in the order of ranks and of their rows.
  template <class T, class At>
  Matrix<T> deal(const At& at, std::string_view label) const {
    const auto mine = rows_[world_.rank()], width = end() - begin();
    std::vector<std::int64_t> send_counts, receive_counts;
    for (int rank = 0; rank < world_.size(); ++rank) {
      send_counts.push_back(mine * columns_.size(rank));
      receive_counts.push_back(rows_[rank] * width);
    }
    Buffer<T> sent(mine * columns_.rows()), received;
    for (std::int64_t j = 0; j < columns_.rows(); ++j)
      for (std::int64_t i = 0; i < mine; ++i) sent[j * mine + i] = at(i, j);
    world_.all_to_all_v(std::span<const T>(sent), send_counts, receive_counts, received, label);
    return put_together(received, width);
  }

 private:
  // Of the columns of rank after rank whole ones.
  template <class T>
  Matrix<T> put_together(const Buffer<T>& pieces, std::int64_t width) const {
    Matrix<T> whole(width, all_rows());
    auto from = pieces.begin();
    for (std::int64_t first = 0, rank = 0; rank < world_.size(); first += rows_[rank++])
      for (std::int64_t k = 0; k < width; ++k, from += rows_[rank])
        std::copy_n(from, rows_[rank], whole.row(k) + first);
    return whole;
  }

  const Communicator& world_;
  std::vector<std::int64_t> rows_;  ///< of each rank
  RowPartition columns_;
};

class LabelEvaluator {
 public:
  /// Collective over the grid. `targets` must outlive it.
  LabelEvaluator(const Grid& grid, const LabelTargets& targets);

  /// Collective. `rows`: of each split the logits of its vertices that this rank evaluates.
  Evaluation evaluate(const std::array<Matrix<float>, 3>& rows, int threads) const;

 private:
  struct EvaluatedSplit {
    ColumnDeal deal;
    Matrix<std::uint8_t> labels;  ///< [my columns, vertices of the split]
  };

  std::vector<LabelRanking> rank_columns(const EvaluatedSplit& split, const Matrix<float>& rows,
                                         int threads) const;

  const Communicator& world_;
  std::int64_t columns_;
  std::vector<EvaluatedSplit> splits_;
  std::array<std::int64_t, 3> counts_ = {};  ///< vertices of each split that have any known label
};

}  // namespace espalier
