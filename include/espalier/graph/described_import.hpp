// Imports a graph that a file in TOML describes: which arrays of numpy and which texts hold the
// edges of each relation and what is known of vertices (docs/data.md).
#pragma once

#include <string>

#include "espalier/base/output_file.hpp"
#include "espalier/comm/communicator.hpp"

namespace espalier {

/// Collective. Reads and writes the graph file `output`. Throws UserError(kInput) on every
/// rank, with the file and the key or the place, for anything that does not fit; then there is no
/// `output`. Throws UserError(kUsage) when `output` is one of the inputs, also as check_output()
/// and put_in_place() do.
void import_described_graph(const Communicator& comm, const std::string& path, const OutputFile& output);

}  // namespace espalier
