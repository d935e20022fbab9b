// Imports MAG240M, the large typed graph of the OGB-LSC challenge (Hu et al. 2021), from the folder
// that its data set unpacks to:
//
//   FOLDER/processed/paper/node_feat.npy    float16 [n, 768]; stays float16
//   FOLDER/processed/paper/node_label.npy   [n], nan for none
//   FOLDER/processed/HEAD___RELATION___TAIL/edge_index.npy   [2, m]
//
// and from what scripts/mag240m_pickles.py makes of its two pickles, meta.pt and split_dict.pt:
//
//   FOLDER/num-node-dict.csv                types, then their numbers of vertices
//   FOLDER/split/{train,valid,test}.npy     ids of papers                              optional
//
// Any folder in this layout will do, whatever its types and relations; other files (node_year.npy)
// are not read. Features pass through memory in pieces.
#pragma once

#include "espalier/graph/typed_import.hpp"

namespace espalier {

/// Collective. Reads the folder and writes the graph file `output`; memory is that of the
/// edge list and the matrix. `options.split` is empty. Throws UserError(kInput) on every rank with
/// file and place for anything that does not fit; then there is no `output`. Throws
/// UserError(kUsage) when `output` is one of the inputs, also as check_output() and put_in_place()
/// do.
void import_mag240m(const Communicator& comm, const TypedImportOptions& options, const OutputFile& output);

/// As describe_ogb().
std::string describe_mag240m(const Communicator& comm, const TypedImportOptions& options);

}  // namespace espalier
