// From a folder with types to a graph file, whatever the layout of the folder.
#pragma once

#include <functional>
#include <memory>

#include "espalier/graph/typed_import.hpp"
#include "typed_folder.hpp"

namespace espalier {

/// Collective. `open` is called on rank 0, which reads alone and writes the graph file `output`;
/// memory is that of the edge list and the matrix. Throws as import_ogb does.
void import_typed(const Communicator& comm, const TypedImportOptions& options, const OutputFile& output,
                  const std::function<std::unique_ptr<TypedFolder>()>& open);

}  // namespace espalier
