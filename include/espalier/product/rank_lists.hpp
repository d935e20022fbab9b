// Where the entries of pieces of rows stand in their whole rows: ascending lists in the form of
// Elias and Fano, 2 + log2(entries of the row / those of the piece) bits an entry (Vigna 2013,
// "Quasi-succinct indices").
//
// Of a list of n numbers below u, with l = floor(log2(u / n)): l low bits of each, one after
// another; then the high parts in unary: for each value of them a 1 for each number that has it,
// and a 0 behind; then, of a long list, how many 0s stand before each 1024th of these bits.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "espalier/base/buffer.hpp"

namespace espalier {

/// Looks numbers up in one list. They are asked for in ascending order.
class RankCursor {
 public:
  RankCursor() = default;
  RankCursor(const std::uint64_t* bits, std::int64_t begin, std::int64_t numbers, std::int64_t below)
      : bits_(bits),
        low_(begin),
        width_(low_bits(numbers, below)),
        n_(numbers),
        high_begin_(begin + numbers * width_),
        steps_(steps(numbers, below)),
        first_step_((high_begin_ + high_bits(numbers, below) + 63) / 64),
        at_(high_begin_) {}

  /// The place of a number in the list, or -1.
  std::int64_t find(std::int64_t number) {
    if (n_ == 0) return -1;
    const auto high = number >> width_;
    skip_to(high);
    const auto low = static_cast<std::uint64_t>(number) & ((std::uint64_t{1} << width_) - 1);
    for (; k_ < n_ && read(at_, 1) != 0; ++k_, ++at_) {
      const auto other = read(low_ + k_ * width_, width_);
      if (other == low) return k_;
      if (other > low) break;
    }
    return -1;
  }

  /// l of a list.
  static int low_bits(std::int64_t numbers, std::int64_t below) {
    return numbers == 0 ? 0 : std::bit_width(static_cast<std::uint64_t>(below / numbers)) - 1;
  }
  static std::int64_t high_bits(std::int64_t numbers, std::int64_t below) {
    return numbers + (below >> low_bits(numbers, below)) + 1;
  }
  /// Of how many bits of the high parts it is said how many 0s are before them.
  static std::int64_t steps(std::int64_t numbers, std::int64_t below) {
    return numbers == 0 ? 0 : (high_bits(numbers, below) - 1) / kStep;
  }
  static constexpr std::int64_t kStep = 1024;

 private:
  // To the first number whose high part is `high` or more; numbers below are passed.
  void skip_to(std::int64_t high) {
    if (high_ + kStep < high && steps_ > 0) {
      const auto* const first = bits_ + first_step_;
      const auto* const step = std::lower_bound(first, first + steps_, static_cast<std::uint64_t>(high));
      const auto bits = (step - first) * kStep;  // the last step before which less 0s stand
      if (bits > at_ - high_begin_) {
        high_ = static_cast<std::int64_t>(*(step - 1));
        k_ = bits - high_;
        at_ = high_begin_ + bits;
      }
    }
    while (high_ < high) {
      const auto word = read(at_, 64);
      const auto ones = std::popcount(word);
      if (high_ + 64 - ones < high) {
        high_ += 64 - ones;
        k_ += ones;
        at_ += 64;
        continue;
      }
      auto zeros = ~word;
      for (const auto last = high - 1; high_ < last; ++high_) zeros &= zeros - 1;
      const auto passed = std::countr_zero(zeros) + 1;
      k_ += passed - std::popcount(~word & (~std::uint64_t{0} >> (64 - passed)));
      at_ += passed;
      ++high_;
    }
  }

  // `count` bits from bit `at` on; 0 for none. A word lies behind the last.
  std::uint64_t read(std::int64_t at, int count) const {
    if (count == 0) return 0;
    const auto word = at / 64, shift = at % 64;
    auto bits = bits_[word] >> shift;
    if (shift > 0) bits |= bits_[word + 1] << (64 - shift);
    return count == 64 ? bits : bits & ((std::uint64_t{1} << count) - 1);
  }

  const std::uint64_t* bits_ = nullptr;
  std::int64_t low_ = 0;
  int width_ = 0;
  std::int64_t n_ = 0, high_begin_ = 0, steps_ = 0, first_step_ = 0;
  // A place among the high bits, and how many 1s and 0s are before it.
  std::int64_t at_ = 0, k_ = 0, high_ = 0;
};

/// Lists one behind another.
class RankLists {
 public:
  /// `numbers` ascend and are below `below`.
  template <class Numbers>
  void add(const Numbers& numbers, std::int64_t below) {
    const auto begin = size_, count = static_cast<std::int64_t>(std::size(numbers));
    if (count == 0) return;
    const int width = RankCursor::low_bits(count, below);
    const auto high_begin = begin + count * width, high = RankCursor::high_bits(count, below),
               steps = RankCursor::steps(count, below);
    size_ = high_begin + high;
    if (steps > 0) size_ = (size_ + 63) / 64 * 64 + 64 * steps;
    bits_.resize(size_ / 64 + 2, 0);
    std::int64_t k = 0;
    for (const std::int64_t number : numbers) {
      for (int bit = 0; bit < width; ++bit)
        if ((number >> bit & 1) != 0) set(begin + k * width + bit);
      set(high_begin + (number >> width) + k++);
    }
    std::int64_t zeros = 0;
    for (std::int64_t at = 0; at < steps * RankCursor::kStep; ++at) {
      zeros += (bits_[(high_begin + at) / 64] >> ((high_begin + at) % 64) & 1) == 0;
      if ((at + 1) % RankCursor::kStep == 0)
        bits_[size_ / 64 - steps + at / RankCursor::kStep] = static_cast<std::uint64_t>(zeros);
    }
  }
  /// Bits of all lists: where the next one begins.
  std::int64_t size() const { return size_; }
  const std::uint64_t* bits() const { return bits_.data(); }
  std::int64_t bytes() const { return 8 * static_cast<std::int64_t>(bits_.size()); }

 private:
  void set(std::int64_t at) { bits_[at / 64] |= std::uint64_t{1} << at % 64; }

  Buffer<std::uint64_t> bits_;
  std::int64_t size_ = 0;
};

}  // namespace espalier
