// Parts by neighbourhood expansion (NE, Zhang et al. 2017; DistributedNE, Hanai et al. 2019): every
// part grows from a vertex over the edges that are nobody's yet. In a round it takes, of the
// vertices on its boundary, those of fewest such edges: their edges become its own, and then all of
// which it has both ends. One engine; a method is a set of rules.
//
// Rounds are the same for any number of ranks: a part chooses by sums over all ranks, of parts that
// want the same pair that with fewer pairs has it, by words of a hash where they are even, and both
// ends of a pair see the same proposals.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "edge_cut_methods.hpp"
#include "espalier/base/clock.hpp"
#include "espalier/base/log.hpp"

namespace espalier {

namespace {

constexpr std::uint16_t kNobodys = std::numeric_limits<std::uint16_t>::max();

struct ExpansionRules {
  /// In a round: this fraction of the pairs that a part has in the end, so that none runs ahead,
  /// and of a vertex with more only as many; 0: `growth` of the vertices on its boundary, whole.
  double budget = 0;
  double growth = 0.1;
  /// Times the mean of pairs: a part that has so many stops.
  double most = 1.02;
  bool exactly = false;  ///< nor is it given more in its last round
  /// Times the mean of vertices: a part that has more waits, as long as others grow.
  double most_vertices = std::numeric_limits<double>::infinity();
  int at_a_time = kMostEdgeParts;  ///< so many parts grow, of those that may the first
  bool adapts = false;             ///< growth becomes more or less as AdaDNE's (5) to (7) say
};

class Expansion {
 public:
  Expansion(const EdgeCutTask& task, const ExpansionRules& rules)
      : task_(task),
        rules_(rules),
        rows_(task.rows),
        first_(task.mine().begin),
        part_(rows_.indices.size(), kNobodys),
        claim_(rows_.indices.size(), kNobodys),
        open_(static_cast<std::size_t>(rows_.rows)),
        parts_of_(static_cast<std::size_t>(rows_.rows)),
        boundary_(static_cast<std::size_t>(task.parts)),
        growth_(static_cast<std::size_t>(task.parts), rules.growth),
        pairs_(static_cast<std::size_t>(task.parts), 0),
        vertices_(pairs_),
        grows_(static_cast<std::size_t>(task.parts)) {
    for (std::int64_t v = 0; v < rows_.rows; ++v) open_[v] = rows_.row_size(v);
    all_pairs_ = sum(rows_.entries()) / 2;
    const double mean = static_cast<double>(all_pairs_) / task.parts;
    budget_ = 1 + static_cast<std::int64_t>(rules.budget * mean);
    most_ = 1 + static_cast<std::int64_t>(rules.most * mean);
  }

  // Collective, as all of these.
  Buffer<std::uint16_t> run() {
    constexpr double kSilence = 30;  // seconds
    const double start = now();
    double said = start;
    for (std::int64_t left = all_pairs_, idle = 0; left > 0; ++round_) {
      if (now() - said > kSilence) {
        said = now();
        log::info("cutting    {} % of the edges have a part after {:.0f} s",
                  100 * (all_pairs_ - left) / all_pairs_, said - start);
      }
      const auto before = total();
      find_growing();
      claim_rows_of(choose());
      allocate();
      while (sum(std::ssize(news_)) > 0) claim_between();
      if (rules_.adapts) adapt();
      left = all_pairs_ - total();
      idle = total() > before ? 0 : idle + 1;
      ESPALIER_CHECK(idle < 1000, "{} rounds of an expansion gave no pair to a part", idle);
    }
    return std::move(part_);
  }

 private:
  static constexpr int kBuckets = 256;

  std::int64_t sum(std::int64_t mine) const { return task_.world.all_reduce(mine, Reduction::kSum, kCut); }
  std::int64_t total() const {
    std::int64_t all = 0;
    for (const auto pairs : pairs_) all += pairs;
    return all;
  }
  bool may_grow(std::size_t part) const { return grows_[part] != 0 && pairs_[part] < most_; }
  void find_growing() {
    const auto most = rules_.most_vertices *
                      static_cast<double>(std::reduce(vertices_.begin(), vertices_.end())) / task_.parts;
    int growing = 0, waiting = 0;
    for (std::size_t p = 0; p < pairs_.size(); ++p) {
      grows_[p] = growing < rules_.at_a_time && pairs_[p] < most_;
      growing += grows_[p];
      waiting += grows_[p] != 0 && static_cast<double>(vertices_[p]) > most;
    }
    for (std::size_t p = 0; p < pairs_.size() && waiting < growing; ++p)
      if (static_cast<double>(vertices_[p]) > most) grows_[p] = 0;
  }
  bool has(std::int64_t row, std::uint16_t part) const {
    return std::ranges::binary_search(parts_of_[row], part);
  }
  std::uint64_t word(std::int64_t a, std::int64_t b, std::int64_t c = 0) const {
    return absorb(absorb(absorb(task_.seed, a), b), c);
  }
  // Of two parts that want the same the one with fewer pairs, as all ranks knew them last.
  std::uint16_t winner(std::uint16_t p, std::uint16_t q, std::int64_t key) const {
    if (p == kNobodys || q == kNobodys || p == q) return std::min(p, q);
    if (pairs_[p] != pairs_[q]) return pairs_[p] < pairs_[q] ? p : q;
    return word(key, p) < word(key, q) ? p : q;
  }

  void claim(std::int64_t entry, std::int64_t row, std::uint16_t part) {
    if (part_[entry] != kNobodys) return;
    if (claim_[entry] == kNobodys) claimed_.push_back({entry, row});
    const auto u = first_ + row, v = rows_.indices[entry];
    claim_[entry] =
        winner(claim_[entry], part, static_cast<std::int64_t>(word(std::min(u, v), std::max(u, v), -1)));
  }

  // Entries that were claimed go to who won them, the same at both ends of a pair, as many as that
  // may have.
  void allocate() {
    std::vector<std::int64_t> won(pairs_.size(), 0), more(2 * pairs_.size(), 0);
    for (const auto& [entry, row] : claimed_) won[claim_[entry]] += first_ + row < rows_.indices[entry];
    task_.world.all_reduce(std::span(won), Reduction::kSum, kCut);
    for (const auto& [entry, row] : claimed_) {
      const auto part = std::exchange(claim_[entry], kNobodys);
      const auto u = first_ + row, v = rows_.indices[entry];
      if (rules_.exactly &&
          static_cast<double>(won[part]) * fraction_of(word(std::min(u, v), std::max(u, v), round_)) >=
              static_cast<double>(most_ - pairs_[part]))
        continue;
      part_[entry] = part;
      --open_[row];
      more[part] += first_ + row < rows_.indices[entry];
      auto& parts = parts_of_[row];
      const auto place = std::ranges::lower_bound(parts, part);
      if (place != parts.end() && *place == part) continue;
      parts.insert(place, part);
      ++more[pairs_.size() + part];
      boundary_[part].push_back(row);
      news_.push_back({row, part});
    }
    claimed_.clear();
    task_.world.all_reduce(std::span(more), Reduction::kSum, kCut);
    for (std::size_t p = 0; p < pairs_.size(); ++p) {
      pairs_[p] += more[p];
      vertices_[p] += more[pairs_.size() + p];
    }
  }

  // Pairs of which a part has both ends become its own. Some are asked for at a time: hubs have
  // many, in many parts.
  void claim_between() {
    constexpr std::int64_t kAtATime = std::int64_t{1} << 19;
    auto news = std::exchange(news_, {});
    std::erase_if(news, [&](const auto& of) { return !may_grow(of.second); });
    std::size_t next = 0;
    std::int64_t entry = 0;  // of its row
    Buffer<Proposal> asked, answers;
    while (sum(std::ssize(news) - static_cast<std::int64_t>(next)) > 0) {
      asked.clear(), answers.clear();
      for (; next < news.size() && std::ssize(asked) < kAtATime; ++next, entry = 0) {
        const auto [row, part] = news[next];
        for (const auto size = rows_.row_size(row); entry < size && std::ssize(asked) < kAtATime; ++entry)
          if (const auto e = rows_.row_begin(row) + entry; part_[e] == kNobodys)
            asked.push_back({rows_.indices[e], first_ + row, part});
        if (entry < rows_.row_size(row)) break;
      }
      deliver(task_, asked, [&](const Proposal& of) {
        const auto row = of.row - first_;
        const auto here = entry_at(rows_, row, of.column);
        if (part_[here] != kNobodys || !has(row, of.part)) return;
        claim(here, row, of.part);
        answers.push_back({of.column, of.row, of.part});
      });
      deliver(task_, answers, [&](const Proposal& of) {
        claim(entry_at(rows_, of.row - first_, of.column), of.row - first_, of.part);
      });
    }
    allocate();
  }

  // lambda_p exp(alpha (1 - VS) + beta (1 - ES)), alpha = beta = 1, VS and ES being the part's
  // vertices and pairs over the mean (GLISP, formulas 5 to 7); 1 at most, which the paper
  // leaves out.
  void adapt() {
    double vertices = 0;
    for (const auto of_part : vertices_) vertices += static_cast<double>(of_part);
    const auto pairs = static_cast<double>(total());
    for (std::size_t p = 0; p < growth_.size(); ++p) {
      const double vs = static_cast<double>(vertices_[p]) * task_.parts / vertices,
                   es = static_cast<double>(pairs_[p]) * task_.parts / pairs;
      growth_[p] = std::min(1.0, growth_[p] * std::exp(1 - vs + 1 - es));
    }
  }

  // ---- which vertices grow ----

  struct Chosen {
    std::int64_t row;
    std::uint16_t part;
  };
  struct Least {
    std::uint64_t word = std::numeric_limits<std::uint64_t>::max();
    std::int64_t row = -1;
  };

  static int bucket_of(std::int64_t degree) {
    if (degree < 128) return static_cast<int>(degree);
    const int bits = 64 - __builtin_clzll(static_cast<unsigned long long>(degree));  // >= 8
    return std::min(kBuckets - 1, 128 + (bits - 8) * 4 + static_cast<int>((degree >> (bits - 3)) & 3));
  }

  // What is counted of a vertex that is chosen.
  std::int64_t size_of(std::int64_t row) const { return rules_.budget > 0 ? open_[row] : 1; }

  // Each part that may grow chooses of its vertices those of fewest open edges, or starts anew.
  std::vector<Chosen> choose() {
    const auto parts = static_cast<std::size_t>(task_.parts);
    std::vector<std::int64_t> sizes(parts * kBuckets, 0);  // by open edges
    for (std::size_t p = 0; p < parts; ++p) {
      if (!may_grow(p)) continue;
      std::erase_if(boundary_[p], [&](std::int64_t row) { return open_[row] == 0; });
      for (const auto row : boundary_[p]) sizes[p * kBuckets + bucket_of(open_[row])] += size_of(row);
    }
    task_.world.all_reduce(std::span(sizes), Reduction::kSum, kCut);
    std::vector<Chosen> chosen;
    std::vector<Least> least(parts);
    for (std::size_t p = 0; p < parts; ++p)
      if (may_grow(p))
        least[p] =
            choose(static_cast<std::uint16_t>(p), std::span(sizes).subspan(p * kBuckets, kBuckets), chosen);
    // One at least, that with the least word.
    std::vector<std::uint64_t> words;
    for (const auto& of : least) words.push_back(of.word);
    task_.world.all_reduce(std::span(words), Reduction::kMin, kCut);
    for (std::size_t p = 0; p < parts; ++p)
      if (least[p].row >= 0 && words[p] == least[p].word)
        chosen.push_back({least[p].row, static_cast<std::uint16_t>(p)});
    return chosen;
  }

  // Of one part, by the sizes of all its vertices: whole buckets, and a random choice of the last.
  // Returns the vertex of that with the least word.
  Least choose(std::uint16_t part, std::span<const std::int64_t> sizes, std::vector<Chosen>& chosen) const {
    auto room = std::min(budget_, most_ - pairs_[part]);
    if (rules_.budget == 0)
      room = static_cast<std::int64_t>(growth_[part] *
                                       static_cast<double>(std::reduce(sizes.begin(), sizes.end())));
    int last = -1;
    for (int b = 1; b < kBuckets; ++b) {
      if (sizes[b] == 0) continue;
      last = b;
      if (sizes[b] >= room) break;
      room -= sizes[b];
    }
    if (last < 0) return find_seed(part);
    const double share = static_cast<double>(room) / static_cast<double>(sizes[last]);
    Least least;
    for (const auto row : boundary_[part]) {
      const int b = bucket_of(open_[row]);
      if (b > last) continue;
      const auto at = word(first_ + row, part, round_);
      if (b < last || fraction_of(at) < share) chosen.push_back({row, part});
      if (b == last && at < least.word) least = {at, row};
    }
    return least;
  }

  Least find_seed(std::uint16_t part) const {
    Least least;
    for (std::int64_t row = 0; row < rows_.rows; ++row) {
      if (open_[row] == 0) continue;
      const auto at = word(first_ + row, part, round_);
      if (at < least.word) least = {at, row};
    }
    return least;
  }

  // The open edges of these vertices are claimed, each vertex by one part.
  void claim_rows_of(const std::vector<Chosen>& chosen) {
    by_.resize(static_cast<std::size_t>(rows_.rows), kNobodys);
    for (const auto& [row, part] : chosen) by_[row] = winner(by_[row], part, first_ + row);
    Buffer<Proposal> sent;
    for (const auto& [row, part] : chosen) {
      if (by_[row] != part) continue;
      by_[row] = kNobodys;  // once
      const double share = static_cast<double>(budget_) / static_cast<double>(open_[row]);
      for (auto e = rows_.row_begin(row); e < rows_.row_end(row); ++e) {
        if (part_[e] != kNobodys) continue;
        if (rules_.budget > 0 && share < 0.5 &&
            fraction_of(word(first_ + row, rows_.indices[e], round_)) >= share)
          continue;
        claim(e, row, part);
        sent.push_back({rows_.indices[e], first_ + row, part});
      }
    }
    deliver(task_, sent, [&](const Proposal& of) {
      claim(entry_at(rows_, of.row - first_, of.column), of.row - first_, of.part);
    });
  }

  const EdgeCutTask& task_;
  const ExpansionRules rules_;
  const Csr<std::int64_t>& rows_;
  std::int64_t first_;
  Buffer<std::uint16_t> part_, claim_;                          // [entries]
  std::vector<std::pair<std::int64_t, std::int64_t>> claimed_;  // entry, row
  Buffer<std::int64_t> open_;                                   // [rows] entries that are nobody's
  std::vector<std::vector<std::uint16_t>> parts_of_;            // [rows] ascending
  std::vector<std::vector<std::int64_t>> boundary_;             // [parts] rows with open entries
  std::vector<std::pair<std::int64_t, std::uint16_t>> news_;    // rows that have a part since
  std::vector<std::uint16_t> by_;                               // [rows] in claim_rows_of()
  std::vector<double> growth_;                                  // [parts]
  std::vector<std::int64_t> pairs_, vertices_;                  // [parts] of all ranks
  std::vector<std::uint8_t> grows_;                             // [parts] in this round
  std::int64_t all_pairs_ = 0, budget_ = 0, most_ = 0, round_ = 0;
};

}  // namespace

// Where vertices are of like degree, few parts at a time meet fewer others, and copies are fewest;
// where hubs are, the last parts are then left a core of few vertices.
Buffer<std::uint16_t> expand_evenly(const EdgeCutTask& task) {
  auto together = Expansion(task, {.budget = 0.002, .exactly = true, .most_vertices = 1.02}).run();
  const auto vertices = even_out(task, together);
  auto in_turn =
      Expansion(task, {.budget = 0.005, .most = 1, .exactly = true, .at_a_time = std::max(1, task.parts / 8)})
          .run();
  return even_out(task, in_turn) < vertices ? std::move(in_turn) : std::move(together);
}

Buffer<std::uint16_t> expand_as_dne(const EdgeCutTask& task) {
  return Expansion(task, {.most = 1.01, .exactly = true}).run();
}

Buffer<std::uint16_t> expand_as_adadne(const EdgeCutTask& task) {
  return Expansion(task, {.most = static_cast<double>(task.parts), .adapts = true}).run();
}

}  // namespace espalier
