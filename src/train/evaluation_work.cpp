#include "espalier/train/evaluation_work.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "espalier/partition/row_partition.hpp"

namespace espalier {

template <class Index>
EvaluationWork count_evaluation(const Csr<Index>& a, int rows, int replication, std::int64_t step) {
  EvaluationWork work;
  const auto blocks = block_partition(a.rows, rows);
  std::vector<std::int64_t> seen(static_cast<std::size_t>(a.rows),
                                 -1);  // the last chunk that wanted each vertex
  std::int64_t chunk = 0;
  for (int row = 0; row < rows; ++row) {
    const auto shares = block_partition(blocks.size(row), replication);
    for (int column = 0; column < replication; ++column) {
      double remote = 0;
      const auto begin = blocks.begin(row) + shares.begin(column),
                 end = blocks.begin(row) + shares.end(column);
      work.chunks = std::max(work.chunks, (end - begin + step - 1) / step);
      for (auto from = begin; from < end; from += step, ++chunk) {
        const auto to = std::min(from + step, end);
        std::int64_t input = to - from;  // the chunk's own rows come first
        for (auto v = from; v < to; ++v)
          for (const auto u : a.row_indices(v)) {
            auto& last = seen[u];
            if (last == chunk) continue;
            last = chunk;
            input += u < from || u >= to;
            remote += u < blocks.begin(row) || u >= blocks.end(row);
          }
        work.largest_input = std::max(work.largest_input, static_cast<double>(input));
        work.largest_entries =
            std::max(work.largest_entries, static_cast<double>(a.row_begin(to) - a.row_begin(from)));
      }
      work.remote_rows += remote;
      work.most_remote_rows = std::max(work.most_remote_rows, remote);
    }
  }
  return work;
}

template EvaluationWork count_evaluation(const Csr<std::int32_t>&, int, int, std::int64_t);
template EvaluationWork count_evaluation(const Csr<std::int64_t>&, int, int, std::int64_t);

EvaluationWork estimate_evaluation(double nodes, double entries, int rows, int replication,
                                   std::int64_t step) {
  const double ranks = static_cast<double>(rows) * replication, share = nodes / ranks;
  const double chunks = std::max(1.0, std::ceil(share / static_cast<double>(step))), chunk = share / chunks;
  const double degree = entries / std::max(nodes, 1.0), largest = std::min(static_cast<double>(step), share);
  const auto distinct = [&](double of_rows) {
    return nodes * -std::expm1(-of_rows * degree / std::max(nodes, 1.0));
  };
  EvaluationWork work;
  work.chunks = static_cast<std::int64_t>(chunks);
  work.most_remote_rows = chunks * distinct(chunk) * (rows - 1) / rows;
  work.remote_rows = work.most_remote_rows * ranks;
  work.largest_input = largest + distinct(largest) * (1 - largest / std::max(nodes, 1.0));
  work.largest_entries = largest * degree;
  return work;
}

std::vector<double> count_judged(std::span<const std::int64_t> vertices, std::int64_t nodes, int rows,
                                 int replication) {
  const auto blocks = block_partition(nodes, rows);
  std::vector<double> counts(static_cast<std::size_t>(rows) * replication);
  for (const auto vertex : vertices) {
    const auto row = blocks.owner(vertex);
    const auto column = block_partition(blocks.size(row), replication).owner(vertex - blocks.begin(row));
    ++counts[static_cast<std::size_t>(row) * replication + column];
  }
  return counts;
}

}  // namespace espalier
