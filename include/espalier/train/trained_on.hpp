// What a checkpoint and a weights.h5 say of what their numbers were trained on, and by what config:
// enough to know it again.
//
//     /                   attributes espalier (the program's version), config (TOML of the run),
//                         graph (JSON: counts and digests of the graph it was trained on),
//                         weights_digest (that of the run's report; of weights.h5 and
//                         embeddings.h5, none in earlier versions)
//     /features/mean, /features/deviation   float64 [1, columns], with
//                         graph.feature_norm = "standard"
//     /nodes/TYPE/feature_names, feature_scales, /edges/RELATION/..   as in the graph file
//                         (graph/graph_file.hpp), where its columns have names
#pragma once

#include <string>

#include "espalier/feature/normalize_rows.hpp"
#include "espalier/graph/graph_file.hpp"

namespace espalier {

class ArchiveReader;
class ArchiveWriter;

struct TrainedOn {
  std::string config = {};               ///< the resolved config of the run, TOML
  GraphInfo graph = {};                  ///< its numbers, its names of columns and the digests of
                                         ///< its data sets, as far as they are known
  Standardization standardization = {};  ///< of the features that the weights belong to; empty in
                                         ///< files of earlier versions
  std::string digest = {};               ///< weights_digest; empty: not known
};

void write_trained_on(ArchiveWriter& archive, const TrainedOn& of);
/// Throws UserError(kInput).
TrainedOn read_trained_on(const ArchiveReader& archive);

/// What a network reads of the graph `here` that is otherwise than in the one of its weights, of
/// `there`, for a message: counts, and of the data sets that it reads (of edge features only if it
/// does) those whose digests both know. Whether a file has digests, and what else of it was read,
/// changes nothing. Empty: it is the graph of the training, as far as that is known.
std::string difference_of_inputs(const GraphInfo& there, const GraphInfo& here, const ContentDigests& content,
                                 bool edge_features);

}  // namespace espalier
