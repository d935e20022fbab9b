// Laws of which rows are kept: by next uses as many hits as any rule has, over all small cases; of
// what is held and what arrives those with the smallest keys stay, whatever is resized, prefetched
// in windows, pruned.
#include "espalier/feature/cache_policy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "espalier/base/error.hpp"
#include "espalier/base/philox.hpp"

namespace espalier {
namespace {

using Ids = std::vector<std::int64_t>;
using Trace = std::vector<Ids>;

constexpr std::int64_t kNever = CachePolicy::kNever;

std::vector<std::int64_t> missed_of(const Ids& ids, const std::vector<std::int32_t>& slots) {
  Ids missed;
  for (std::size_t k = 0; k < ids.size(); ++k)
    if (slots[k] < 0) missed.push_back(ids[k]);
  return missed;
}

std::int64_t hits_of(CachePolicy& policy, const Trace& trace) {
  std::int64_t hits = 0;
  for (const auto& ids : trace) {
    std::vector<std::int32_t> slots(ids.size());
    policy.begin(ids, slots);
    const auto missed = missed_of(ids, slots);
    hits += std::ssize(ids) - std::ssize(missed);
    policy.end(missed);
  }
  return hits;
}

void prefetch(CachePolicy& policy, const Trace& trace) {
  for (std::size_t t = 0; t < trace.size(); ++t) policy.prefetch(static_cast<std::int64_t>(t), trace[t]);
  policy.end_prefetch();
}

// The most hits of any rule: over all sets that may be held after each fetch.
std::int64_t most_hits(const Trace& trace, int slots, int ids) {
  std::vector<std::int64_t> best(std::size_t{1} << ids, -1);
  best[0] = 0;
  for (const auto& fetch : trace) {
    unsigned asked = 0;
    for (const auto id : fetch) asked |= 1u << id;
    std::vector<std::int64_t> next(best.size(), -1);
    for (unsigned held = 0; held < best.size(); ++held) {
      if (best[held] < 0) continue;
      const auto hits = best[held] + std::popcount(held & asked);
      const auto all = held | asked;
      for (auto kept = all;; kept = (kept - 1) & all) {
        if (std::popcount(kept) <= slots) next[kept] = std::max(next[kept], hits);
        if (kept == 0) break;
      }
    }
    best = next;
  }
  return *std::ranges::max_element(best);
}

void expect_most_hits(const Trace& trace, int ids, int most_slots) {
  for (int slots = 0; slots <= most_slots; ++slots) {
    CachePolicy policy(CacheRule::kBelady);
    policy.resize(slots);
    prefetch(policy, trace);
    ASSERT_EQ(hits_of(policy, trace), most_hits(trace, slots, ids)) << slots;
  }
}

TEST(CachePolicy, ByNextUsesNothingHitsMoreOfOneRowAtATime) {
  constexpr int kIds = 4, kFetches = 6;
  for (int number = 0; number < 4096; ++number) {
    Trace trace;
    for (int t = 0, rest = number; t < kFetches; ++t, rest /= kIds) trace.push_back({rest % kIds});
    expect_most_hits(trace, kIds, 3);
  }
}

TEST(CachePolicy, ByNextUsesNothingHitsMoreOfSets) {
  constexpr int kIds = 4, kFetches = 4;
  for (int number = 0; number < 65536; number += 3) {
    Trace trace;
    for (int t = 0, rest = number; t < kFetches; ++t, rest /= 16) {
      trace.emplace_back();
      for (int id = 0; id < kIds; ++id)
        if ((rest % 16) >> id & 1) trace.back().push_back(id);
    }
    expect_most_hits(trace, kIds, 2);
  }
}

// ---- by a slow loop -----------------------------------------------------------------------------

Ids random_ids(std::uint64_t seed, std::int64_t fetch, std::int64_t ids) {
  const RandomStream stream = {.seed = seed, .row = static_cast<std::uint64_t>(fetch)};
  std::set<std::int64_t> found;
  const auto count = random64(stream, 0) % 12;
  for (std::uint64_t k = 1; k <= count; ++k) {
    const auto x = to_unit_double(random64(stream, k));
    found.insert(static_cast<std::int64_t>(x * x * static_cast<double>(ids)) * 1000003);  // skewed
  }
  return {found.begin(), found.end()};
}

// What is held, with keys that are looked up in the trace, or in a list, each time.
struct SlowChoice {
  CacheRule rule = CacheRule::kDegree;
  std::int64_t slots = 0, most_slots = 0;
  std::set<std::int64_t> held = {};
  Ids list = {};
  std::map<std::int64_t, Ids> known = {};           // of coming fetches
  std::map<std::int64_t, std::int64_t> asked = {};  // by row, the last fetch that did

  std::int64_t key(std::int64_t id, std::int64_t fetch) const {
    if (rule == CacheRule::kLru) return fetch - asked.at(id);
    if (rule == CacheRule::kDegree) {
      const auto at = std::ranges::find(list, id);
      return at - list.begin() < std::min(most_slots, std::ssize(list)) ? at - list.begin() : kNever;
    }
    for (const auto& [number, ids] : known)
      if (number > fetch && std::ranges::count(ids, id) > 0) return number;
    return kNever;
  }
  void shrink(std::int64_t to, std::int64_t fetch) {
    slots = to;
    most_slots = std::max(most_slots, to);
    while (std::ssize(held) > slots) held.erase(last(fetch));
  }
  std::int64_t last(std::int64_t fetch) const {
    return *std::ranges::max_element(held, {}, [&](auto id) { return std::pair(key(id, fetch), id); });
  }
  void end(std::int64_t fetch, Ids missed) {
    std::ranges::sort(missed, {}, [&](auto id) { return std::pair(key(id, fetch), id); });
    for (const auto id : missed) {
      if (std::ssize(held) == slots) {
        if (slots == 0 || key(last(fetch), fetch) <= key(id, fetch)) return;
        held.erase(last(fetch));
      }
      held.insert(id);
    }
  }
};

// Windows of `window` fetches are prefetched when the first of them is to begin; of some less is
// asked for.
void expect_as_slowly(CacheRule rule, std::int64_t window, std::uint64_t seed, bool resizes, bool prunes) {
  SCOPED_TRACE(fmt::format("rule {} window {} seed {}", static_cast<int>(rule), window, seed));
  constexpr std::int64_t kFetches = 120, kIds = 60;
  CachePolicy policy(rule);
  SlowChoice slow{.rule = rule};
  for (std::int64_t k = 0; k < kIds; k += 2) slow.list.push_back((k * 7 % kIds) * 1000003);
  policy.set_list(slow.list);
  std::int64_t hits = 0;
  for (std::int64_t fetch = 0; fetch < kFetches; ++fetch) {
    if (fetch == 0 || (resizes && fetch % 10 == 0)) {
      const auto slots = static_cast<std::int64_t>(random64({.seed = seed, .row = 7}, fetch) % 25);
      std::map<std::int32_t, std::int64_t> before;
      for (const auto id : slow.held) before[policy.slot_of(id)] = id;
      const auto moves = policy.resize(slots);
      slow.shrink(slots, fetch - 1);
      for (const auto& [from, to] : moves) {
        EXPECT_GE(from, slots);
        EXPECT_EQ(policy.slot_of(before[from]), to);
      }
    }
    if (rule == CacheRule::kBelady && fetch % window == 0) {
      for (auto coming = fetch; coming < std::min(fetch + window, kFetches); ++coming) {
        slow.known[coming] = random_ids(seed, coming, kIds);
        policy.prefetch(coming, slow.known[coming]);
      }
      policy.end_prefetch();
    }
    auto ids = random_ids(seed, fetch, kIds);
    if (prunes) std::erase_if(ids, [&](auto id) { return (id + fetch) % 3 == 0; });
    std::vector<std::int32_t> slots(ids.size());
    policy.begin(ids, slots);
    for (const auto id : ids) slow.asked[id] = fetch;
    for (std::size_t k = 0; k < ids.size(); ++k) {
      ASSERT_EQ(slots[k] >= 0, slow.held.contains(ids[k])) << "fetch " << fetch;
      hits += slots[k] >= 0;
    }
    const auto missed = missed_of(ids, slots);
    const auto admitted = policy.end(missed);
    slow.end(fetch, missed);
    for (const auto& [row, slot] : admitted) EXPECT_EQ(policy.slot_of(missed[row]), slot);
    std::set<std::int32_t> distinct;
    for (const auto id : slow.held) {
      ASSERT_GE(policy.slot_of(id), 0) << "fetch " << fetch;
      ASSERT_LT(policy.slot_of(id), policy.slots());
      distinct.insert(policy.slot_of(id));
    }
    ASSERT_EQ(distinct.size(), slow.held.size());
    ASSERT_EQ(policy.size(), std::ssize(slow.held));
  }
  EXPECT_GT(hits, 0);
}

TEST(CachePolicy, TheSmallestKeysStay) {
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    for (const bool resizes : {false, true})
      for (const bool prunes : {false, true}) {
        for (const auto rule : {CacheRule::kDegree, CacheRule::kLru})
          expect_as_slowly(rule, 1, 2 * seed + 1, resizes, prunes);
        for (const std::int64_t window : {1, 7, 200})
          expect_as_slowly(CacheRule::kBelady, window, 2 * seed + 1, resizes, prunes);
      }
}

// ---- rules --------------------------------------------------------------------------------------

TEST(CachePolicy, Names) {
  EXPECT_EQ(cache_rule_of("belady"), CacheRule::kBelady);
  EXPECT_THROW(cache_rule_of("fifo"), UserError);
}

}  // namespace
}  // namespace espalier
