// What caches of rows on disk (input_caches.hpp) will have of an epoch whose minibatches are known,
// on a grid that need not exist: the same rule, told the same of the same windows, asked for the
// same rows, without the rows.
//
// Exact (but for bytes where types of a table differ in float16 and float32) for an epoch
// that begins with empty caches and without run.overlap, with which reads begin before others
// have ended.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "espalier/feature/input_tables.hpp"
#include "espalier/feature/row_cache.hpp"
#include "espalier/feature/row_storage.hpp"

namespace espalier {

class DiskReadModel {
 public:
  struct Job {
    std::vector<InputTable> tables;
    Ownership blocks;     ///< of the vertices, by block rows
    int replication = 1;  ///< of the grid
    CacheRule rule = CacheRule::kDegree;
    std::int64_t memory = 0;              ///< run.cache_memory
    std::vector<std::int64_t> by_degree;  ///< rows_by_degree, as many as `memory` is enough for
    std::int64_t batches = 0, batches_per_step = 1, bulk = 1;
  };
  explicit DiskReadModel(Job job);

  /// The input of a batch that a rank keeps. Batches may come in any order within a window
  /// of `bulk`.
  void add(std::int64_t batch, int rank, std::span<const std::int64_t> vertices);

  /// Once all batches of the epoch are there: of all ranks.
  DiskCounts counts() const { return counts_; }

 private:
  // Of a table, on every rank of a grid.
  struct OfTable {
    InputTable table;
    Ownership owners;                   // of its rows
    std::vector<std::int64_t> ends;     // of each type's rows, which have chunks of their own
    std::vector<CachePolicy> policies;  // [ranks]
  };
  // [asking rank][table] numbers of rows that a step's minibatches want.
  using Wanted = std::vector<std::vector<std::vector<std::int64_t>>>;

  bool has_all() const { return job_.blocks.parts() == 1; }
  int ranks() const { return job_.blocks.parts() * job_.replication; }
  std::int64_t step_end(std::int64_t step) const;
  void window_is_there();
  void prefetch();
  void take_step(std::int64_t step);
  std::vector<std::int64_t> read_by(const Wanted& wanted, std::size_t table, int rank, bool for_others) const;
  int part_of(int rank) const { return rank / job_.replication; }
  void read(OfTable& of, int rank, const std::vector<std::int64_t>& numbers);
  std::int64_t rows_read(const OfTable& of, int part, std::vector<std::int64_t> missed) const;

  Job job_;
  std::vector<OfTable> tables_;
  std::int64_t added_ = 0;                          // batches that are there
  std::int64_t prefetched_ = 0;                     // of those, that policies were told of
  std::int64_t step_ = 0;                           // to be taken next
  std::map<std::int64_t, Wanted> waiting_, fresh_;  // by step: all, and what no policy was told of
  DiskCounts counts_;
};

}  // namespace espalier
