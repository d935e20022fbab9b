// Laws of rounds: each pair of ranks once, no rank and no link twice in a round, the paper's number
// of rounds and the bound derived for others; and without anybody waiting between rounds, no link
// ever has two pairs at a time.
#include "espalier/comm/exchange_rounds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>

#include "mpi_test.hpp"

namespace espalier {
namespace {

using Places = std::vector<GpuPlace>;
using Rounds = std::vector<ExchangeRound>;

Places on_switches(const std::vector<int>& switches) {
  Places places;
  for (const int number : switches) places.push_back({.node = 0, .pcie_switch = number});
  return places;
}

// The links between switch and host that a pair takes.
std::vector<int> links_of(const Places& places, const RankPair& pair) {
  const int a = places[static_cast<std::size_t>(pair.first)].pcie_switch;
  const int b = places[static_cast<std::size_t>(pair.second)].pcie_switch;
  return a == b ? std::vector<int>{} : std::vector<int>{a, b};
}

// What is wrong with rounds over shared links; empty: nothing.
std::string fault_of(const Places& places, const Rounds& rounds) {
  std::map<RankPair, int> times;
  std::map<int, RankPair> last_on_link;
  for (const auto& round : rounds) {
    if (round.empty()) return "an empty round";
    std::set<int> ranks, links;
    for (const auto& pair : round) {
      if (pair.first < 0 || pair.first >= pair.second || pair.second >= static_cast<int>(places.size()))
        return "no pair of ranks";
      if (++times[pair] > 1) return "a pair twice";
      if (!ranks.insert(pair.first).second || !ranks.insert(pair.second).second)
        return "a rank twice in a round";
      for (const int link : links_of(places, pair)) {
        if (!links.insert(link).second) return "a link twice in a round";
        const auto before = last_on_link.find(link);
        if (before != last_on_link.end()) {
          const std::set<int> both = {before->second.first, before->second.second, pair.first, pair.second};
          if (both.size() == 4) return "a link changes from a pair to one of other ranks";
        }
        last_on_link[link] = pair;
      }
    }
  }
  return times.size() == places.size() * (places.size() - 1) / 2 ? "" : "a pair is missing";
}

std::map<int, int> gpus_by_switch(const Places& places) {
  std::map<int, int> gpus;
  for (const auto& place : places) ++gpus[place.pcie_switch];
  return gpus;
}

int rounds_inside(const Places& places) {
  int rounds = 0;
  for (const auto& [number, gpus] : gpus_by_switch(places))
    rounds = std::max(rounds, gpus == 1 ? 0 : gpus % 2 == 0 ? gpus - 1 : gpus);
  return rounds;
}

// Each link has one pair a round, and a round at most half as many pairs as there are links.
int least_rounds_across(const Places& places) {
  const auto gpus = gpus_by_switch(places);
  const int all = static_cast<int>(places.size()), half = static_cast<int>(gpus.size()) / 2;
  int least = 0, twice_all_pairs = 0;
  for (const auto& [number, here] : gpus) {
    least = std::max(least, here * (all - here));
    twice_all_pairs += here * (all - here);
  }
  return std::max(least, (twice_all_pairs / 2 + half - 1) / half);
}

std::vector<int> equal_switches(int switches, int gpus) {
  std::vector<int> numbers;
  for (int k = 0; k < switches * gpus; ++k) numbers.push_back(k % switches);
  return numbers;
}

TEST(ExchangeRounds, FourGpusOnTwoSwitchesTakeThePapersFive) {
  const Rounds expected = {{{0, 1}, {2, 3}}, {{0, 2}}, {{0, 3}}, {{1, 3}}, {{1, 2}}};
  EXPECT_EQ(exchange_rounds(on_switches({0, 0, 1, 1})), expected);
  EXPECT_EQ(exchange_rounds(on_switches({7, 3, 7, 3})).size(), 5u);
}

TEST(ExchangeRounds, EqualSwitchesTakeTheFewestRoundsThatLinksAllow) {
  for (int switches = 2; switches <= 7; ++switches)
    for (int gpus = 2; gpus <= 5; ++gpus) {
      const auto places = on_switches(equal_switches(switches, gpus));
      const auto rounds = exchange_rounds(places);
      EXPECT_EQ(fault_of(places, rounds), "") << switches << " x " << gpus;
      EXPECT_EQ(static_cast<int>(rounds.size()), rounds_inside(places) + least_rounds_across(places))
          << switches << " x " << gpus;
    }
}

TEST(ExchangeRounds, AnySwitches) {
  const auto seed = test_seed(5);
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  int shared = 0;
  for (int trial = 0; trial < 400; ++trial) {
    std::vector<int> numbers(2 + random() % 15);
    const auto switches = 1 + random() % 6;
    for (auto& number : numbers) number = static_cast<int>(random() % switches);
    const auto places = on_switches(numbers);
    if (!share_links(places)) continue;
    ++shared;
    const auto rounds = exchange_rounds(places);
    ASSERT_EQ(fault_of(places, rounds), "");
    const int across = static_cast<int>(rounds.size()) - rounds_inside(places);
    ASSERT_GE(across, least_rounds_across(places));
    if (gpus_by_switch(places).size() <= 3) ASSERT_EQ(across, least_rounds_across(places));
  }
  EXPECT_GT(shared, 200);
}

// Each rank does its pairs in their order, and a pair begins when both of its ranks are there: when
// it begins and ends.
std::map<RankPair, std::pair<double, double>> times_of(const Places& places, std::mt19937_64& random) {
  const int ranks = static_cast<int>(places.size());
  std::vector<std::vector<int>> partners(places.size());
  for (int rank = 0; rank < ranks; ++rank)
    for (const auto& round : partners_by_round(places, rank))
      for (const int partner : round)
        if (partner != rank) partners[static_cast<std::size_t>(rank)].push_back(partner);
  std::vector<std::size_t> done(places.size());
  std::vector<double> clock(places.size());
  for (auto& begin : clock) begin = static_cast<double>(random() % 100);
  std::map<RankPair, std::pair<double, double>> times;
  const auto next = [&](int rank) {
    const auto& mine = partners[static_cast<std::size_t>(rank)];
    const auto at = done[static_cast<std::size_t>(rank)];
    return at < mine.size() ? mine[at] : -1;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (int a = 0; a < ranks; ++a) {
      const int b = next(a);
      if (b < 0 || next(b) != a) continue;
      auto &mine = clock[static_cast<std::size_t>(a)], &theirs = clock[static_cast<std::size_t>(b)];
      const double begin = std::max(mine, theirs);
      mine = theirs = begin + 1 + static_cast<double>(random() % 100);
      times[{std::min(a, b), std::max(a, b)}] = {begin, mine};
      ++done[static_cast<std::size_t>(a)], ++done[static_cast<std::size_t>(b)];
      moved = true;
    }
  }
  return times;
}

TEST(ExchangeRounds, ALinkHasOnePairAtATimeThoughNobodyWaitsBetweenRounds) {
  const auto seed = test_seed(6);
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (const auto& numbers : {std::vector<int>{0, 0, 1, 1}, std::vector<int>{0, 1, 0, 1, 0},
                              std::vector<int>{0, 0, 0, 1, 1, 2, 3, 3}, equal_switches(5, 3)})
    for (int trial = 0; trial < 20; ++trial) {
      const auto places = on_switches(numbers);
      const auto times = times_of(places, random);
      ASSERT_EQ(times.size(), places.size() * (places.size() - 1) / 2) << "all came to their end";
      for (const auto& [pair, time] : times)
        for (const auto& [other, its] : times)
          for (const int link : links_of(places, pair)) {
            const auto links = links_of(places, other);
            if (pair == other || std::find(links.begin(), links.end(), link) == links.end()) continue;
            ASSERT_TRUE(time.second <= its.first || its.second <= time.first);
          }
    }
}

TEST(ExchangeRounds, FaultsAreSeen) {
  const auto places = on_switches({0, 0, 1, 1});
  const auto good = exchange_rounds(places);
  ASSERT_EQ(fault_of(places, good), "");
  for (std::size_t k = 0; k < good.size(); ++k) {
    auto rounds = good;
    rounds.erase(rounds.begin() + static_cast<std::ptrdiff_t>(k));
    EXPECT_NE(fault_of(places, rounds), "") << "round " << k << " is left out";
    rounds = good;
    rounds.push_back(good[k]);
    EXPECT_EQ(fault_of(places, rounds), "a pair twice");
  }
  EXPECT_EQ(fault_of(places, {good[0], {{0, 2}, {1, 3}}, {{0, 3}, {1, 2}}}), "a link twice in a round");
  EXPECT_EQ(fault_of(places, {good[0], good[1], good[3], good[2], good[4]}),
            "a link changes from a pair to one of other ranks");
  EXPECT_EQ(fault_of(places, exchange_rounds(on_switches({0, 0, 0, 0}))), "a rank twice in a round");
}

TEST(ExchangeRounds, WithoutSharedLinksAllPairsGoAtOnce) {
  auto unknown = on_switches({0, 0, 1, -1});
  auto two_nodes = on_switches({0, 0, 1, 1});
  two_nodes[3].node = 1;
  for (const auto& places : {on_switches({}), on_switches({3}), on_switches({0, 1}),
                             on_switches({0, 0, 0, 0}), on_switches({0, 1, 2, 3}), unknown, two_nodes}) {
    EXPECT_FALSE(share_links(places));
    const auto rounds = exchange_rounds(places);
    EXPECT_EQ(rounds.size(), places.size() > 1 ? 1u : 0u);
    if (!rounds.empty()) EXPECT_EQ(rounds[0].size(), places.size() * (places.size() - 1) / 2);
    std::vector<int> everybody;
    for (std::size_t rank = 0; rank < places.size(); ++rank) everybody.push_back(static_cast<int>(rank));
    for (const int rank : everybody)
      EXPECT_EQ(partners_by_round(places, rank), (std::vector<std::vector<int>>{everybody}));
  }
}

TEST(ExchangeRounds, ARankMeetsItselfAndThenItsPartnersInTheOrderOfRounds) {
  const auto places = on_switches({0, 0, 1, 1});
  using Partners = std::vector<std::vector<int>>;
  EXPECT_EQ(partners_by_round(places, 0), (Partners{{0}, {1}, {2}, {3}}));
  EXPECT_EQ(partners_by_round(places, 1), (Partners{{1}, {0}, {3}, {2}}));
  EXPECT_EQ(partners_by_round(places, 2), (Partners{{2}, {3}, {0}, {1}}));
  EXPECT_EQ(partners_by_round(places, 3), (Partners{{3}, {2}, {0}, {1}}));
}

}  // namespace
}  // namespace espalier
