// What `info` says of the links of a graph file.
#pragma once

#include "espalier/graph/graph_file.hpp"

namespace espalier {

/// Collective. `file` is open with its relations apart. Reads all links, and so finds what is wrong
/// with them.
void show_links(const Communicator& world, const GraphFile& file);

}  // namespace espalier
