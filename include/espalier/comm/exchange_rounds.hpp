// The order of an all-to-all between GPUs that share links: the multi-round communication of
// FreshGNN, section 6. GPUs of a PCIe switch share its link to the host, so when all pairs exchange
// at once, links between switch and host are crowded while others idle.
//
// First, inside of every switch, a tournament: each round is a matching of its GPUs. Then, from
// switch to switch, a pair at a time on each link between switch and host; of more than two
// switches, those that have no switch in common at once. A pair exchanges in both directions. Four
// GPUs on two switches take five rounds, as in the paper: one inside, four across.
//
// Nobody waits between rounds. A rank does its pairs in their order and begins one when its partner
// is there; so that a link still has one pair at a time, each pair on a link has a rank in common
// with the pair that had the link before.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace espalier {

class Communicator;

/// Where the GPU of a rank is.
struct GpuPlace {
  int node = 0;
  int pcie_switch = -1;  ///< which of the node's, any number; -1: not known. GPUs that reach each
                         ///< other without the link to the host (NVLink) count as on one switch
};

/// Collective. The place of each rank's GPU, the same on every rank. `bus_id` is this rank's
/// ("0000:3B:00.0"). Within a node NVIDIA's management library says which GPUs are on one switch
/// and which NVLink joins. It is part of the driver and loaded at run time: where a rank has none,
/// or a call fails, and for ranks of several nodes, all switches are unknown.
std::vector<GpuPlace> find_gpu_places(const Communicator& comm, const std::string& bus_id);

/// Two ranks that exchange in both directions; the first is the lower one.
using RankPair = std::pair<int, int>;
using ExchangeRound = std::vector<RankPair>;

/// Do rounds spare `places`, one for each rank of a group, crowded links? The ranks are on one
/// node, all switches are known, there are two or more, and two ranks or more share one.
bool share_links(std::span<const GpuPlace> places);

/// Every pair of different ranks, in one of the rounds; the lists depend on `places` alone, so all
/// ranks have the same. Without shared links, one round of all pairs.
///
/// Rounds across: with n(S) GPUs on switch S, n in all, k switches, at least the largest of n(S) (n
/// - n(S)) and the sum of n(S) n(T) over all pairs of switches / floor(k / 2), rounded up; and that
/// many when k is at most 3 or all switches have as many GPUs.
std::vector<ExchangeRound> exchange_rounds(std::span<const GpuPlace> places);

/// The same for one rank: its partners, ascending, in each round in which it has one. Without
/// shared links one round of all ranks, itself among them; else a round of itself is the first.
std::vector<std::vector<int>> partners_by_round(std::span<const GpuPlace> places, int rank);

}  // namespace espalier
