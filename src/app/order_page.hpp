// What `partition` and `info` say of an order.
#pragma once

#include <string>
#include <vector>

#include "espalier/comm/communicator.hpp"

namespace espalier {

struct PartsQuality;  // partition/order_quality.hpp

/// A table: for each number of parts what is cut and how even the parts are.
/// `types`: the names of vertex types, of several.
void show_quality(const std::vector<PartsQuality>& qualities, const std::vector<std::string>& types);

/// Is this the file of an order, as far as its first bytes tell? Not collective. Never throws.
bool looks_like_order(const std::string& path);

/// Collective. What is in the order at `path`.
void show_order(const Communicator& world, const std::string& path);

}  // namespace espalier
