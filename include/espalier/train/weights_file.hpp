// The trained weights of a run: output.dir/weights.h5, an HDF5 file, readable with h5py, and what
// is taken of a checkpoint in its place.
//
//     /                   attribute epoch (whose weights they are)
//     /weights/NAME       float32 [rows, columns], under the names of a checkpoint (checkpoint.hpp)
//     /statistics/NAME    the same, of batch normalisation
//
// and what trained_on.hpp says, all of it sealed (file/archive.hpp).
//
// Embeddings may be larger than the memory of a rank: all ranks write them, and read what they
// need, in embeddings.h5 beside it, a checkpoint (checkpoint.hpp) whose only tensors are
// /weights/embedding.TYPE, of the same epoch, config, graph and weights_digest.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "espalier/train/checkpoint.hpp"

namespace espalier {

/// Its name beside weights.h5.
inline constexpr const char* kEmbeddingsFile = "embeddings.h5";

struct TrainedWeights : TrainedOn {
  std::vector<StateTensor> tensors;          ///< weights/ and statistics/ (network_tensors.hpp)
  std::vector<StateTensor> embeddings = {};  ///< weights/embedding.TYPE, read from where they lie
  std::string no_embeddings = {};            ///< why there are none, of a weights.h5 without
  std::int64_t epoch = 0;                    ///< after which they were these
  bool best = true;                          ///< by validation; false: of a checkpoint that was
                                             ///< saved before any evaluation
};

/// FNV-1a over the bits of all that is called weights/..., in this order.
std::uint64_t weights_digest(std::span<const StateTensor> tensors);
/// Collective. The same with the trainable embeddings, if any: `weights_digest` of a report. The
/// embeddings are those of a run, each rank's as it would save them.
std::uint64_t weights_digest(const Communicator& world, const TrainedWeights& weights);

/// Collective. The best weights in the state of a training, the same on every rank; those of its
/// moment where none was evaluated. Only tensors, epoch and best are set.
TrainedWeights weights_of(const Communicator& world, const TrainingState& state);

/// The checkpoint of embeddings beside a weights.h5.
Checkpoint embeddings_of(const TrainedWeights& weights, int ranks);

/// The bytes of a weights.h5, without embeddings. Throws UserError: kInternal when HDF5 cannot make
/// them, kDiverged when a weight is not finite.
std::string weights_bytes(const TrainedWeights& weights);

/// Is it a weights.h5, whole or damaged, rather than a checkpoint or another file? Throws
/// UserError(kInput) where it cannot be read.
bool is_weights_file(const std::string& path);

/// What the bytes of a weights.h5 say. Throws UserError(kInput), naming `path` and the damage.
TrainedWeights weights_from(const std::string& bytes, const std::string& path);

/// Collective. What a weights.h5, with embeddings.h5 where the network has embeddings, or a
/// checkpoint says, the same on every rank; embeddings stay in the file, which is kept open. Throws
/// UserError(kInput) on every rank, naming `path` and the damage, for a file that is neither, or
/// has a weight that is not finite.
TrainedWeights read_weights(const Communicator& world, const std::string& path);

}  // namespace espalier
