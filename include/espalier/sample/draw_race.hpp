// SAMPLE of one row by an exponential race (Efraimidis and Spirakis 2006, algorithm A-ES, whose key
// u^(1/w) is here its logarithm): s draws without replacement that need no sum over the row.
//
//     entry u of row v     arrives at E_u / w_u, E_u = -log2 of a word that is for (v, u) alone
//     draw j               the j-th to arrive
//
// E_u / w_u is exponential of rate w_u, so the first of any entries is each with probability w over
// their sum, and so on without it: the law of draw_weighted, by other picks. A row's first s are
// among the first s of each of its parts, however it is cut; who merges needs of an entry its
// neighbour and its weight. Arrivals are compared in integers, E_a w_b < E_b w_a.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "espalier/base/elementary.hpp"
#include "espalier/base/philox.hpp"
#include "espalier/base/random_blocks.hpp"

namespace espalier {

// Exponential deviates in integers: E = -log2(U), the same bits on every processor, GPUs too.
//
//     U = x / 2^64         x = word | 1 = 2^(63 - z) m, 1 <= m < 2, z zeros before its first one
//     E = z + 1 - log2 m   m = (1 + i / 256) (1 + r), i the eight bits after that one
//
// with a table of log2(1 + i / 256) and seven terms of the series of log2(1 + r), r < 2^-8. E never
// ascends with x: within an i both r and the sum of the series rise by far more than roundings, and
// tests go over all borders between them.

/// 1 / (1 + i / 256) and log2(1 + i / 256), of 2^64.
struct BinaryLogs {
  std::uint64_t inverse[256], log2[256];
};

/// From integers alone: log2 c is the quotient of two series of atanh((c - 1) / (c + 1)).
ESPALIER_HD constexpr BinaryLogs make_binary_logs() {
  __extension__ using Wide = unsigned __int128;
  const auto atanh = [](std::uint64_t i) {  // for c = 1 + i / 256, of 2^100
    const std::uint64_t over = 512 + i;
    Wide sum = 0, term = (Wide{i} << 100) / over;
    for (std::uint64_t n = 1; term > 0; n += 2, term = term * (i * i) / (over * over)) sum += term / n;
    return sum;
  };
  BinaryLogs logs = {};
  const auto of_two = atanh(256);
  for (std::uint64_t i = 0; i < 256; ++i) {
    logs.inverse[i] = i == 0 ? ~std::uint64_t{0} : static_cast<std::uint64_t>((Wide{256} << 64) / (256 + i));
    auto rest = atanh(i);
    for (int bit = 0; bit < 64; ++bit) {
      rest *= 2;
      logs.log2[i] = 2 * logs.log2[i] + (rest >= of_two);
      rest -= rest >= of_two ? of_two : 0;
    }
  }
  return logs;
}

/// Zeros before the first one of x > 0.
ESPALIER_HD inline int leading_zeros(std::uint64_t x) {
#if defined(__CUDA_ARCH__)
  return __clzll(static_cast<long long>(x));
#else
  return __builtin_clzll(x);
#endif
}

/// E of a random word, times 2^57: from 2 to 2^63 + 1, 0.99 to 2.02 above -log2(U).
/// It does not ascend with the word.
ESPALIER_HD inline std::uint64_t exponential(std::uint64_t word) {
  static constexpr BinaryLogs kLogs = make_binary_logs();
  constexpr std::uint64_t kLog2E = 0xB8AA3B295C17F0BBu;  // of 2^63
  const int zeros = leading_zeros(word | 1);
  const auto m = (word | 1) << zeros, i = m >> 55 & 255;  // of 2^63
  const auto r = mulhi(m << 9, kLogs.inverse[i]);         // of 2^72
  auto series = kLog2E / 7;                               // of 2^63
  for (std::uint64_t k = 6; k > 0; --k) series = kLog2E / k - (mulhi(r, series) >> 8);
  const auto log2 = kLogs.log2[i] + (mulhi(r, series) >> 7);  // of 2^64
  return (static_cast<std::uint64_t>(zeros + 1) << 57) + 1 - (log2 >> 7);
}

/// An entry that takes part.
struct Runner {
  std::uint64_t exponential, weight;  ///< of exponential(); weight > 0
  std::int64_t place;                 ///< ascends with the neighbours of the row, or is
                                      ///< the neighbour
};

/// What is left of an entry that is among the first: who it is, and its weight.
struct Candidate {
  std::int64_t place;
  std::uint64_t weight;
};

/// Does `a` arrive before `b`?
ESPALIER_HD inline bool is_ahead(const Runner& a, const Runner& b) {
  const auto high_a = mulhi(a.exponential, b.weight), high_b = mulhi(b.exponential, a.weight),
             low_a = a.exponential * b.weight, low_b = b.exponential * a.weight;
  if (high_a != high_b) return high_a < high_b;
  return low_a != low_b ? low_a < low_b : a.place < b.place;
}

// The word of entry u of row v of a stream of Purpose::kRace is words 0 << 32 | 1 of the block
// (v low, u low, high 16 bits of v << 16 | of u, batch). Another generator is another word here and
// in RaceWords.

/// Rows and columns of a race lie below it.
inline constexpr std::int64_t kMostRaceColumns = std::int64_t{1} << 48;

ESPALIER_HD inline std::uint64_t race_word(const KeyedStream& row, std::int64_t neighbour) {
  const auto u = static_cast<std::uint64_t>(neighbour);
  const auto block = philox_block(row.key, static_cast<std::uint32_t>(row.row), static_cast<std::uint32_t>(u),
                                  static_cast<std::uint32_t>(row.row >> 32 << 16 | u >> 32), row.batch);
  return std::uint64_t{block.v[0]} << 32 | block.v[1];
}

/// The same of several entries of a row together.
class RaceWords {
 public:
  RaceWords() = default;
  explicit RaceWords(const KeyedStream& row) : row_(row) { std::ranges::fill(counters_.block, row.batch); }
  /// words[k] = race_word(row, neighbours[k]) for k < count <= kBlocksAtOnce.
  template <class Index>
  void draw(const Index* neighbours, std::int64_t count, std::uint64_t* words) {
    const auto of_row = row_.row & 0xffffffffu, high = row_.row >> 32 << 16;
    for (std::int64_t k = 0; k < count; ++k) {
      const auto u = static_cast<std::uint64_t>(neighbours[k]);
      counters_.row[k] = u << 32 | of_row;
      counters_.batch[k] = high | u >> 32;
    }
    std::uint32_t blocks[4 * kBlocksAtOnce];
    random_blocks(row_.key, counters_, blocks);
    for (int k = 0; k < kBlocksAtOnce; ++k) words[k] = std::uint64_t{blocks[4 * k]} << 32 | blocks[4 * k + 1];
  }

 private:
  KeyedStream row_;
  BlockCounters counters_;
};

/// exponential(word) 2^-57 within 2^-39, in operations that compilers make vectors of: with m = 2^e
/// t the number, log2 t = 1/2 + 2 / ln 2 artanh((t - sqrt 2) / (t + sqrt 2)), 1 <= t < 2.
inline double near_exponential(std::uint64_t word) {
  constexpr double kRoot = 1.4142135623730951, kTwoLog2E = 2.8853900817779268;
  const auto bits = bit_cast<std::uint64_t>(static_cast<double>(word | 1));
  const auto t = bit_cast<double>((bits & ((std::uint64_t{1} << 52) - 1)) | std::uint64_t{1023} << 52);
  const double r = (t - kRoot) / (t + kRoot), q = r * r;
  const double series = horner(q, 1.0, 1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13);
  return (static_cast<double>(1023 + 64) - static_cast<double>(bits >> 52) - 0.5) - kTwoLog2E * r * series;
}

/// The first s of the entries of a row, in any order and any number of parts. Arrivals are in
/// float64 beside bounds of what they are off by; only where these cannot tell is_ahead is asked.
class Race {
 public:
  /// For the row of a stream of Purpose::kRace; s >= 0. A race that was run starts anew.
  void start(const KeyedStream& row, std::int64_t s) {
    words_ = RaceWords(row);
    s_ = static_cast<std::size_t>(s);
    first_.clear();
    latest_ = std::numeric_limits<double>::infinity();
  }

  /// `count` entries: weight_of(k), 0: it takes no part; place_of(k) as in Runner.
  template <class Index, class Weight, class Place>
  void enter(const Index* neighbours, std::int64_t count, const Weight& weight_of, const Place& place_of) {
    for (std::int64_t begin = 0; begin < count; begin += kBlocksAtOnce) {
      const auto here = std::min<std::int64_t>(kBlocksAtOnce, count - begin);
      std::uint64_t words[kBlocksAtOnce], weights[kBlocksAtOnce] = {};
      double earliest[kBlocksAtOnce], latest[kBlocksAtOnce];
      words_.draw(neighbours + begin, here, words);
      for (std::int64_t i = 0; i < here; ++i) weights[i] = weight_of(begin + i);
      for (int i = 0; i < kBlocksAtOnce; ++i) {
        const double time = near_exponential(words[i]), slowness = 1 / static_cast<double>(weights[i]);
        earliest[i] = (time - 0x1p-38) * slowness;  // no number for a weight of 0
        latest[i] = (time + 0x1p-38) * slowness;
      }
      if (first_.size() > 2 * s_ + kFew) keep_first();
      // Who may be among the first is noted without a branch, which nothing could predict.
      std::int64_t found[kBlocksAtOnce], found_count = 0;
      for (std::int64_t i = 0; i < here; ++i) {
        found[found_count] = i;
        found_count += (weights[i] > 0) & (earliest[i] <= latest_);
      }
      for (std::int64_t k = 0; k < found_count; ++k) {
        const auto i = found[k];
        first_.push_back({earliest[i], latest[i], words[i], weights[i], place_of(begin + i)});
      }
    }
  }

  /// Those first s of who entered until now, or all of positive weight, as they arrive.
  const std::vector<Candidate>& arrivals() {
    keep_first();
    arrivals_.clear();
    for (const auto& entrant : first_) arrivals_.push_back({entrant.place, entrant.weight});
    return arrivals_;
  }

 private:
  struct Entrant {
    double earliest, latest;
    std::uint64_t word, weight;
    std::int64_t place;
    Runner runner() const { return {exponential(word), weight, place}; }
  };
  static constexpr std::size_t kFew = 32, kMost = 128;

  // Leaves the first s, as they arrive.
  void keep_first() {
    if (!sort_by_times())
      std::ranges::sort(first_,
                        [](const auto& a, const auto& b) { return is_ahead(a.runner(), b.runner()); });
    if (first_.size() < s_) return;
    first_.resize(s_);
    latest_ = s_ > 0 ? first_.back().latest : -1;
  }

  // Was that enough? A few by counting who is before each, without a branch.
  bool sort_by_times() {
    const auto size = first_.size();
    if (size == 0) return true;
    if (size <= kMost) {
      std::size_t ranks = 0;
      double times[kMost];
      std::ranges::fill(times, std::numeric_limits<double>::infinity());
      for (std::size_t k = 0; k < size; ++k) times[k] = first_[k].earliest;
      const auto last = (size + 15) / 16 * 16;
      sorted_.resize(size);
      for (std::size_t k = 0; k < size; ++k) {
        std::size_t rank = 0;
        for (std::size_t j = 0; j < last; ++j) rank += times[j] < times[k];
        sorted_[rank] = first_[k];
        ranks += rank;
      }
      if (2 * ranks != size * (size - 1)) return false;  // two of one rank
      std::swap(first_, sorted_);
    } else {
      std::ranges::sort(first_, {}, &Entrant::earliest);
    }
    double latest = -1;
    bool sure = true;
    for (const auto& entrant : first_) {
      sure &= latest < entrant.earliest;
      latest = std::max(latest, entrant.latest);
    }
    return sure;
  }

  RaceWords words_;
  std::size_t s_ = 0;
  std::vector<Entrant> first_, sorted_;
  std::vector<Candidate> arrivals_;
  double latest_ = 0;  // who arrives later is none of them
};

}  // namespace espalier
