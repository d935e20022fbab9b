// The groups of local batches: stretches of an order.
#pragma once

#include <cstdint>
#include <span>

#include "espalier/partition/order.hpp"
#include "espalier/sample/epoch_plan.hpp"

namespace espalier {

/// The group of each training vertex: which of `count` stretches of the clusters, with training
/// vertices as evenly as clusters allow, has it. 1 <= count <= clusters. Local.
BatchGroups group_batches(const Order& order, std::span<const std::int64_t> training, std::int32_t count);

}  // namespace espalier
