// The network that weights hold, for the graph of a job: of the same shape, reading the
// same columns, and of links with the relations that it has learnt.
#pragma once

#include <memory>
#include <string>

#include "espalier/job/job.hpp"
#include "espalier/nn/network.hpp"
#include "espalier/train/targets.hpp"
#include "espalier/train/weights_file.hpp"

namespace espalier {

struct TrainedModel {
  std::string path;  ///< of the weights, for messages
  TrainedWeights weights;
  Network<float> network;

  int layers() const { return network.stages(); }
};

/// Collective. read_weights, which says of a folder what to name instead.
TrainedWeights read_named_weights(const Communicator& world, const std::string& path);

/// What weights say to the job that reads them (open_job): how many classes there are and, where
/// the config does not, which type the network was trained for.
EarlierRun earlier_run(const TrainedWeights& weights, const std::string& path, const Config& config);

/// The network of the weights, for a job of kInfer that was opened with what they say. What the
/// file's relations of links are called, the network's are, too; of a file without links they are
/// the network's. Throws UserError(kUsage, kInput) where they are of another config, or cannot read
/// this graph: of columns called otherwise, of other relations. Columns of other scales are a
/// warning.
TrainedModel trained_model(Job& job, TrainedWeights weights, const std::string& path);

/// Collective. What to evaluate it by; classes are those of the network. Throws UserError(kInput)
/// where the graph has more.
std::unique_ptr<Targets> targets_of(const Job& job, const TrainedModel& model);

}  // namespace espalier
