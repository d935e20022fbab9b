// What a graph file holds beside its edges, copied to one whose vertices have other numbers, or the
// same.
#pragma once

#include "espalier/graph/graph_file.hpp"
#include "espalier/graph/graph_writer.hpp"
#include "renumbered_vertices.hpp"

namespace espalier {

/// Collective. Of a graph without types: features, labels, splits and ids of the vertices that
/// stay, in their new order. Where there are no ids the old numbers become some.
void copy_vertices(const Communicator& comm, const GraphFile& file, const RenumberedVertices& vertices,
                   GraphWriter& writer);

/// Collective. All links with what they are ranked among, in the order of the file; `vertices` may
/// be null. Throws UserError(kInput) where they name a vertex that is dropped.
void copy_links(const Communicator& comm, const GraphFile& file, const RenumberedVertices* vertices,
                GraphWriter& writer);

}  // namespace espalier
