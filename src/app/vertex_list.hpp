// A list of vertices that a person or a script wrote: a text file with one id on a line.
#pragma once

#include <cstdint>
#include <string>

#include "espalier/base/buffer.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/graph/graph_file.hpp"

namespace espalier {

/// Collective. The ids in the file, ascending, each once, on every rank; empty lines say nothing.
/// Rank 0 reads it. Throws UserError(kInput), on every rank, naming the line, where there is
/// something else than one of so many vertices `of` "the graph" or a part, and for a file
/// without any.
Buffer<std::int64_t> read_vertex_list(const Communicator& world, const std::string& path,
                                      std::int64_t vertices, const std::string& of = "the graph");

/// Collective. The same of a list of the user's own ids, of a type that has some: a line is an id,
/// blanks included. Throws for an id that no vertex has, and for one of several.
Buffer<std::int64_t> read_id_list(const Communicator& world, const std::string& path, const GraphFile& file,
                                  int type, const std::string& of);

}  // namespace espalier
