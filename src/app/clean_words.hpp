// What `espalier prepare` is asked to do to a graph before links are chosen, and what came of it.
#pragma once

#include <optional>

#include "commands.hpp"
#include "espalier/graph/clean_graph.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/partition/order.hpp"

namespace espalier {

/// Is anything asked for but links?
bool asks_to_clean(const PrepareArguments& arguments);

/// Throws UserError(kUsage) for words that there are not, and for options without an effect.
CleanOptions clean_options(const PrepareArguments& arguments);

/// Collective. The order that --relabel names, where it names one: of this file. Throws as
/// read_order() and check_order() do.
std::optional<Order> read_clean_order(const Communicator& world, const PrepareArguments& arguments,
                                      const GraphFile& file);

/// Says what was asked for and what it did.
void show(const CleanOptions& options, const CleanCounts& counts, const GraphInfo& before);

}  // namespace espalier
