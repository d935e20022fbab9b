// Imports a folder in the raw csv layout of the Open Graph Benchmark's node-property sets (Hu et
// al. 2020, snap-stanford/ogb).
//
//   FOLDER/raw/num-node-list.csv.gz   the number of vertices
//   FOLDER/raw/edge.csv.gz            "u,v" per line, 0-based: an edge from u (source)
//                                     to v (target)
//   FOLDER/raw/num-edge-list.csv.gz   lines of edge.csv.gz                          optional
//   FOLDER/raw/edge-feat.csv.gz       one line per edge; a column may be its weight,
//                                     the others are its features                    optional
//   FOLDER/raw/node-feat.csv.gz       one line per vertex                           optional
//   FOLDER/raw/node-label.csv.gz      one line per vertex; nan = none, unknown      optional
//   FOLDER/split/NAME/{train,valid,test}.csv.gz   one vertex per line; or .npy      optional
//   FOLDER/meta.json                  "name", "source", "directed" or "is_directed",
//                                     "add_inverse_edge"                            optional
//
// Each file may also be plain .csv. Where FOLDER/raw/data.npz is there, the folder is in the binary
// layout (ogb_binary_folder.cpp): the same as arrays. Edges are read twice, whatever the layout,
// and never in memory; nor are features. One label column becomes int32 classes, several become 0/1
// multi-labels; nan (an unknown task, as in ogbg sets) is kUnknownLabel there.
//
// Lines of edge.csv that meet in one entry of the matrix are merged as OgbOptions::duplicates says
// (edge_list.hpp defines which meet); how many and how is printed. The entry's features are those
// of one line, or of all, as OgbOptions::duplicate_features says. Warned of: a weighted graph with
// edges listed in both directions whose weights --symmetrize adds up, and a graph of which
// meta.json says that its edges have no direction while the file lists them in one only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "espalier/base/output_file.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/graph/typed_import.hpp"

namespace espalier {

/// Edges of a graph with types have no weights, and there is nothing to symmetrize.
struct OgbOptions : TypedImportOptions {
  std::optional<std::int64_t> edge_weight;  ///< 0-based column of edge-feat that holds the weights
  bool symmetrize = false;
};

/// Collective. Rank 0 reads the folder and writes the graph file `output`; memory is that of the
/// matrix, and of features of edges where there are any. Throws UserError(kInput) on every rank
/// with file and line for anything that does not fit; then there is no `output`. Throws
/// UserError(kUsage) when `output` is one of the inputs, also as check_output() and
/// put_in_place() do.
void import_ogb(const Communicator& comm, const OgbOptions& options, const OutputFile& output);

/// Collective. On rank 0 what the folder and the options mean as a description in TOML, with
/// absolute paths (described_import.hpp). Throws as import_ogb().
std::string describe_ogb(const Communicator& comm, const OgbOptions& options);

}  // namespace espalier
