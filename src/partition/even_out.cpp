#include <algorithm>
#include <utility>
#include <vector>

#include "cut_by.hpp"
#include "proposals.hpp"

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

  // Collective, as all of these.
  void run() {
    constexpr int kRounds = 24, kIdle = 4;
    look();
    for (int round = 0, idle = 0; round < kRounds && idle < kIdle; ++round) {
      by_pairs_ = round % 2 == 1;
      round_ = round;
      find_targets();
      idle = move() > 0 ? 0 : idle + 1;
      look();
    }
  }

 private:
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
    mean_degree_ = mean(entries_) / mean(vertices_);
  }

  const std::vector<std::int64_t>& load() const { return by_pairs_ ? entries_ : vertices_; }
  static double mean(const std::vector<std::int64_t>& of) {
    double all = 0;
    for (const auto one : of) all += static_cast<double>(one);
    return all / static_cast<double>(of.size());
  }
  double excess(int part) const { return static_cast<double>(load()[part]) - mean(load()); }
  std::int64_t weight(std::int64_t row) const { return by_pairs_ ? 2 * rows_.row_size(row) : 1; }

  struct Question {
    std::int64_t row, asker;
  };
  struct Answer {
    std::int64_t row;  // the asker
    std::uint64_t parts;
  };
  struct Mover {
    std::int64_t row;
    std::uint16_t from, to;
  };

  // Of vertices that one part, which has too much, has alone: of the parts that have all their
  // neighbours, and too little, the one with least. 64 parts at a time.
  void find_targets() {
    constexpr double kMostNeighbours = 256;
    movers_.clear();
    std::vector<std::int64_t> place(static_cast<std::size_t>(rows_.rows), -1);
    Buffer<Question> asked;
    const auto average = mean(load());
    for (std::int64_t v = 0; v < rows_.rows; ++v) {
      const auto degree = static_cast<double>(rows_.row_size(v));
      if (of_row_[v].size() != 1 || degree > kMostNeighbours) continue;
      if (by_pairs_ ? degree < mean_degree_ / 2 : degree > mean_degree_ / 4) continue;
      const auto from = of_row_[v][0];
      if (static_cast<double>(load()[from]) <= average) continue;
      place[v] = std::ssize(movers_);
      movers_.push_back({v, from, from});
      for (const auto u : rows_.row_indices(v)) asked.push_back({u, first_ + v});
    }
    for (int begin = 0; begin < task_.parts; begin += 64) {
      std::vector<std::uint64_t> all(movers_.size(), ~std::uint64_t{0});
      Buffer<Answer> answers;
      deliver(task_, asked, [&](const Question& of) {
        std::uint64_t word = 0;
        for (const int part : of_row_[of.row - first_])
          if (part >= begin && part < begin + 64) word |= std::uint64_t{1} << (part - begin);
        answers.push_back({of.asker, word});
      });
      deliver(task_, answers, [&](const Answer& of) { all[place[of.row - first_]] &= of.parts; });
      for (std::size_t k = 0; k < movers_.size(); ++k)
        for (auto word = all[k]; word != 0; word &= word - 1) {
          const auto part = static_cast<std::uint16_t>(begin + __builtin_ctzll(word));
          auto& to = movers_[k].to;
          if (static_cast<double>(load()[part]) < average && load()[part] < load()[to]) to = part;
        }
    }
    std::erase_if(movers_, [](const Mover& of) { return of.from == of.to; });
  }

  // So many of those that would go that no part gets more, or keeps less, than the mean.
  std::int64_t move() {
    const auto parts = static_cast<std::size_t>(task_.parts);
    std::vector<std::int64_t> wishes(4 * parts, 0);  // of the load: out, in; of entries: out, in
    for (const auto& of : movers_) {
      const auto entries = 2 * rows_.row_size(of.row);
      wishes[of.from] += weight(of.row);
      wishes[parts + of.to] += weight(of.row);
      wishes[2 * parts + of.from] += entries;
      wishes[3 * parts + of.to] += entries;
    }
    task_.world.all_reduce(std::span(wishes), Reduction::kSum, kCut);
    const auto share = [&](double room, std::size_t at) {
      return std::clamp(room / static_cast<double>(std::max<std::int64_t>(wishes[at], 1)), 0.0, 1.0);
    };
    const auto even = mean(entries_);
    Buffer<Proposal> sent;
    std::int64_t moved = 0;
    for (const auto& of : movers_) {
      const double chance =
          std::min({share(excess(of.from), of.from), share(-excess(of.to), parts + of.to),
                    share(static_cast<double>(entries_[of.from]) - kLeast * even, 2 * parts + of.from),
                    share(kMost * even - static_cast<double>(entries_[of.to]), 3 * parts + of.to)});
      if (fraction_of(absorb(absorb(task_.seed, first_ + of.row), round_)) >= chance) continue;
      ++moved;
      changed_[of.row] = 1;
      for (auto e = rows_.row_begin(of.row); e < rows_.row_end(of.row); ++e) {
        parts_[e] = of.to;
        sent.push_back({rows_.indices[e], first_ + of.row, of.to});
      }
    }
    deliver(task_, sent, [&](const Proposal& of) {
      const auto row = of.row - first_;
      parts_[entry_at(rows_, row, of.column)] = of.part;
      changed_[row] = 1;
    });
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
  std::vector<Mover> movers_;
  bool by_pairs_ = false;
  int round_ = 0;
  double mean_degree_ = 0;
};

}  // namespace

void even_out(const EdgeCutTask& task, Buffer<std::uint16_t>& parts) {
  Evening(task, parts).run();
}

}  // namespace espalier
