// A folder in OGB's binary layout of a graph without types (ogbn-papers100M), as its
// read_binary_graph_raw reads it: .npz archives, whose arrays are read in pieces.
//
//   FOLDER/raw/data.npz
//     num_nodes_list   [1] the number of vertices
//     num_edges_list   [1] the m of edge_index                                 optional
//     edge_index       [2, m] sources, then targets
//     node_feat        [n, f]; float16 stays float16                           optional
//     edge_feat        [m, f]; a column may be the weight of the edge          optional
//   FOLDER/raw/node-label.npz
//     node_label       [n, 1] or [n, C]; nan = none, unknown                   optional
//   FOLDER/split/NAME  as in the csv layout (ogb_import.hpp), or train.npy, valid.npy, test.npy
//
// Other arrays, as node_year, are passed over.
#pragma once

#include <memory>
#include <string>

#include "ogb_folder.hpp"

namespace espalier {

/// Is there such a layout in `folder`?
bool is_ogb_data_folder(const std::string& folder);

std::unique_ptr<OgbFolder> open_ogb_data_folder(const OgbOptions& options);

}  // namespace espalier
