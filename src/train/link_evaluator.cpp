#include "link_evaluator.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "espalier/base/group_stably.hpp"
#include "espalier/comm/traffic.hpp"
#include "espalier/feature/fetch_model.hpp"
#include "espalier/sample/draw.hpp"
#include "espalier/train/gradient_reduction.hpp"
#include "links.inl.hpp"

namespace espalier {

namespace {

constexpr const char* kEvaluating = "evaluate";
// Of all ranks, of which all of them see the ends.
constexpr std::int64_t kLinksAtOnce = 2048;
// Numbers of the rows that are fetched.
constexpr std::int64_t kRowsAtOnce = std::int64_t{16} << 20;
constexpr std::array<int, 5> kHits = {1, 3, 10, 50, 100};

std::int64_t links_at_once(int ranks) {
  return std::max<std::int64_t>(1, kLinksAtOnce / ranks);
}
std::int64_t candidates_at_once(std::int64_t width, std::int64_t of_a_link) {
  return std::max<std::int64_t>(1, kRowsAtOnce / (width * (2 + of_a_link)));
}

// How many candidates have a score above that of a link, and how many the same. What is no number
// tells nothing apart, so a link has none below it then.
struct Counts {
  std::int64_t above = 0, equal = 0;
  void add(float candidate, float link, std::int64_t times = 1) {
    above += candidate < link || candidate == link ? 0 : times;
    equal += candidate == link ? times : 0;
  }
  double rank() const { return 1 + static_cast<double>(above) + static_cast<double>(equal) / 2; }
};

}  // namespace

// Of the links of this rank, one end after the other.
struct LinkEvaluator::Ranks {
  std::vector<double> raw, filtered;
  std::vector<double> shares;  // of candidates below, ties half

  void add(const Counts& counts, std::int64_t candidates) {
    raw.push_back(counts.rank());
    shares.push_back(candidates == 0 ? 1 : 1 - (counts.rank() - 1) / static_cast<double>(candidates));
  }
};

// Links of all splits whose end of one kind this rank evaluates, by (relation, other end,
// that end).
struct LinkEvaluator::Known {
  using Key = std::tuple<std::int32_t, std::int64_t, std::int64_t>;
  std::vector<Key> by_head, by_tail;  // of tails, of heads that are mine

  static std::span<const Key> of(const std::vector<Key>& keys, std::int32_t relation, std::int64_t end) {
    const auto least = std::numeric_limits<std::int64_t>::min();
    const auto first = std::ranges::lower_bound(keys, Key(relation, end, least)),
               last = std::ranges::lower_bound(keys, Key(relation, end + 1, least));
    return {first, last};
  }
};

LinkEvaluator::LinkEvaluator(const Grid& grid, const LinkTargets& targets, const TrainConfig& train)
    : grid_(grid),
      targets_(targets),
      score_(link_score_of(train)),
      of_both_ends_(train.negatives_of == "both") {
  if (train.ranked_against > 0) candidates_.emplace(grid, targets, train);
  const auto of_all = [&](Split split) { return targets.links(split).count > 0 && ranks_all(split); };
  if (of_all(Split::kValid) || of_all(Split::kTest)) known_ = know();
}

// Collective. Each link of each split goes to the ranks that evaluate its ends.
std::shared_ptr<const LinkEvaluator::Known> LinkEvaluator::know() const {
  struct Sent {
    std::int64_t other, end;
    std::int32_t relation, is_tail;
  };
  auto known = std::make_shared<Known>();
  for (const auto split : {Split::kTrain, Split::kValid, Split::kTest}) {
    const auto& links = targets_.links(split);
    std::vector<Sent> sent;
    for (std::int64_t k = 0; k < std::ssize(links.heads); ++k) {
      const auto [head, tail, relation] = links.link(k);
      sent.push_back({head, tail, relation, 1});
      sent.push_back({tail, head, relation, 0});
      if (targets_.directed) continue;
      sent.push_back({tail, head, relation, 1});
      sent.push_back({head, tail, relation, 0});
    }
    const auto counts =
        group_stably(sent, grid_.ranks(), [&](const Sent& s) { return targets_.evaluated_by.owner(s.end); });
    for (const auto& s : grid_.world().all_to_all_v(std::span<const Sent>(sent), counts, "setup").data)
      (s.is_tail != 0 ? known->by_head : known->by_tail).emplace_back(s.relation, s.other, s.end);
  }
  for (auto* keys : {&known->by_head, &known->by_tail}) {
    std::ranges::sort(*keys);
    keys->erase(std::ranges::unique(*keys).begin(), keys->end());
  }
  return known;
}

LinkEvaluator::Ranks LinkEvaluator::rank_candidates(const Cpu& cpu, const RowStore& store, Scorer& scores,
                                                    Split split) const {
  const auto& links = targets_.links(split);
  const auto& given = targets_.given(split);
  const auto candidates_of = [&](std::int64_t k, bool of_head) -> EndCandidates {
    if (!given.any())
      return of_head && !of_both_ends_ ? EndCandidates()
                                       : candidates_->of(split, k, of_head ? LinkEnd::kHead : LinkEnd::kTail);
    const auto& of = of_head ? given.of_heads : given.of_tails;
    return {{of.row(k), of.row(k) + of.columns}, of.columns, {}};
  };
  const auto most = given.any() ? given.of_heads.columns + given.of_tails.columns
                                : candidates_->most() * (of_both_ends_ ? 2 : 1);
  const auto step = candidates_at_once(store.width(), most);
  const auto mine = std::ssize(links.heads);
  const auto rounds = grid_.world().all_reduce(count_batches(mine, step), Reduction::kMax, kEvaluating);

  struct Side {
    std::int64_t link;
    bool of_head;
    EndCandidates candidates;
  };
  Ranks ranks;
  RowsOfVertices fetched(cpu, store, kEvaluating);
  std::vector<std::int32_t> places;
  for (std::int64_t round = 0; round < rounds; ++round) {
    const auto from = std::min(round * step, mine), to = std::min(from + step, mine);
    std::vector<Side> sides;
    std::vector<std::int64_t> all;
    for (auto k = from; k < to; ++k) {
      all.push_back(links.heads[k]);
      all.push_back(links.tails[k]);
      for (const bool of_head : {false, true}) {
        auto candidates = candidates_of(k, of_head);
        if (candidates.vertices.empty()) continue;
        all.insert(all.end(), candidates.vertices.begin(), candidates.vertices.end());
        sides.push_back({k, of_head, std::move(candidates)});
      }
    }
    fetched.fetch(std::move(all));
    for (const auto& [link, of_head, candidates] : sides) {
      const auto [head, tail, relation] = links.link(link);
      // The link itself, then its candidates.
      places = {fetched.place(of_head ? head : tail)};
      for (const auto vertex : candidates.vertices) places.push_back(fetched.place(vertex));
      const auto found =
          scores(fetched.rows(), relation, fetched.place(of_head ? tail : head), places, of_head);
      const auto of_candidates = found.subspan(1);
      Counts counts;
      for (const float score : of_candidates.first(candidates.drawn)) counts.add(score, found[0]);
      ranks.add(counts, candidates.drawn);
      if (!ranks_filtered(split)) continue;
      for (const auto place : candidates.links) counts.add(of_candidates[place], found[0], -1);
      for (const float score : of_candidates.subspan(candidates.drawn)) counts.add(score, found[0]);
      ranks.filtered.push_back(counts.rank());
    }
  }
  return ranks;
}

LinkEvaluator::Ranks LinkEvaluator::rank_among_pairs(const Cpu& cpu, const RowStore& store, Scorer& scores,
                                                     Split split) const {
  const auto& given = targets_.given(split);
  std::vector<LinkTriple> pairs;
  for (std::int64_t k = 0; k < given.pairs.rows; ++k)
    pairs.push_back({given.pairs.row(k)[0], given.pairs.row(k)[1], 0});
  const auto step = candidates_at_once(store.width(), 0);
  const auto of_mine = score_each(cpu, grid_.world(), store, scores, pairs, step, kEvaluating);
  auto others = grid_.world().all_gather_v(std::span<const float>(of_mine), kEvaluating);
  // Those that are no numbers are below none.
  const auto numbers = std::ranges::partition(others, [](float score) { return !std::isnan(score); }).begin();
  std::sort(others.begin(), numbers);
  Ranks ranks;
  const auto links = triples_of(targets_.links(split));
  for (const float score : score_each(cpu, grid_.world(), store, scores, links, step, kEvaluating)) {
    Counts counts = {std::ssize(others), 0};
    if (!std::isnan(score)) {
      const auto [first, last] = std::equal_range(others.begin(), numbers, score);
      counts = {others.end() - last, last - first};
    }
    ranks.add(counts, std::ssize(others));
  }
  return ranks;
}

namespace {

// A link with one end open.
struct Query {
  std::int64_t fixed, truth;
  std::int32_t relation;
  float score;
  std::int64_t of_head;  // which end is open
};
struct Sums {
  Counts raw, filtered;
};
static_assert(sizeof(Sums) == 4 * sizeof(std::int64_t));

}  // namespace

LinkEvaluator::Ranks LinkEvaluator::rank_all(const Cpu& cpu, const RowStore& store,
                                             ConstMatrixView<float> own, Scorer& scores, Split split) const {
  const auto& world = grid_.world();
  const auto& links = targets_.links(split);
  const auto& ends = targets_.train_links->ends();
  const auto& evaluated_by = targets_.evaluated_by;
  const int me = world.rank();
  const auto width = own.columns, mine = std::ssize(links.heads), step = links_at_once(world.size());
  const auto rounds = world.all_reduce(count_batches(mine, step), Reduction::kMax, kEvaluating);
  Ranks ranks;
  // My rows, and behind them those of the fixed ends of a round.
  Matrix<float> rows(own.rows + step * world.size() * (of_both_ends_ ? 2 : 1), width);
  std::copy_n(own.data, own.rows * width, rows.data.begin());
  std::vector<std::int32_t> places(static_cast<std::size_t>(own.rows));
  std::iota(places.begin(), places.end(), 0);
  RowsOfVertices fetched(cpu, store, kEvaluating);
  Buffer<Query> queries;
  Buffer<float> fixed_rows;
  for (std::int64_t round = 0; round < rounds; ++round) {
    // My links of this round, with the rows of their fixed ends, to everyone.
    const auto from = std::min(round * step, mine), to = std::min(from + step, mine);
    std::vector<std::int64_t> all;
    for (auto k = from; k < to; ++k) {
      all.push_back(links.heads[k]);
      all.push_back(links.tails[k]);
    }
    fetched.fetch(std::move(all));
    std::vector<Query> my_queries;
    std::vector<float> my_rows;
    for (auto k = from; k < to; ++k) {
      const auto [head, tail, relation] = links.link(k);
      const std::int32_t at = fetched.place(tail);
      const float score = scores(fetched.rows(), relation, fetched.place(head), std::span(&at, 1), false)[0];
      for (const bool of_head : {false, true}) {
        if (of_head && !of_both_ends_) continue;
        const auto fixed = of_head ? tail : head;
        my_queries.push_back({fixed, of_head ? head : tail, relation, score, of_head});
        const auto* row = fetched.rows().row(fetched.place(fixed));
        my_rows.insert(my_rows.end(), row, row + width);
      }
    }
    auto counts = world.all_gather(std::ssize(my_queries), kEvaluating);
    world.all_gather_v(std::span<const Query>(my_queries), counts, queries, kEvaluating);
    const auto before = std::accumulate(counts.begin(), counts.begin() + me, std::int64_t{0});
    for (auto& count : counts) count *= width;
    world.all_gather_v(std::span<const float>(my_rows), counts, fixed_rows, kEvaluating);
    std::ranges::copy(fixed_rows, rows.row(own.rows));

    std::vector<Sums> sums(queries.size());
    const auto range_of = [&](const Query& query) {
      return query.of_head != 0 ? ends[query.relation].heads : ends[query.relation].tails;
    };
    for (std::int64_t q = 0; q < std::ssize(queries); ++q) {
      const auto& query = queries[q];
      const auto range = range_of(query);
      const auto [begin, end] = places_of(evaluated_by, me, own.rows, range);
      const auto found = scores(rows, query.relation, static_cast<std::int32_t>(own.rows + q),
                                std::span(places).subspan(begin, end - begin), query.of_head != 0);
      auto& sum = sums[q];
      for (const float score : found) sum.raw.add(score, query.score);
      const auto take_away = [&](Counts& from_counts, std::int64_t vertex) {
        const auto place = places_of(evaluated_by, me, own.rows, {vertex, vertex}).begin;
        if (place >= begin && place < end) from_counts.add(found[place - begin], query.score, -1);
      };
      if (evaluated_by.owner(query.truth) == me) take_away(sum.raw, query.truth);
      sum.filtered = sum.raw;
      for (const auto& [relation, other, vertex] :
           Known::of(query.of_head != 0 ? known_->by_tail : known_->by_head, query.relation, query.fixed))
        if (vertex != query.truth) take_away(sum.filtered, vertex);
    }
    world.all_reduce(std::span(reinterpret_cast<std::int64_t*>(sums.data()), 4 * sums.size()),
                     Reduction::kSum, kEvaluating);
    for (auto q = before; q < before + std::ssize(my_queries); ++q) {
      ranks.add(sums[q].raw, range_of(queries[q]).size() - 1);
      ranks.filtered.push_back(sums[q].filtered.rank());
    }
  }
  return ranks;
}

namespace {

// The means over all ranks, the same on any number of them.
void add_means(const Communicator& world, const std::vector<double>& ranks, const std::string& prefix,
               Metrics& metrics) {
  const auto count = world.all_reduce(std::ssize(ranks), Reduction::kSum, kEvaluating);
  const auto mean = [&](std::vector<double> values) {
    return count == 0 ? std::nan("") : reproducible_sum(world, values) / static_cast<double>(count);
  };
  std::vector<double> values;
  for (const double rank : ranks) values.push_back(1 / rank);
  metrics.scores.push_back({prefix + "mrr", mean(values)});
  for (const int k : kHits) {
    values.clear();
    for (const double rank : ranks) values.push_back(rank <= k ? 1 : 0);
    metrics.scores.push_back({fmt::format("{}hits_{}", prefix, k), mean(values)});
  }
}

}  // namespace

Metrics LinkEvaluator::metrics_of(const Ranks& ranks, Split split) const {
  const auto& world = grid_.world();
  Metrics metrics = {.scores = {}, .vertices = targets_.links(split).count};
  if (metrics.vertices == 0) return metrics;
  add_means(world, ranks.raw, "", metrics);
  const auto count = world.all_reduce(std::ssize(ranks.shares), Reduction::kSum, kEvaluating);
  metrics.scores.push_back({"auc", reproducible_sum(world, ranks.shares) / static_cast<double>(count)});
  if (ranks_filtered(split)) add_means(world, ranks.filtered, "filtered_", metrics);
  return metrics;
}

Evaluation LinkEvaluator::evaluate(const Cpu& cpu, ConstMatrixView<float> own,
                                   std::span<const ConstMatrixView<float>> tensors) const {
  const auto store = store_of_rows(grid_, targets_.blocks, own, kEvaluating);
  Scorer scores(cpu, score_, tensors);
  const auto metrics = [&](Split split) {
    const auto ranks = ranks_all(split)                      ? rank_all(cpu, store, own, scores, split)
                       : targets_.given(split).non_links > 0 ? rank_among_pairs(cpu, store, scores, split)
                                                             : rank_candidates(cpu, store, scores, split);
    return metrics_of(ranks, split);
  };
  Evaluation evaluation;
  evaluation.valid = metrics(Split::kValid);
  evaluation.test = metrics(Split::kTest);
  scores.check(grid_.world());
  return evaluation;
}

namespace {

// Rows of the distinct ends of this many links and candidates, in rounds of so many.
Cost fetch_cost(const RankingSize& size, double vertices_named, double rounds) {
  return rounds * feature_fetch_cost(size.rows, expected_distinct(vertices_named / rounds, size.vertices),
                                     index_bytes(static_cast<std::int64_t>(size.vertices)), 4 * size.width);
}
double rounds_of(double mine, std::int64_t step) {
  return static_cast<double>(count_batches(static_cast<std::int64_t>(std::ceil(mine)), step));
}
std::int64_t pairs_at_once(const RankingSize& size) {
  return candidates_at_once(static_cast<std::int64_t>(size.width), 0);
}

}  // namespace

Cost ranking_cost(const RankingSize& size) {
  Cost cost;
  const int ranks = size.ranks;
  if (ranks == 1 || size.links == 0) return cost;
  const double mine = size.links / ranks, peers = ranks - 1;
  if (size.pairs > 0) {
    const double of_pairs = size.pairs / ranks;
    cost += fetch_cost(size, 2 * of_pairs, rounds_of(of_pairs, pairs_at_once(size)));
    cost += fetch_cost(size, 2 * mine, rounds_of(mine, pairs_at_once(size)));
    cost += 4 * all_reduce_cost(8, ranks);  // rounds, and counts for the means
    cost += cost_of(all_gather_volume(8, ranks));
    return cost += Cost{peers, 4 * of_pairs * peers, 1};
  }
  const auto step = size.others > 0 ? candidates_at_once(static_cast<std::int64_t>(size.width),
                                                         static_cast<std::int64_t>(size.sides * size.others))
                                    : links_at_once(ranks);
  const auto rounds = rounds_of(mine, step);
  cost += fetch_cost(size, mine * (2 + size.sides * size.others), rounds);
  // Rounds, and counts for the means.
  cost += (size.others > 0 ? 3 : 4) * all_reduce_cost(8, ranks);
  if (size.others > 0) return cost;
  const double queries = mine * size.sides;
  cost += rounds * cost_of(all_gather_volume(8, ranks));
  cost += Cost{2 * rounds * peers, queries * peers * (sizeof(Query) + 4 * size.width), 2 * rounds};
  cost += Cost{2 * rounds * peers, 2 * sizeof(Sums) * queries * peers, rounds};
  return cost;
}

double ranking_bytes(const RankingSize& size) {
  if (size.links == 0) return 0;
  const int ranks = size.ranks;
  const double mine = size.links / ranks;
  const auto of_rows = [&](double at_once, double vertices_named) {
    // As they arrive, as they are read.
    return 4 * size.width * std::min(size.vertices, at_once * vertices_named) * (2 - 1.0 / ranks);
  };
  if (size.pairs > 0)
    return of_rows(std::min<double>(static_cast<double>(pairs_at_once(size)), size.pairs / ranks), 2) +
           4 * size.pairs + 24 * size.pairs / ranks;
  if (size.others > 0) {
    const auto step = static_cast<double>(candidates_at_once(
        static_cast<std::int64_t>(size.width), static_cast<std::int64_t>(size.sides * size.others)));
    return of_rows(std::min(step, mine), 2 + size.sides * size.others);
  }
  const double queries =
      std::min<double>(size.links, static_cast<double>(links_at_once(ranks)) * ranks) * size.sides;
  return 4 * size.width * (size.vertices / ranks + 2 * queries) + queries * (sizeof(Query) + sizeof(Sums));
}

}  // namespace espalier
