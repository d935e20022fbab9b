// A checkpoint: one HDF5 file, readable with h5py.
//
//     bytes 0 .. 511      a user block, text: "espalier-checkpoint 1", the length of the file,
//                         CRC-32 of all that follows
//     /                   attributes format = "espalier-checkpoint", version = 1, espalier (the
//                         program's version), epoch, step, ranks, seed, optimizer_steps,
//                         best_epoch, best_metric, evaluations_without_gain, test_accuracy,
//                         test_macro_f1, test_vertices (with a best epoch), sample_digest,
//                         batches, sampled_edges, input_rows and what hooks of a step count
//                         (of the epoch under way), config (TOML), history (the epochs before) and
//                         graph (JSON)
//     /weights/NAME       float32 [rows, columns]: parameters as they are; /statistics/LAYER.mean
//                         and LAYER.variance of batch normalisation (numbers from 0 in files of
//                         earlier versions)
//     /best/...           the same of the best epoch, once one was evaluated
//     /optimizer/NAME     the state of the optimiser
//     /history/...        of hooks of a step, as they say
//     /features/mean, /features/deviation   float64 [1, columns], with
//                         graph.feature_norm = "standard"
//     /nodes/TYPE/feature_names, feature_scales, /edges/RELATION/..   as in the graph file, where
//                         its columns have names
//     /losses             float64 [batches done], of the epoch under way
//
// The length and the checksum stand before what they protect, so damage is found before HDF5 reads
// a byte of it. All ranks write the file, each the rows that are its own, and read it, each what it
// needs; on how many ranks changes nothing in its bytes but what /ranks says, and the checksum.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "espalier/feature/normalize_rows.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/train/report.hpp"
#include "espalier/train/training_state.hpp"

namespace espalier {

struct Checkpoint {
  TrainingState state;
  std::vector<EpochReport> epochs;  ///< those before the cursor's
  std::string config;               ///< the resolved config of the run, TOML
  std::int64_t seed = 0;
  int ranks = 1;
  GraphInfo graph;  ///< its numbers, its names of columns and the digests of its data sets, as far
                    ///< as they were known
  Standardization standardization = {};  ///< of the features that the weights belong to; empty in
                                         ///< files of earlier versions
  /// With local batches: the digest of the groups that the training vertices are in.
  std::optional<std::uint64_t> groups = {};
  std::string weights_digest = {};  ///< of embeddings.h5 (weights_file.hpp); else empty
};

/// Collective. Writes the file `path` anew, which all ranks see, and brings it to the disk. All but
/// the tensors is rank 0's; those are read and written block by block. Throws UserError on every
/// rank: kUsage, with the reason alone, where the file cannot be written, kInternal where HDF5
/// cannot make it. Then there may be a part of it.
void write_checkpoint(const Communicator& world, const Checkpoint& checkpoint, const std::string& path);

/// Collective. What the file says, the same on every rank. Its tensors stay there: any rank may
/// read any rows, as long as they are kept, which keeps the file open. Throws UserError(kInput) on
/// every rank, naming `path` and the damage, for a file that is not, or no longer, a checkpoint.
Checkpoint read_checkpoint(const Communicator& world, const std::string& path);

}  // namespace espalier
