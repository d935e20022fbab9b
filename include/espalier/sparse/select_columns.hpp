// A row of the product of a sparse matrix and a column selection: its entries in some columns.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "espalier/base/buffer.hpp"
#include "espalier/sparse/csr.hpp"

#if defined(__AVX512F__) && !defined(__CUDACC__)
#include <immintrin.h>
#endif

namespace espalier {

/// A list of columns, ready to be met by many rows. Beside the list stands a filter, one bit for
/// all ids that agree modulo its size: 128 to 256 bits for each column, at most 512 KiB. The bits
/// that are set, counted from the first, say which columns may be meant; a row far longer than the
/// list is searched.
template <class Index>
class ColumnSelection {
 public:
  /// `columns`: ascending, no id twice, fewer than 2^31; must stay in place while rows meet it.
  void choose(std::span<const Index> columns) {
    columns_ = columns;
    const auto bits = std::clamp(std::bit_ceil(kBitsPerColumn * columns.size()), kLeastBits, kMostBits);
    mask_ = static_cast<std::uint32_t>(bits - 1);
    filter_.assign(bits / 32, 0);
    before_.resize(bits / 32);
    const Look look = {filter_.data(), before_.data(), mask_};
    for (const auto column : columns) filter_[look.place(column) / 32] |= 1u << (look.place(column) % 32);
    std::int32_t set = 0;
    for (std::size_t word = 0; word < filter_.size(); ++word) {
      before_[word] = set;
      set += std::popcount(filter_[word]);
    }
    // Columns in the order of their bits, stably.
    begins_.assign(set + 2, 0);
    for (const auto column : columns) ++begins_[look.bit_of(column) + 2];
    for (std::int32_t bit = 0; bit < set; ++bit) begins_[bit + 2] += begins_[bit + 1];
    by_bit_.resize(columns.size());
    for (std::int32_t c = 0; c < std::ssize(columns); ++c)
      by_bit_[begins_[look.bit_of(columns[c]) + 1]++] = c;
  }

  /// Appends every pair with row.indices[k] == columns[c] to `met`: c, ascending, and to `entries`:
  /// k. The values of these entries are asked for.
  void meet(const RowView<Index>& row, Buffer<std::int32_t>& met, Buffer<std::int64_t>& entries) const {
    if (row.size > kSearchIfLonger * std::ssize(columns_)) return search(row, met, entries);
    const Look look = {filter_.data(), before_.data(), mask_};
    const Index* const columns = columns_.data();
    const std::int32_t* const begins = begins_.data();
    const std::int32_t* const by_bit = by_bit_.data();
    for (std::int64_t first = 0; first < row.size; first += kAtOnce) {
      std::int32_t passed[kAtOnce + kLanes];
      const auto count = look.filter(row.indices + first, std::min(kAtOnce, row.size - first), passed);
      const auto known = met.size(), known_entries = entries.size();
      met.resize(known + static_cast<std::size_t>(count));
      entries.resize(known_entries + static_cast<std::size_t>(count));
      std::int32_t* const to = met.data() + known;
      std::int64_t* const to_entries = entries.data() + known_entries;
      std::size_t size = 0;
      for (std::int32_t i = 0; i < count; ++i) {
        const auto k = first + passed[i];
        const auto id = row.indices[k];
        const auto bit = look.bit_of(id);
        auto c = begins[bit];
        while (c + 1 < begins[bit + 1] && columns[by_bit[c]] != id) ++c;
        to[size] = by_bit[c];
        to_entries[size] = k;
        if (row.values != nullptr) __builtin_prefetch(row.values.data() + k);
        size += static_cast<std::size_t>(columns[by_bit[c]] == id);
      }
      met.resize(known + size);
      entries.resize(known_entries + size);
    }
  }

 private:
  static constexpr std::int64_t kSearchIfLonger = 256, kAtOnce = 128;
  static constexpr int kLanes = 16;
  static constexpr std::size_t kBitsPerColumn = 128, kLeastBits = 512, kMostBits = std::size_t{1} << 22;

  /// The filter, by pointers of its own: what is written meanwhile is no part of it.
  struct Look {
    const std::uint32_t* words;
    const std::int32_t* before;
    std::uint32_t mask;

    std::uint32_t place(Index id) const { return static_cast<std::uint32_t>(id) & mask; }
    /// Which of the bits that are set is an id's, which is set.
    std::int32_t bit_of(Index id) const {
      const auto at = place(id);
      return before[at / 32] + std::popcount(words[at / 32] & ((1u << (at % 32)) - 1));
    }

    /// Which of ids [count] pass, ascending; returns how many. Writes up to kLanes behind them.
    std::int32_t filter(const Index* ids, std::int64_t count, std::int32_t* passed) const {
      std::int32_t size = 0;
      std::int32_t k = 0;
#if defined(__AVX512F__) && !defined(__CUDACC__)
      if constexpr (sizeof(Index) == 4) {
        constexpr __mmask16 kAll = 0xffff;
        const auto low_bits = _mm512_set1_epi32(static_cast<int>(mask)), one = _mm512_set1_epi32(1),
                   low = _mm512_set1_epi32(31);
        auto places = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        for (; k + kLanes <= count; k += kLanes) {
          const auto at = _mm512_and_si512(_mm512_loadu_si512(ids + k), low_bits);
          const auto met = _mm512_mask_i32gather_epi32(one, kAll, _mm512_maskz_srli_epi32(kAll, at, 5), words,
                                                       sizeof(std::uint32_t));
          const auto bits = _mm512_maskz_sllv_epi32(kAll, one, _mm512_and_si512(at, low));
          const auto pass = _mm512_test_epi32_mask(met, bits);
          _mm512_storeu_si512(passed + size, _mm512_maskz_compress_epi32(pass, places));
          size += std::popcount(static_cast<unsigned>(pass));
          places = _mm512_add_epi32(places, _mm512_set1_epi32(kLanes));
        }
      }
#endif
      for (; k < count; ++k) {
        passed[size] = k;
        const auto at = place(ids[k]);
        size += static_cast<std::int32_t>(words[at / 32] >> (at % 32) & 1);
      }
      return size;
    }
  };

  void search(const RowView<Index>& row, Buffer<std::int32_t>& met, Buffer<std::int64_t>& entries) const {
    const Index* from = row.indices;
    const Index* const end = row.indices + row.size;
    for (std::int32_t c = 0; c < std::ssize(columns_); ++c) {
      const auto column = columns_[c];
      from = std::lower_bound(from, end, column);
      if (from == end) return;
      if (*from != column) continue;
      met.push_back(c);
      entries.push_back(from - row.indices);
    }
  }

  std::span<const Index> columns_;
  std::uint32_t mask_ = 0;
  Buffer<std::uint32_t> filter_ = Buffer<std::uint32_t>(1, 0);
  Buffer<std::int32_t> before_ = Buffer<std::int32_t>(1, 0);  // each word of the filter: bits set
  Buffer<std::int32_t> begins_;  // of the columns of each bit that is set, and two behind
  Buffer<std::int32_t> by_bit_;  // columns
};

}  // namespace espalier
