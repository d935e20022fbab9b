// Parts of edges made better: a vertex takes all its pairs of one part to another that both ends of
// each of them have already, so that no vertex gets a part. Round by round
//
//   copies    to another part that it has: it has one less
//   vertices  from a part with more vertices than the mean to one with fewer, with few pairs
//   pairs     the same of pairs, with many
//
// Few pairs with each vertex one way and many the other even out both. Nothing goes into a part
// that another vertex may be leaving for good, so all can move at once.
#include <algorithm>
#include <utility>
#include <vector>

#include "edge_cut_methods.hpp"

namespace espalier {

namespace {

class Evening {
 public:
  Evening(const EdgeCutTask& task, Buffer<std::uint16_t>& parts)
      : task_(task),
        rows_(task.rows),
        first_(task.mine().begin),
        parts_(parts),
        of_row_(static_cast<std::size_t>(rows_.rows)),
        changed_(static_cast<std::size_t>(rows_.rows), 1) {}

  // Collective, as all of these. Most vertices of a part.
  std::int64_t run() {
    constexpr int kRounds = 36, kIdle = 6;
    look();
    for (int idle = 0; round_ < kRounds && idle < kIdle; ++round_) {
      aim_ = static_cast<Aim>(round_ % 3);
      find_movers();
      find_targets();
      idle = move() > 0 ? 0 : idle + 1;
      look();
    }
    return std::ranges::max(vertices_);
  }

 private:
  enum class Aim { kCopies, kVertices, kPairs };

  // What parts have, after some rows have changed.
  void look() {
    const auto parts = static_cast<std::size_t>(task_.parts);
    for (std::int64_t v = 0; v < rows_.rows; ++v)
      if (std::exchange(changed_[v], 0)) parts_of_row(rows_, parts_, v, of_row_[v]);
    std::vector<std::int64_t> counts(2 * parts, 0);
    for (std::int64_t v = 0; v < rows_.rows; ++v)
      for (const auto part : of_row_[v]) ++counts[part];
    for (const auto part : parts_) ++counts[parts + part];
    task_.world.all_reduce(std::span(counts), Reduction::kSum, kCut);
    vertices_.assign(counts.begin(), counts.begin() + task_.parts);
    entries_.assign(counts.begin() + task_.parts, counts.end());
    mean_pairs_ = mean(entries_) / mean(vertices_);
  }

  const std::vector<std::int64_t>& load() const { return aim_ == Aim::kVertices ? vertices_ : entries_; }
  static double mean(const std::vector<std::int64_t>& of) {
    double all = 0;
    for (const auto one : of) all += static_cast<double>(one);
    return all / static_cast<double>(of.size());
  }
  double excess(int part) const { return static_cast<double>(load()[part]) - mean(load()); }
  bool may_give(int part) const { return aim_ == Aim::kCopies || excess(part) > 0; }
  bool may_take(int part) const { return aim_ == Aim::kCopies || excess(part) < 0; }

  struct Request {
    std::int64_t row, asker;
  };
  struct Answer {
    std::int64_t row;  // the asker
    std::uint64_t parts;
  };
  struct Mover {
    std::int64_t row, pairs;
    std::uint16_t from, to;
  };

  std::int64_t weight(const Mover& of) const { return aim_ == Aim::kVertices ? 1 : 2 * of.pairs; }

  template <class Visit>
  void each_entry(const Mover& of, Visit visit) const {
    for (auto e = rows_.row_begin(of.row); e < rows_.row_end(of.row); ++e)
      if (parts_[e] == of.from) visit(e);
  }

  bool fits(std::int64_t pairs) const {
    constexpr std::int64_t kMostPairs = 256;
    if (aim_ == Aim::kCopies) return pairs <= kMostPairs;
    const auto of = static_cast<double>(pairs);
    return aim_ == Aim::kVertices ? of <= mean_pairs_ / 8 : of >= mean_pairs_ / 4 && pairs <= kMostPairs;
  }

  // Of each vertex one part, another every time, if it may leave that.
  void find_movers() {
    movers_.clear();
    for (std::int64_t v = 0; v < rows_.rows; ++v) {
      const auto& of = of_row_[v];
      if (of.empty() || (aim_ == Aim::kCopies && of.size() == 1)) continue;
      const auto from = of[(first_ + v + round_ / 3) % std::ssize(of)];
      if (!may_give(from)) continue;
      const auto pairs =
          std::count(parts_.begin() + rows_.row_begin(v), parts_.begin() + rows_.row_end(v), from);
      if (fits(pairs)) movers_.push_back({v, pairs, from, from});
    }
  }

  // The parts of a vertex from `begin` on, one bit each.
  std::uint64_t word_of(std::int64_t row, int begin) const {
    std::uint64_t word = 0;
    for (const int part : of_row_[row])
      if (part >= begin && part < begin + 64) word |= std::uint64_t{1} << (part - begin);
    return word;
  }

  // For each mover, of the parts that all its neighbours have there that with least. 64 parts, and
  // some movers, at a time.
  void find_targets() {
    constexpr std::int64_t kAtATime = std::int64_t{1} << 19;
    std::vector<std::uint64_t> all(movers_.size());
    Buffer<std::int64_t> place(static_cast<std::size_t>(rows_.rows));
    Buffer<Request> asked;
    Buffer<Answer> answers;
    for (int begin = 0; begin < task_.parts; begin += 64) {
      std::int64_t next = 0;
      while (task_.world.all_reduce(std::ssize(movers_) - next, Reduction::kSum, kCut) > 0) {
        asked.clear(), answers.clear();
        for (; next < std::ssize(movers_) && std::ssize(asked) < kAtATime; ++next) {
          const auto v = movers_[next].row;
          place[v] = next;
          all[next] = aim_ == Aim::kCopies ? word_of(v, begin) : ~std::uint64_t{0};
          each_entry(movers_[next], [&](auto e) { asked.push_back({rows_.indices[e], first_ + v}); });
        }
        deliver(task_, asked, [&](const Request& of) {
          answers.push_back({of.asker, word_of(of.row - first_, begin)});
        });
        deliver(task_, answers, [&](const Answer& of) { all[place[of.row - first_]] &= of.parts; });
      }
      for (std::size_t k = 0; k < movers_.size(); ++k)
        for (auto word = all[k]; word != 0; word &= word - 1) {
          const auto part = static_cast<std::uint16_t>(begin + __builtin_ctzll(word));
          auto& [row, pairs, from, to] = movers_[k];
          if (part != from && may_take(part) && (to == from || load()[part] < load()[to])) to = part;
        }
    }
    std::erase_if(movers_, [](const Mover& of) { return of.from == of.to; });
  }

  // So many of those that would go that no part gets more, or keeps less, than the mean; for fewer
  // copies, than its share of entries.
  std::int64_t move() {
    const auto parts = static_cast<std::size_t>(task_.parts);
    std::vector<std::int64_t> wishes(4 * parts, 0);  // of the load: out, in; of entries: out, in
    for (const auto& of : movers_) {
      wishes[of.from] += weight(of);
      wishes[parts + of.to] += weight(of);
      wishes[2 * parts + of.from] += 2 * of.pairs;
      wishes[3 * parts + of.to] += 2 * of.pairs;
    }
    task_.world.all_reduce(std::span(wishes), Reduction::kSum, kCut);
    const auto share = [&](double room, std::size_t at) {
      return std::clamp(room / static_cast<double>(std::max<std::int64_t>(wishes[at], 1)), 0.0, 1.0);
    };
    const auto even = mean(entries_);
    leaves_.assign(static_cast<std::size_t>(rows_.rows), 0xffff);
    Buffer<Proposal> sent;
    std::int64_t moved = 0;
    for (const auto& of : movers_) {
      auto chance =
          std::min(share(static_cast<double>(entries_[of.from]) - kLeast * even, 2 * parts + of.from),
                   share(kMost * even - static_cast<double>(entries_[of.to]), 3 * parts + of.to));
      if (aim_ != Aim::kCopies)
        chance = std::min({chance, share(excess(of.from), of.from), share(-excess(of.to), parts + of.to)});
      if (fraction_of(absorb(absorb(task_.seed, first_ + of.row), round_)) >= chance) continue;
      ++moved;
      changed_[of.row] = 1;
      leaves_[of.row] = of.from;
      each_entry(of, [&](auto e) { sent.push_back({rows_.indices[e], first_ + of.row, of.to}); });
    }
    // Where both ends move a pair the lower one does.
    deliver(task_, sent, [&](const Proposal& of) {
      const auto row = of.row - first_;
      changed_[row] = 1;
      auto& part = parts_[entry_at(rows_, row, of.column)];
      if (part != leaves_[row] || of.column < of.row) part = of.part;
    });
    for (const auto& of : sent) {
      const auto row = of.column - first_;
      auto& part = parts_[entry_at(rows_, row, of.row)];
      if (part == leaves_[row]) part = of.part;
    }
    return task_.world.all_reduce(moved, Reduction::kSum, kCut);
  }

  static constexpr double kLeast = 0.978, kMost = 1.022;  // of the mean of entries

  const EdgeCutTask& task_;
  const Csr<std::int64_t>& rows_;
  std::int64_t first_;
  Buffer<std::uint16_t>& parts_;                    // [entries]
  std::vector<std::vector<std::uint16_t>> of_row_;  // [rows] ascending
  std::vector<std::uint8_t> changed_;               // [rows]
  std::vector<std::int64_t> vertices_, entries_;    // [parts] of all ranks
  Buffer<std::uint16_t> leaves_;                    // [rows] the part that it moves from
  std::vector<Mover> movers_;
  Aim aim_ = Aim::kCopies;
  int round_ = 0;
  double mean_pairs_ = 0;
};

}  // namespace

std::int64_t even_out(const EdgeCutTask& task, Buffer<std::uint16_t>& parts) {
  return Evening(task, parts).run();
}

}  // namespace espalier
