#include "espalier/train/evaluation_work.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace espalier {

template <class Index>
EvaluationWork count_evaluation(const Csr<Index>& a, const Ownership& blocks, int replication,
                                std::int64_t step, const ColumnsOf& columns,
                                const std::vector<HeldTypes>& tables, std::span<const std::int64_t> fanouts,
                                bool weighted) {
  EvaluationWork work;
  work.table_shares.assign(tables.size(), 0);
  const auto shares = blocks.cut(replication);
  // The last chunk that had it.
  std::vector<std::int64_t> seen(static_cast<std::size_t>(a.rows), -1);
  std::int64_t chunk = 0;
  for (int rank = 0; rank < shares.parts(); ++rank) {
    double remote = 0;
    work.chunks = std::max(work.chunks, (shares.size(rank) + step - 1) / step);
    for (std::int64_t from = 0; from < shares.size(rank); from += step, ++chunk) {
      const auto to = std::min(from + step, shares.size(rank));
      std::int64_t input = to - from, entries = 0;  // the chunk's own rows come first
      for (auto k = from; k < to; ++k) seen[shares.vertex(rank, k)] = chunk;
      for (auto k = from; k < to; ++k) {
        const auto row = shares.vertex(rank, k);
        for (auto entry = a.row_begin(row); entry < a.row_end(row); ++entry) {
          if (weighted && !(a.values[entry] > 0)) continue;
          const auto column = a.indices[entry];
          if (!fanouts.empty() && fanouts[columns.relation(column)] == 0) continue;
          const auto u = columns.vertex(column);
          ++entries;
          if (std::exchange(seen[u], chunk) == chunk) continue;
          ++input;
          if (blocks.owner(u) == rank / replication) continue;
          for (std::size_t table = 0; table < tables.size(); ++table) {
            if (!tables[table].holds(u)) continue;
            ++remote;
            ++work.table_shares[table];
          }
        }
      }
      work.largest_input = std::max(work.largest_input, static_cast<double>(input));
      work.largest_entries = std::max(work.largest_entries, static_cast<double>(entries));
    }
    work.remote_rows += remote;
    work.most_remote_rows = std::max(work.most_remote_rows, remote);
  }
  for (auto& share : work.table_shares) share /= std::max(1.0, work.remote_rows);
  return work;
}

template EvaluationWork count_evaluation(const Csr<std::int32_t>&, const Ownership&, int, std::int64_t,
                                         const ColumnsOf&, const std::vector<HeldTypes>&,
                                         std::span<const std::int64_t>, bool);
template EvaluationWork count_evaluation(const Csr<std::int64_t>&, const Ownership&, int, std::int64_t,
                                         const ColumnsOf&, const std::vector<HeldTypes>&,
                                         std::span<const std::int64_t>, bool);

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

std::vector<double> count_judged(std::span<const std::int64_t> vertices, const Ownership& blocks,
                                 int replication) {
  const auto shares = blocks.cut(replication);
  std::vector<double> counts(static_cast<std::size_t>(shares.parts()));
  for (const auto vertex : vertices) ++counts[static_cast<std::size_t>(shares.owner(vertex))];
  return counts;
}

}  // namespace espalier
