// The groups of local batches: stretches of an order.
#pragma once

#include <cstdint>
#include <span>

#include "espalier/comm/communicator.hpp"
#include "espalier/partition/order.hpp"
#include "espalier/sample/epoch_plan.hpp"

namespace espalier {

/// The group of each training vertex: which of `count` stretches of the clusters, with training
/// vertices as evenly as clusters allow, has it. 1 <= count <= clusters. Local.
BatchGroups group_batches(const Order& order, std::span<const std::int64_t> training, std::int32_t count);

/// Collective. The same of examples of which each rank has even_range(all, p, r), each where a
/// vertex of it is: stretches with examples as evenly as clusters allow.
BatchGroups group_spread_batches(const Communicator& comm, const Order& order,
                                 std::span<const std::int64_t> vertices, std::int32_t count);

}  // namespace espalier
