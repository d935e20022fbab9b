// How much memory there is, and what a job holds of it from beginning to end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "espalier/base/config.hpp"
#include "espalier/graph/graph_file.hpp"

namespace espalier {

/// Bytes of memory that this node offers to the job: the machine's, or less where a control group (SLURM, a
/// container) sets a limit.
std::int64_t node_memory();

/// Bytes of the whole adjacency matrix (indices, indptr, values) and of the whole feature matrix.
double topology_bytes(const GraphInfo& graph, bool with_values);
double feature_bytes(const GraphInfo& graph);

/// "512 B", "1.5 GiB".
std::string bytes_in_words(double bytes);

/// Bytes on one rank, apart from minibatches.
struct ResidentMemory {
  double topology = 0;
  double features = 0;
  double evaluation = 0;  ///< blocks of hidden layers: input, own share and result of one layer
  double model = 0;       ///< weights, gradients, optimiser state, best weights
  double loading = 0;     ///< the matrix as read beside the one with self-loops, before the rest is there
  double exchange = 0;    ///< staged-oblivious: a foreign block row, or a copy of one's own on its way out
  double total() const {
    return std::max(topology + features + evaluation + model + exchange, topology + loading);
  }
};

/// With c = `replication` copies on `ranks` ranks. `training` false: sampling alone.
ResidentMemory resident_memory(const GraphInfo& graph, const Config& config, std::int64_t ranks,
                               std::int64_t replication, bool training);

}  // namespace espalier
