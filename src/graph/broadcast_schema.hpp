// The schema that rank 0 alone has read, for all.
#pragma once

#include <optional>

#include "espalier/comm/communicator.hpp"
#include "espalier/graph/schema.hpp"

namespace espalier {

/// Collective. That of rank 0, which has one.
Schema broadcast_schema(const Communicator& comm, const std::optional<Schema>& schema);

}  // namespace espalier
