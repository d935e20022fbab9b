// What exact evaluation (evaluator.hpp) asks of the network on a grid that need not exist: the
// distinct neighbours of every chunk that lie in another block row, counted in the matrix, or
// expected from its degrees.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "espalier/partition/held_types.hpp"
#include "espalier/partition/ownership.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

struct EvaluationWork {
  std::int64_t chunks = 0;                 ///< of one rank, the most
  double remote_rows = 0;                  ///< rows that the chunks of a layer fetch,
                                           ///< over all ranks
  double most_remote_rows = 0;             ///< of one rank
  std::vector<double> table_shares = {1};  ///< of remote_rows, those of each table
  double largest_input = 0;                ///< rows of the largest chunk's input
  double largest_entries = 0;              ///< of the largest chunk
};

/// Of one layer, with chunks of `step` rows, on a grid whose block rows are those of `blocks`,
/// in so many copies. `a`: all rows; `columns`: what its columns are; `tables`: whose rows
/// are fetched; fanouts: [relations], those of 0 are left out, or empty; `weighted`: so are entries
/// of weight 0 (SamplerShape::weighted).
template <class Index>
EvaluationWork count_evaluation(const Csr<Index>& a, const Ownership& blocks, int replication,
                                std::int64_t step, const ColumnsOf& columns = {},
                                const std::vector<HeldTypes>& tables = {HeldTypes()},
                                std::span<const std::int64_t> fanouts = {}, bool weighted = false);

/// The same for n vertices and so many entries that lie anywhere.
EvaluationWork estimate_evaluation(double nodes, double entries, int rows, int replication,
                                   std::int64_t step);

/// How many of these vertices each rank of such a grid judges.
std::vector<double> count_judged(std::span<const std::int64_t> vertices, const Ownership& blocks,
                                 int replication);

}  // namespace espalier
