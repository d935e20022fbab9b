// What a checkpoint and a weights.h5 say of the graph that was trained on, to know it again: its
// counts, and the digests of its data sets as far as they are known.
#pragma once

#include <string>

#include "espalier/graph/graph_file.hpp"

namespace espalier {

std::string graph_to_json(const GraphInfo& graph);

/// Throws std::exception where the text is something else.
void read_graph(const std::string& text, GraphInfo& graph);

}  // namespace espalier
