// A checkpoint: one HDF5 file, readable with h5py.
//
//     /                   attributes epoch, step, ranks, seed, optimizer_steps, best_epoch,
//                         best_metric, evaluations_without_gain, test_accuracy, test_macro_f1,
//                         test_vertices, test_confusion (with a best epoch), sample_digest,
//                         batches, sampled_edges, input_rows and what hooks of a step count (of
//                         the epoch under way), history (JSON: the epochs before), groups
//     /weights/NAME       float32 [rows, columns]: parameters as they are; /statistics/LAYER.mean
//                         and LAYER.variance of batch normalisation (numbers from 0 in files of
//                         earlier versions)
//     /best/...           the same of the best epoch, once one was evaluated
//     /optimizer/NAME     the state of the optimiser
//     /history/...        of hooks of a step, as they say
//     /losses             float64 [batches done], of the epoch under way
//
// and what trained_on.hpp says, all of it sealed (file/archive.hpp). All ranks write the file, each
// the rows that are its own, and read it, each what it needs; on how many ranks changes nothing in
// its bytes but what /ranks says, and the checksum.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "espalier/train/report.hpp"
#include "espalier/train/trained_on.hpp"
#include "espalier/train/training_state.hpp"

namespace espalier {

struct Checkpoint : TrainedOn {
  TrainingState state;
  std::vector<EpochReport> epochs;  ///< those before the cursor's
  std::int64_t seed = 0;
  int ranks = 1;
  /// With local batches: the digest of the groups that the training vertices are in.
  std::optional<std::uint64_t> groups = {};
};

/// Collective, as write_sealed(), with its errors; all but the tensors is rank 0's.
void write_checkpoint(const Communicator& world, const Checkpoint& checkpoint, const std::string& path);

/// Collective. What the file says, the same on every rank. Its tensors stay there: any rank may
/// read any rows, as long as they are kept, which keeps the file open. Throws UserError(kInput) on
/// every rank, naming `path` and the damage, for a file that is not, or no longer, a checkpoint.
Checkpoint read_checkpoint(const Communicator& world, const std::string& path);

}  // namespace espalier
