// What an epoch asks of the network on a grid that need not exist: counts for the alpha-beta model.
//
// A sample depends on (seed, epoch, batch) only, so one process that holds the matrix can draw the
// very minibatches of a job on any number of ranks, see which rows every rank would want of whom,
// and hand those numbers to product/schedule.hpp. Of a long epoch a part is drawn and scaled up;
// without the matrix degrees alone give an estimate (expected_work.hpp).
//
// The model spreads ids evenly. Here it is known where they lie: a count of remote ids is divided
// by the share crossing(group) that the model will multiply it by. Where a part of an epoch was
// drawn, ids are taken as spread evenly.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "espalier/base/footprint.hpp"
#include "espalier/graph/graph_facts.hpp"
#include "espalier/partition/held_types.hpp"
#include "espalier/product/dist_csr.hpp"
#include "espalier/product/schedule.hpp"
#include "espalier/sample/epoch_plan.hpp"
#include "espalier/sample/sampler.hpp"

namespace espalier {

/// The schedules that move data, in the order of tables.
inline constexpr std::array<Schedule, 4> kMovingSchedules = {Schedule::kPull, Schedule::kPush,
                                                             Schedule::kStaged, Schedule::kStagedOblivious};

/// The job on paper.
struct PlannedEpoch {
  int ranks = 1, replication = 1;
  Topology topology = Topology::kPartitioned;
  bool on_gpu = false;
  std::string sampler = "graphsage";
  SamplerShape shape;
  std::int64_t batch_size = 1024;  ///< examples; shape.batch_size is the seeds that they have
  std::int64_t batches_per_step = 1;
  std::int64_t bulk = 1;
  std::uint64_t seed = 0, epoch = 1;
  std::shared_ptr<const BatchGroups> groups = {};  ///< of the batches, with local ones
  Ownership map = {};  ///< who owns which vertex, where an order says so; else ranges
  std::shared_ptr<const RowHolders> holders = {};  ///< of rows that are cut, where they are known
  std::vector<HeldTypes> tables = {HeldTypes()};   ///< whose rows a step fetches, from each table
  bool trains_embeddings = false;                  ///< of the last table
  std::vector<std::uint8_t> edges = {};            ///< [relations] 1: with features to read
  std::int64_t steps_late = 0;                     ///< from sending a row to its use

  int rows() const { return ranks / replication; }
  /// Parts of the matrix.
  int parts() const { return topology != Topology::kReplicated ? rows() : 1; }
  /// Who owns which of n vertices: a part for each block row, and for each part of the matrix.
  Ownership blocks(std::int64_t n) const {
    return map.is_map() ? map : Ownership(block_partition(n, rows()));
  }
  Ownership matrix_parts(std::int64_t n) const {
    return parts() == 1 ? Ownership(block_partition(n, 1)) : blocks(n);
  }
};

/// Of one minibatch, on average or the largest; index l stands for layer l.
struct MinibatchSize {
  std::vector<double> rows;          ///< |F[l]|, l = 0 .. L
  std::vector<double> entries;       ///< of B[l], l = 1 .. L (entry 0 is unused)
  std::vector<double> fetched = {};  ///< of F[0], those that have rows in each table
  double edges = 0;                  ///< of all blocks' entries, those with features that are read
};

struct EpochWork {
  std::int64_t batches = 0;                            ///< of the epoch
  std::int64_t drawn = 0;                              ///< of them; 0: estimated from degrees
  double relative_error = 0;                           ///< of input_rows: one standard error
  std::uint64_t digest = 0;                            ///< of the sample, if all was drawn
  double copies = 1;                                   ///< holders of a row of Q, on average
  double sampled_edges = 0;                            ///< of the epoch, over all ranks
  double input_rows = 0;                               ///< |F[0]|, the same
  std::vector<std::vector<double>> remote_input_rows;  ///< [table][ranks]: of F[0], from others
  std::vector<double> remote_edges;                    ///< [ranks]: the same of features of edges
  MinibatchSize mean, largest;
  // Where the rows of the last table are learnt, in a step on average, over all ranks:
  double changed_rows = 0;      ///< different rows that its minibatches read
  double corrected_rows = 0;    ///< rows read that one of the steps_late before it has changed
  std::vector<double> scanned;  ///< entries of the matrix in the rows F[l] of a minibatch, mean

  /// What each rank receives in an epoch: [as in kMovingSchedules][layer, as fanouts][rank].
  std::array<std::vector<std::vector<Cost>>, kMovingSchedules.size()> products;
  Cost draws;  ///< the same on every rank, beside any schedule: points of a global distribution
  std::vector<Schedule> schedules;  ///< per layer: asked for, or chosen by auto

  // Of the largest window of one rank.
  std::int64_t stacked = 0;  ///< minibatches
  /// Per layer, as fanouts: `distinct`, `distinct_entries`, `row_entries` and `sums` of all rows.
  std::vector<ProductWork> window;
};

/// Is given each batch's input, and the rank that keeps it, where all are drawn; window by window.
using InputVisit = std::function<void(std::int64_t batch, int rank, std::span<const std::int64_t> vertices)>;

/// Draws up to `draw` minibatches of the epoch (all of it when it has no more) from the whole
/// matrix `a`, which lies on a grid of one rank, and counts. `visit` may be empty.
template <class Index>
EpochWork count_epoch(const Cpu& cpu, const DistCsr<Index>& a, const PlannedEpoch& job,
                      const ExampleSource& examples, std::int64_t draw, const InputVisit& visit = {});

/// The same from how many rows have how many entries: ends of edges fall on vertices in proportion
/// to their degrees. `value_bytes`: of an entry of the matrix. `seeds`: of all batches.
EpochWork estimate_epoch(const DegreeHistogram& degrees, int value_bytes, const PlannedEpoch& job,
                         std::int64_t seeds);

/// The size of a minibatch of so many seeds where nothing but the mean degree is known, rather too
/// large than too small: what lies behind the seeds has more entries than the mean. `picks`: of a
/// row, or of a layer where the sampler is layer-wise; first: next to the batch; -1: all.
MinibatchSize rough_size(const SamplerKind& kind, std::span<const std::int64_t> picks, double seeds,
                         double nodes, double mean_degree);

/// What `count` minibatches of that size hold on a rank: vertices and blocks.
Footprint minibatches_footprint(const MinibatchSize& size, double count, double relations);

/// While the largest window is sampled, beside its minibatches. `matrix`: of the sampled matrix;
/// `threads`: of the CPU that samples; 0: a GPU does.
Footprint sampling_footprint(const PlannedEpoch& epoch, const EpochWork& work, const ProductShape& matrix,
                             int threads);

/// Bytes that the sampler keeps as long as it is there, over a matrix of so many columns.
double sampler_bytes(const PlannedEpoch& epoch, double columns);
/// The same of each thread that samples on the CPU; columns 0: of a matrix of several relations.
double sampler_bytes_of_thread(const PlannedEpoch& epoch, double columns);

}  // namespace espalier
