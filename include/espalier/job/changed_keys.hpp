// Which keys a job has otherwise than the run it goes on from, or takes weights from, and what each
// changes: as the table of keys says (KeyEffect), with what only the graph can tell.
#pragma once

#include <string>
#include <vector>

#include "espalier/base/config.hpp"
#include "espalier/graph/graph_file.hpp"

namespace espalier {

/// graph.target as the name of a type, where it was left out and the graph has types of which one
/// has labels.
void name_target(const GraphInfo& graph, Config& config);

/// The keys whose values differ, the heaviest effect first. KeyEffect::kDraw becomes kMeaning where
/// the key changes the matrix that evaluation multiplies by, and kTrajectory elsewhere.
std::vector<KeyDifference> changed_keys(Config there, const Config& here, const GraphInfo& graph);

/// Is it another network, its weights or what it makes of them?
inline bool changes_network(const KeyDifference& key) {
  return key.effect == KeyEffect::kShape || key.effect == KeyEffect::kMeaning;
}

/// "model.hidden = 8 there and 16 here".
std::string in_words(const KeyDifference& key);

}  // namespace espalier
