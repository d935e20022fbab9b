// A list of vertices that a person or a script wrote: a text file with one id on a line.
#pragma once

#include <cstdint>
#include <string>

#include "espalier/base/buffer.hpp"
#include "espalier/comm/communicator.hpp"

namespace espalier {

/// Collective. The ids in the file, ascending, each once, on every rank; empty lines say nothing.
/// Rank 0 reads it. Throws UserError(kInput), on every rank, naming the line, where there is
/// something else than a vertex of a graph of so many, and for a file without any.
Buffer<std::int64_t> read_vertex_list(const Communicator& world, const std::string& path,
                                      std::int64_t vertices);

}  // namespace espalier
