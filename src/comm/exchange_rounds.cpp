#include "espalier/comm/exchange_rounds.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>

namespace espalier {

namespace {

// The ranks of each switch, ascending; switches by their numbers.
std::vector<std::vector<int>> ranks_by_switch(std::span<const GpuPlace> places) {
  std::map<int, std::vector<int>> ranks;
  for (std::size_t rank = 0; rank < places.size(); ++rank)
    ranks[places[rank].pcie_switch].push_back(static_cast<int>(rank));
  std::vector<std::vector<int>> result;
  for (auto& [number, of_switch] : ranks) result.push_back(std::move(of_switch));
  return result;
}

// Round `round` of a tournament of `players` by the circle method: the last one stays, the others
// turn. With an odd number one has nobody to play with.
std::vector<std::pair<int, int>> tournament_round(int players, int round) {
  const int circle = players % 2 == 0 ? players - 1 : players;
  std::vector<std::pair<int, int>> games;
  if (players % 2 == 0 && players > 0) games.emplace_back(round, players - 1);
  for (int k = 1; 2 * k < circle; ++k)
    games.emplace_back((round + k) % circle, (round - k + circle) % circle);
  return games;
}
int tournament_rounds(int players) {
  return players % 2 == 0 ? players - 1 : players;
}

void add(std::vector<ExchangeRound>& rounds, std::size_t round, int a, int b) {
  if (rounds.size() <= round) rounds.resize(round + 1);
  rounds[round].emplace_back(std::min(a, b), std::max(a, b));
}

// All ranks of a with all of b; each pair has a rank in common with the one before.
std::vector<std::pair<int, int>> there_and_back(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<std::pair<int, int>> pairs;
  for (std::size_t row = 0; row < a.size(); ++row)
    for (std::size_t k = 0; k < b.size(); ++k)
      pairs.emplace_back(a[row], b[row % 2 == 0 ? k : b.size() - 1 - k]);
  return pairs;
}

void add_rounds_inside(const std::vector<std::vector<int>>& switches, std::vector<ExchangeRound>& rounds) {
  for (const auto& ranks : switches) {
    const int players = static_cast<int>(ranks.size());
    for (int round = 0; players > 1 && round < tournament_rounds(players); ++round)
      for (const auto& [a, b] : tournament_round(players, round))
        add(rounds, static_cast<std::size_t>(round), ranks[a], ranks[b]);
  }
}

// A tournament of switches. A pair begins with the rank that used its link last, on either side.
void add_rounds_across(std::vector<std::vector<int>> switches, std::vector<ExchangeRound>& rounds) {
  const int players = static_cast<int>(switches.size());
  std::vector<std::size_t> is_free(switches.size(), rounds.size());  // from which round on
  for (int game = 0; game < tournament_rounds(players); ++game)
    for (const auto& [s, t] : tournament_round(players, game)) {
      auto &here = switches[s], &there = switches[t];
      auto round = std::max(is_free[s], is_free[t]);
      std::pair<int, int> last;
      for (const auto& pair : there_and_back(here, there)) {
        add(rounds, round++, pair.first, pair.second);
        last = pair;
      }
      is_free[s] = is_free[t] = round;
      std::iter_swap(here.begin(), std::find(here.begin(), here.end(), last.first));
      std::iter_swap(there.begin(), std::find(there.begin(), there.end(), last.second));
    }
}

}  // namespace

bool share_links(std::span<const GpuPlace> places) {
  if (places.empty()) return false;
  for (const auto& place : places)
    if (place.node != places[0].node || place.pcie_switch < 0) return false;
  const auto switches = ranks_by_switch(places).size();
  return switches > 1 && switches < places.size();
}

std::vector<ExchangeRound> exchange_rounds(std::span<const GpuPlace> places) {
  const int ranks = static_cast<int>(places.size());
  std::vector<ExchangeRound> rounds;
  if (!share_links(places)) {
    for (int a = 0; a < ranks; ++a)
      for (int b = a + 1; b < ranks; ++b) add(rounds, 0, a, b);
    return rounds;
  }
  const auto switches = ranks_by_switch(places);
  add_rounds_inside(switches, rounds);
  add_rounds_across(switches, rounds);
  for (auto& round : rounds) std::sort(round.begin(), round.end());
  return rounds;
}

std::vector<std::vector<int>> partners_by_round(std::span<const GpuPlace> places, int rank) {
  if (!share_links(places)) {
    std::vector<int> everybody(places.size());
    std::iota(everybody.begin(), everybody.end(), 0);
    return {everybody};
  }
  std::vector<std::vector<int>> partners = {{rank}};
  for (const auto& round : exchange_rounds(places))
    for (const auto& [a, b] : round)
      if (a == rank || b == rank) partners.push_back({a == rank ? b : a});
  return partners;
}

}  // namespace espalier
