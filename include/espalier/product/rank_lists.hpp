// Where the entries of pieces of rows stand in their whole rows: ascending lists in the form of
// Elias and Fano, 2 + log2(entries of the row / those of the piece) bits an entry (Vigna 2013,
// "Quasi-succinct indices").
//
// Of a list of n numbers below u, with l = floor(log2(u / n)): l low bits of each, one after
// another; then the high parts in unary: for each value of them a 1 for each number that has it,
// and a 0 behind.
#pragma once

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
        at_(begin + numbers * width_),
        n_(numbers) {}

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
  /// Bits of a list.
  static std::int64_t size(std::int64_t numbers, std::int64_t below) {
    const int width = low_bits(numbers, below);
    return numbers == 0 ? 0 : numbers * width + numbers + (below >> width) + 1;
  }

 private:
  // To the first number whose high part is `high` or more; numbers below are passed.
  void skip_to(std::int64_t high) {
    while (high_ < high) {
      const auto word = read(at_, 64);
      const auto ones = std::popcount(word);
      if (high_ + 64 - ones < high) {
        high_ += 64 - ones;
        k_ += ones;
        at_ += 64;
        continue;
      }
      for (auto rest = word; high_ < high; rest >>= 1, ++at_) (rest & 1) != 0 ? ++k_ : ++high_;
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
  std::int64_t at_ = 0, n_ = 0, k_ = 0, high_ = 0;
};

/// Lists one behind another.
class RankLists {
 public:
  /// `numbers` ascend and are below `below`.
  template <class Numbers>
  void add(const Numbers& numbers, std::int64_t below) {
    const auto begin = size_, count = static_cast<std::int64_t>(std::size(numbers));
    const int width = RankCursor::low_bits(count, below);
    size_ += RankCursor::size(count, below);
    bits_.resize(size_ / 64 + 2, 0);
    std::int64_t k = 0;
    const auto high_begin = begin + count * width;
    for (const std::int64_t number : numbers) {
      for (int bit = 0; bit < width; ++bit)
        if ((number >> bit & 1) != 0) set(begin + k * width + bit);
      set(high_begin + (number >> width) + k++);
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
