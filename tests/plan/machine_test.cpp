// Laws: what a group of ranks pays is the mean over its pairs, of which some are on one node, by
// how ranks are dealt to nodes.
#include "espalier/plan/machine.hpp"

#include <gtest/gtest.h>

namespace espalier {
namespace {

// By enumeration: the share of pairs of a process column that share a node.
double pairs_on_a_node(const Machine& machine, int ranks, int copies) {
  const auto per_node = static_cast<int>(machine.ranks_per_node), nodes = ranks / per_node;
  const auto node_of = [&](int rank) {
    return machine.distribution == "cyclic" ? rank % nodes : rank / per_node;
  };
  double pairs = 0, together = 0;
  for (int a = 0; a < ranks; ++a)
    for (int b = 0; b < ranks; ++b) {
      if (a == b || a % copies != b % copies) continue;
      ++pairs;
      together += node_of(a) == node_of(b);
    }
  return pairs > 0 ? together / pairs : 1;
}

TEST(Machine, AColumnPaysForThePairsOnDifferentNodes) {
  Machine machine;
  machine.network = {1, 1};
  machine.inside = {0, 1};
  for (const auto* dealt : {"block", "cyclic"})
    for (const int per_node : {1, 2, 4, 8})
      for (const int nodes : {1, 2, 4, 8, 32})
        for (int copies = 1; copies <= per_node * nodes; copies *= 2) {
          machine.distribution = dealt;
          machine.ranks_per_node = per_node;
          const int ranks = per_node * nodes;
          const auto link = link_of(machine, ranks, ranks / copies, copies);
          EXPECT_NEAR(1 - link.latency_us, pairs_on_a_node(machine, ranks, copies), 1e-12)
              << dealt << " " << per_node << " " << nodes << " " << copies;
        }
  machine.ranks_per_node = 4;
  machine.distribution = "cyclic";
  EXPECT_EQ(link_of(machine, 128, 4, 32).latency_us, 0) << "c = the number of nodes: a column is a node";
}

}  // namespace
}  // namespace espalier
