// The network that weights hold, for the graph of a job: of the same shape, reading the
// same columns, and of links with the relations that it has learnt. `path`: of the weights,
// for messages.
#pragma once

#include <string>

#include "espalier/job/job.hpp"
#include "espalier/nn/network.hpp"
#include "espalier/train/weights_file.hpp"

namespace espalier {

/// Throws UserError(kUsage, kInput) where it is of another config, or cannot read this graph.
Network<float> trained_network(const Job& job, const TrainedWeights& weights, const std::string& path);

/// Throws UserError(kInput) where columns that the network reads are called otherwise than those
/// that it was trained on; other scales are a warning.
void check_trained_columns(const Job& job, const ColumnsByGroup& trained, const std::string& path);

/// What the file's relations of links are called, the network's are, too. Of a file without links
/// they are the network's. Throws UserError(kInput) where that cannot be.
void settle_relations(Job& job, const TrainedWeights& weights, const std::string& path);

}  // namespace espalier
