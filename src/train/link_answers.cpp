// Answers of a trained model of links: scores of triples, and the tails that fit a head best.
#include <algorithm>
#include <cmath>
#include <limits>

#include "espalier/train/links.hpp"
#include "link_scorer.hpp"
#include "links.inl.hpp"

namespace espalier {

namespace {

constexpr const char* kAnswers = "infer";
// Links of a rank, open ends of all ranks, and the answers to them that every rank sees.
constexpr std::int64_t kScoredAtOnce = 1 << 16, kOpenAtOnce = 256, kOfferedAtOnce = 1 << 20;

}  // namespace

std::vector<float> score_links(const Cpu& cpu, const Grid& grid, const LinkTargets& targets,
                               const TrainConfig& train, ConstMatrixView<float> own,
                               std::span<const ConstMatrixView<float>> tensors,
                               std::span<const LinkTriple> links) {
  const auto& world = grid.world();
  const auto store = store_of_rows(grid, targets.blocks, own, kAnswers);
  Scorer scores(cpu, link_score_of(train), tensors);
  const auto mine = even_range(std::ssize(links), world.size(), world.rank());
  const auto found =
      score_each(cpu, world, store, scores, links.subspan(mine.begin, mine.size()), kScoredAtOnce, kAnswers);
  scores.check(world);
  const auto all = world.all_gather_v(std::span<const float>(found), kAnswers);
  return {all.begin(), all.end()};
}

std::vector<LinkAnswer> best_tails(const Cpu& cpu, const Grid& grid, const LinkTargets& targets,
                                   const TrainConfig& train, ConstMatrixView<float> own,
                                   std::span<const ConstMatrixView<float>> tensors,
                                   std::span<const LinkTriple> heads, std::int64_t k) {
  const auto& world = grid.world();
  const auto store = store_of_rows(grid, targets.blocks, own, kAnswers);
  Scorer scores(cpu, link_score_of(train), tensors);
  RowsOfVertices fetched(cpu, store, kAnswers);
  std::vector<LinkAnswer> answers;
  const auto at_once = std::clamp<std::int64_t>(kOfferedAtOnce / (k * world.size()), 1, kOpenAtOnce);
  const auto better = [](const LinkAnswer& a, const LinkAnswer& b) {
    return a.score != b.score ? a.score > b.score : a.vertex < b.vertex;
  };
  for (std::int64_t from = 0; from < std::ssize(heads); from += at_once) {
    const auto some = heads.subspan(from, std::min(at_once, std::ssize(heads) - from));
    std::vector<std::int64_t> ends;
    for (const auto& of : some) ends.push_back(of.head);
    fetched.fetch(std::move(ends));
    // My rows, and behind them those of the heads.
    Matrix<float> rows(own.rows + fetched.rows().rows, own.columns);
    std::copy_n(own.data, own.rows * own.columns, rows.data.begin());
    std::ranges::copy(fetched.rows().data, rows.row(own.rows));
    std::vector<LinkAnswer> mine;
    std::vector<std::int32_t> places;
    for (const auto& of : some) {
      const auto range = places_of(targets.evaluated_by, world.rank(), own.rows,
                                   targets.train_links->ends()[of.relation].tails);
      places.resize(static_cast<std::size_t>(range.size()));
      std::iota(places.begin(), places.end(), static_cast<std::int32_t>(range.begin));
      const auto found = scores(rows, of.relation,
                                static_cast<std::int32_t>(own.rows) + fetched.place(of.head), places, false);
      std::vector<LinkAnswer> best;
      for (std::size_t n = 0; n < found.size(); ++n) {
        const auto vertex = targets.evaluated_by.vertex(world.rank(), places[n]);
        if (vertex != of.head)
          best.push_back({vertex, std::isnan(found[n]) ? -std::numeric_limits<float>::infinity() : found[n]});
      }
      const auto kept = std::min(k, std::ssize(best));
      std::ranges::partial_sort(best, best.begin() + kept, better);
      best.resize(static_cast<std::size_t>(k), {-1, 0});
      mine.insert(mine.end(), best.begin(), best.end());
    }
    // [ranks, some, k]
    const auto all = world.all_gather_v(std::span<const LinkAnswer>(mine), kAnswers);
    for (std::int64_t q = 0; q < std::ssize(some); ++q) {
      std::vector<LinkAnswer> best;
      for (int rank = 0; rank < world.size(); ++rank)
        for (std::int64_t n = 0; n < k; ++n)
          if (const auto& answer = all[(rank * std::ssize(some) + q) * k + n]; answer.vertex >= 0)
            best.push_back(answer);
      std::ranges::sort(best, better);
      best.resize(static_cast<std::size_t>(k), {-1, 0});
      answers.insert(answers.end(), best.begin(), best.end());
    }
  }
  scores.check(world);
  return answers;
}

KnownLinks links_of_file(const Grid& grid, const LinkTargets& targets) {
  std::vector<LinkTriple> all;
  for (const auto split : {Split::kTrain, Split::kValid, Split::kTest}) {
    const auto of_split = triples_of(targets.links(split));
    all.insert(all.end(), of_split.begin(), of_split.end());
  }
  return {grid.world(), targets.blocks.rows(), all, targets.directed};
}

}  // namespace espalier
