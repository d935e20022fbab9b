// How much memory there is, what a job holds of it from beginning to end, and what "auto" makes of
// the rest (copies, windows, chunks; batches of a step, too): every command that opens a job asks
// here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "espalier/base/config.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/partition/edge_parts.hpp"
#include "espalier/partition/order.hpp"
#include "espalier/train/planned_hooks.hpp"

namespace espalier {

/// Bytes of memory that this node offers to the job: the machine's, or less where a control group
/// (SLURM, a container) sets a limit.
std::int64_t node_memory();

/// Bytes of it that nobody has taken yet, and by whose word.
struct FreeMemory {
  std::int64_t bytes = 0;
  const char* source = "";
};
FreeMemory free_memory();

/// Bytes of the whole adjacency matrix: indices, indptr, values.
double topology_bytes(const GraphInfo& graph, bool with_values);

/// "512 B", "1.5 GiB".
std::string bytes_in_words(double bytes);

/// What the largest part has over what it would have if all were even.
struct LargestPart {
  double vertices = 1, edges = 1;
};

/// Bytes on one rank, apart from minibatches.
struct ResidentMemory {
  double owners = 0;            ///< who owns which vertex, with graph.order; who holds which row
  double owners_on_device = 0;  ///< of them, what a GPU has a copy of
  double topology = 0;
  double features = 0;                 ///< and those of edges
  std::vector<KeptMemory> parts = {};  ///< of a step; of an inference, rows that were learnt
  double evaluation = 0;               ///< blocks of hidden layers: input and result of one
                                       ///< layer; what a task keeps of the last
  double model = 0;                    ///< weights, gradients, optimiser state, best weights
  double loading = 0;                  ///< the matrix as read beside the one with self-loops,
                                       ///< before the rest is there
  double exchange = 0;                 ///< staged-oblivious: a foreign block row, or a copy of
                                       ///< one's own on its way out

  KeptMemory of_parts() const {
    KeptMemory sum;
    for (const auto& kept : parts) sum.on_device += kept.on_device, sum.on_host += kept.on_host;
    return sum;
  }
  double total() const {
    return owners + std::max(topology + features + of_parts().all() + evaluation + model + exchange,
                             topology + loading);
  }
};

/// A job as far as its memory depends on it, and what each rank has.
struct JobSize {
  GraphInfo graph;
  Config config;
  std::int64_t ranks = 1;
  bool training = true;
  bool inference = false;          ///< a network is computed once over the whole graph
  bool targets = true;             ///< are labels, or links, read?
  bool lists = false;              ///< does the inference keep what it predicts, for a list?
  std::int64_t host_memory = 0;    ///< bytes per rank
  bool gpu = false;                ///< does a GPU compute?
  std::int64_t device_memory = 0;  ///< bytes per rank of its memory
  bool samples_ahead = false;      ///< are two windows of minibatches in memory?
  VertexPartitionInfo order = {};  ///< graph.order, with one
  EdgePartsInfo cut = {};          ///< graph.cut, with one
  bool may_spill = false;          ///< can hidden rows of evaluation go to files where run.spill
                                   ///< has no folder,
  bool spills_unasked = false;     ///< and do they?

  /// Do rows of hidden layers lie in files while all vertices are evaluated?
  bool spills() const { return spills_unasked || !config.run.spill.empty(); }
};

/// Puts numbers in place of "auto" in the config of a job, whose other fields are known: of an
/// inference all but bulk and batches_per_step.
void resolve(JobSize& job, int threads);

LargestPart largest_part(const JobSize& job, std::int64_t replication);

/// With c = `replication` copies. In `espalier infer` a layer's input is freed when the next one
/// begins, features included, and the last layer keeps nothing: `evaluation` is what the largest
/// layer needs beyond the features.
ResidentMemory resident_memory(const JobSize& job, std::int64_t replication);

/// What the hooks of a step answer beforehand; none without training. `rows_ahead`:
/// PlannedTraining.
std::vector<PlannedHook> planned_hooks(const JobSize& job, std::int64_t replication, double rows_ahead = 0);

/// Bytes of a rank in memory of the host, and in its GPU, from beginning to end, without
/// minibatches and activations. The graph lies in the GPU where half of the memory is left to
/// those; what a kernel reads in memory of the host is a copy there.
double bytes_on_host(const JobSize& job, std::int64_t replication);
double bytes_on_device(const JobSize& job, std::int64_t replication);
bool topology_fits_device(const JobSize& job, std::int64_t replication);

/// What grid.replication = "auto" stands for: the most copies that leave half of the memory to
/// samples and activations.
std::int64_t automatic_replication(const JobSize& job);

/// Bytes that the input rows of one chunk of exact evaluation may take on a rank.
std::int64_t evaluation_memory(const JobSize& job, std::int64_t replication);

/// What sampler.bulk stands for: with "auto" as many minibatches as fit in a share of the memory;
/// never more than an epoch has; a step's where a part of steps draws them.
std::int64_t resolved_bulk(const JobSize& job, std::int64_t replication);

/// What train.batches_per_step stands for in a training. "auto" is one batch per rank; with
/// train.reproducible it follows from the training set alone, so that every number of ranks has one
/// history: the largest power of two that leaves an epoch 16 steps, at most 64, at least 1.
std::int64_t resolved_batches_per_step(const GraphInfo& graph, const Config& config, std::int64_t ranks);

}  // namespace espalier
