// What `info` says of a graph with types.
#pragma once

#include "espalier/comm/communicator.hpp"
#include "espalier/graph/graph_file.hpp"

namespace espalier {

/// Collective. Types and relations, as tables, of a file whose relations are read apart. Reads all
/// edges, features and labels.
void show_typed_graph(const Communicator& world, const GraphFile& file);

}  // namespace espalier
