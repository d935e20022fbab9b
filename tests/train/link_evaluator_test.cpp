// ranks: 1 2 4
// long ranks: 3
// Laws of ranks among candidates that are drawn: these differ, are never the link's own end, and
// come evenly from all others; the link that a scorer knows is first, whatever their number, where
// links are left out or there is no other, on every grid; with all others as candidates ranks are
// those among all; filtered ranks are those among the first that are no links, of an enumeration.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "dense/random_matrices.hpp"
#include "espalier/train/link_candidates.hpp"
#include "mpi_test.hpp"
#include "partition/owned.hpp"
#include "sample/sampling_laws.hpp"

namespace espalier {
namespace {

constexpr RowRange kHeads = {0, 30}, kTails = {30, 60};
using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;  // head, tail

struct EvaluatedLinks {
  std::array<Pairs, 3> splits;  // by Split
  Matrix<float> rows = Matrix<float>(kTails.end, kTails.size());

  std::set<std::pair<std::int64_t, std::int64_t>> known() const {
    std::set<std::pair<std::int64_t, std::int64_t>> all;
    for (const auto& split : splits) all.insert(split.begin(), split.end());
    return all;
  }
  // Rows whose products are 1 for links and 0 for others.
  void know_the_truth() {
    std::ranges::fill(rows.data, 0.0f);
    for (auto v = kTails.begin; v < kTails.end; ++v) rows(v, v - kTails.begin) = 1;
    for (const auto& [head, tail] : known()) rows(head, tail - kTails.begin) = 1;
  }
};

// 1 to `most` tails of each head; with one, another tail for each.
EvaluatedLinks evaluated_links(std::int64_t most) {
  EvaluatedLinks links;
  for (auto head = kHeads.begin; head < kHeads.end; ++head) {
    const RandomStream stream = {.seed = 3, .row = static_cast<std::uint64_t>(head)};
    const auto count = 1 + random_below(stream, 0, static_cast<std::uint64_t>(most));
    for (std::uint64_t j = 0; j < count; ++j)
      links.splits[random_below(stream, 1 + j, 3)].emplace_back(
          head, kTails.begin + (7 * head + static_cast<std::int64_t>(j)) % kTails.size());
  }
  return links;
}

TrainConfig config_against(std::int64_t against, const char* metric, bool both = true) {
  TrainConfig config;
  config.task = "links";
  config.score = "dot";
  config.ranked_against = against;
  config.metric = metric;
  config.negatives_of = both ? "both" : "tail";
  config.seed = static_cast<std::int64_t>(test_seed(17));
  return config;
}

std::unique_ptr<LinkTargets> targets_of(const Grid& grid, const EvaluatedLinks& links, Owned owned) {
  const auto& world = grid.world();
  const auto list = [&](Split split) {
    const auto& all = links.splits[static_cast<std::size_t>(split)];
    LinkList mine = {std::ssize(all), {}, {}};
    const auto range = even_range(mine.count, world.size(), world.rank());
    for (auto k = range.begin; k < range.end; ++k) {
      mine.heads.push_back(all[k].first);
      mine.tails.push_back(all[k].second);
    }
    return mine;
  };
  auto targets = std::make_unique<LinkTargets>();
  targets->outputs = links.rows.columns;
  targets->blocks = ownership_of(owned, kTails.end, grid.rows());
  place_targets(grid, targets->blocks, {}, *targets);
  targets->train_links = std::make_unique<LinkSource>(
      world, list(Split::kTrain), std::vector<LinkEnds>{{.heads = kHeads, .tails = kTails}}, Negatives(),
      kTails.end, true);
  targets->valid = list(Split::kValid);
  targets->test = list(Split::kTest);
  return targets;
}

Metrics evaluate(const Grid& grid, const EvaluatedLinks& links, const TrainConfig& config,
                 Owned owned = Owned::kInRanges) {
  const auto targets = targets_of(grid, links, owned);
  auto own = rows_of_part(links.rows, targets->evaluated_by, targets->rank);
  const auto task = make_task(Cpu{1}, grid, *targets, config);
  const auto of_rows = task->evaluator();
  of_rows->take(Cpu{1}, 0, own);
  return of_rows->finish(Cpu{1}, {}).test;
}

Grid alone() {
  return Grid(test_world().split(test_world().rank(), 0), 1);
}

// With the same scores on every grid.
Metrics evaluate_on_every_grid(const EvaluatedLinks& links, const TrainConfig& config) {
  const auto expected = evaluate(alone(), links, config);
  for (const int c : divisors(test_world().size()))
    EXPECT_EQ(evaluate(Grid(test_world(), c), links, config, kAllOwned[c % 3]), expected) << "c " << c;
  return expected;
}

TEST(LinkEvaluator, WhoKnowsTheTruthIsFirst) {
  auto several = evaluated_links(5), one = evaluated_links(1);
  several.know_the_truth();
  one.know_the_truth();
  for (const std::int64_t against : {1, 5, 20, 29}) {
    SCOPED_TRACE(against);
    EXPECT_EQ(evaluate_on_every_grid(one, config_against(against, "mrr")).find("mrr"), 1.0);
    const auto filtered = evaluate_on_every_grid(several, config_against(against, "filtered_mrr"));
    EXPECT_EQ(filtered.find("filtered_mrr"), 1.0);
    EXPECT_EQ(filtered.find("filtered_hits_1"), 1.0);
    if (against > 5) EXPECT_LT(filtered.find("mrr"), 1.0) << "other links of an end are as good";
    EXPECT_FALSE(evaluate(alone(), several, config_against(against, "mrr")).find("filtered_mrr").has_value());
  }
}

TEST(LinkEvaluator, AmongAllOthersRanksAreThoseAmongAll) {
  auto links = evaluated_links(5);
  std::mt19937_64 random(test_seed(4));
  links.rows = random_matrix<float>(links.rows.rows, links.rows.columns, random);
  const auto all = evaluate_on_every_grid(links, config_against(0, "filtered_mrr"));
  EXPECT_EQ(evaluate_on_every_grid(links, config_against(kTails.size() - 1, "filtered_mrr")), all);
  EXPECT_NE(evaluate(alone(), links, config_against(20, "filtered_mrr")), all);
}

// The tails of most heads are nearly all links: fewer than 12 are left of some, none of one.
TEST(LinkEvaluator, FilteredRanksAreAmongTheFirstThatAreNoLinks) {
  constexpr std::int64_t kAgainst = 12;
  EvaluatedLinks links;
  for (auto head = kHeads.begin; head < kHeads.end; ++head)
    for (auto tail = kTails.begin; tail < kTails.end - head; ++tail)
      links.splits[static_cast<std::size_t>((head + tail) % 3)].emplace_back(head, tail);
  std::mt19937_64 random(test_seed(9));
  for (auto& number : links.rows.data) number = static_cast<float>(static_cast<int>(random() % 3) - 1);
  const auto config = config_against(kAgainst, "filtered_hits_3", false);
  const auto found = evaluate_on_every_grid(links, config);
  const auto known = links.known();
  const auto& test = links.splits[2];
  double sum = 0;
  std::size_t fewest = kAgainst;
  for (std::int64_t k = 0; k < std::ssize(test); ++k) {
    const auto [head, tail] = test[k];
    const auto score = [&](std::int64_t v) {
      float product = 0;
      for (std::int64_t j = 0; j < links.rows.columns; ++j) product += links.rows(head, j) * links.rows(v, j);
      return product;
    };
    const OtherVertices others(static_cast<std::uint64_t>(config.seed), Split::kTest, LinkEnd::kTail, k,
                               kTails, tail);
    std::vector<float> scores;
    for (std::int64_t place = 0; place < others.count() && std::ssize(scores) < kAgainst; ++place)
      if (!known.contains({head, others(place)})) scores.push_back(score(others(place)));
    fewest = std::min(fewest, scores.size());
    double rank = 1;
    for (const auto other : scores) rank += other > score(tail) ? 1 : other == score(tail) ? 0.5 : 0;
    sum += 1 / rank;
  }
  EXPECT_EQ(fewest, 0u);
  EXPECT_NEAR(found.find("filtered_mrr").value(), sum / static_cast<double>(test.size()), 1e-12);
}

// Of 11 vertices but one: all pairs of the first two, by link and by seed.
TEST(LinkCandidates, DifferAndComeEvenlyFromAllOthers) {
  constexpr RowRange kRange = {5, 16};
  for (const auto own : {kRange.begin, std::int64_t{9}, kRange.end - 1}) {
    std::map<std::pair<std::int64_t, std::int64_t>, double> law;
    std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> seen;
    for (auto a = kRange.begin; a < kRange.end; ++a)
      for (auto b = kRange.begin; b < kRange.end; ++b)
        if (a != b && a != own && b != own) law[{a, b}] = 1.0 / 90;
    for (std::int64_t link = 0; link < 20000; ++link) {
      const OtherVertices others(test_seed(2) + static_cast<std::uint64_t>(link % 7), Split::kValid,
                                 LinkEnd::kHead, link, kRange, own);
      ++seen[{others(0), others(1)}];
      if (link % 1000 != 0) continue;
      std::set<std::int64_t> all;
      for (std::int64_t place = 0; place < others.count(); ++place) all.insert(others(place));
      EXPECT_EQ(all.size(), 10u);
      EXPECT_TRUE(*all.begin() >= kRange.begin && *all.rbegin() < kRange.end && !all.contains(own));
    }
    expect_law(law, seen);
  }
}

TEST(LinkCandidates, AreOthersForEveryLinkSplitAndEnd) {
  std::set<std::vector<std::int64_t>> lists;
  for (const auto split : {Split::kValid, Split::kTest})
    for (const auto open : {LinkEnd::kHead, LinkEnd::kTail})
      for (std::int64_t link = 0; link < 10; ++link) {
        const OtherVertices others(1, split, open, link, {0, 1000}, 500);
        std::vector<std::int64_t> list;
        for (std::int64_t place = 0; place < 5; ++place) list.push_back(others(place));
        lists.insert(list);
      }
  EXPECT_EQ(lists.size(), 40u);
}

}  // namespace
}  // namespace espalier
