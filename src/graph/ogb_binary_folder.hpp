// A folder in OGB's binary layout of graphs with types, which its DatasetSaver writes and its
// read_binary_heterograph_raw reads: .npz archives with an array for each type, or for each triplet
// HEAD___RELATION___TAIL.
//
//   FOLDER/raw/num_nodes_dict.npz    by type: [1], its vertices
//   FOLDER/raw/edge_index_dict.npz   by triplet: [2, m], heads, then tails
//   FOLDER/raw/num_edges_dict.npz    by triplet: [1], its m
//   FOLDER/raw/edge_feat_dict.npz    by triplet: [m, f]; edge_feat.npz is the same      optional
//   FOLDER/raw/node_feat_dict.npz    by type: [n, f]; node_feat.npz is the same         optional
//   FOLDER/raw/node-label.npz        by type: [n, 1] or [n, C]                          optional
//   FOLDER/split/NAME                as in the csv layout (ogb_typed_folder.hpp)        optional
//
// OGB's saver writes splits as a pickle, split_dict.pt; scripts/mag240m_pickles.py turns it into
// the csv layout's.
#pragma once

#include <memory>
#include <string>

#include "espalier/graph/typed_import.hpp"
#include "typed_folder.hpp"

namespace espalier {

/// Is there such a layout in `folder`?
bool is_binary_ogb_folder(const std::string& folder);

std::unique_ptr<TypedFolder> open_binary_ogb_folder(const TypedImportOptions& options);

}  // namespace espalier
