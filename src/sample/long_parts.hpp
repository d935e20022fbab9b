// The parts of a row that are longer than their relations' fanouts, found for all relations at
// once: what else there is of the row is taken as it stands.
//
//     lane r     ends[r] = columns below the end of relation r, size[r] = ends[r] - ends[r-1]
//     a column   is compared with the ends of all relations: two instructions for sixteen of them
//     the row    has a bit for each lane whose size is above the fanout
//
// No branch depends on a column. Parts of long rows, or of many relations, are walked along.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "node_wise.hpp"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace espalier {

/// Bit k: is lane k of a comparison true?
template <class Lanes>
std::uint32_t bits_of(const Lanes& truth) {
#if defined(__AVX512F__)
  if constexpr (sizeof truth == 64) return _mm512_cmpneq_epi32_mask((__m512i)truth, _mm512_setzero_si512());
#endif
  std::uint32_t bits = 0;
  for (int k = 0; k < 16; ++k) bits |= static_cast<std::uint32_t>(truth[k] != 0) << k;
  return bits;
}

/// The place after the last entry of [begin, size) whose column lies before `end`. Columns are
/// compared sixteen at a time, without branches; what is left of a long part is searched.
template <class Index>
std::int64_t end_of_part(const RowView<Index>& row, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kTogether = 16, kMost = 4 * kTogether;
  const auto bound = static_cast<Index>(end);
  const auto last = std::min(row.size, begin + kMost);
  auto at = begin;
  for (; at + kTogether <= last; at += kTogether) {
    Index before = 0;
    for (std::int64_t k = 0; k < kTogether; ++k) before += row.indices[at + k] < bound;
    if (before < kTogether) return at + before;
  }
  while (at < last && row.indices[at] < bound) ++at;
  if (at < last || last == row.size) return at;
  return std::lower_bound(row.indices + at, row.indices + row.size, bound) - row.indices;
}

/// Calls use(relation, begin, end) for each part of a row.
template <class Index, class Use>
void for_each_part(const ColumnsOf& columns, const RowView<Index>& row, const Use& use) {
  int relation = 0;
  for (std::int64_t begin = 0; begin < row.size;) {
    while (columns.begins[relation + 1] <= row.indices[begin]) ++relation;
    const auto end = end_of_part(row, begin, columns.begins[relation + 1]);
    use(relation, begin, end);
    begin = end;
  }
}

template <class Index>
class LongParts {
 public:
  LongParts(const LayerDraw& layer, const ColumnsOf& columns) : layer_(layer), columns_(columns) {
    if (columns.relations > kMostLanes) return;
    for (int r = 0; r < columns.relations; ++r) {
      bounds_[r / 16][r % 16] = static_cast<Index>(columns.begins[r + 1]);
      fanouts_[r / 16][r % 16] = static_cast<Index>(most(layer.fanout_of({0, 0, r})));
    }
  }

  /// Calls use(relation, begin, end, fanout) for each part of the row longer than its fanout.
  template <class Use>
  void for_each(const RowView<Index>& row, const Use& use) const {
    if (columns_.relations <= 16 && row.size <= kMostEntries)
      by_lanes<false>(row, use);
    else if (columns_.relations <= kMostLanes && row.size <= kMostEntries / 2)
      by_lanes<true>(row, use);
    else
      for_each_part(columns_, row, [&](int relation, std::int64_t begin, std::int64_t end) {
        const auto fanout = layer_.fanout_of({0, 0, relation});
        if (end - begin > most(fanout)) use(relation, begin, end, fanout);
      });
  }

 private:
  typedef Index Lanes __attribute__((vector_size(16 * sizeof(Index))));
  static constexpr int kMostLanes = 32;
  static constexpr std::int64_t kMostEntries = 256;

  static std::int64_t most(std::int64_t fanout) {
    return fanout < 0 ? std::numeric_limits<Index>::max()
                      : std::min<std::int64_t>(fanout, std::numeric_limits<Index>::max());
  }

  template <bool kSecond, class Use>
  void by_lanes(const RowView<Index>& row, const Use& use) const {
    Lanes first = {}, second = {};
    for (std::int64_t k = 0; k < row.size; ++k) {
      first -= row.indices[k] < bounds_[0];
      if (kSecond) second -= row.indices[k] < bounds_[1];
    }
    Lanes before;
    left_neighbours(Lanes{}, first, before);
    auto is_long = bits_of(first - before > fanouts_[0]);
    left_neighbours(first, second, before);
    if (kSecond) is_long |= bits_of(second - before > fanouts_[1]) << 16;
    if (is_long == 0) return;
    alignas(64) Index ends[1 + kMostLanes];
    ends[0] = 0;
    __builtin_memcpy(ends + 1, &first, sizeof first);
    if (kSecond) __builtin_memcpy(ends + 17, &second, sizeof second);
    for (; is_long != 0; is_long &= is_long - 1) {
      const int relation = std::countr_zero(is_long);
      use(relation, static_cast<std::int64_t>(ends[relation]), static_cast<std::int64_t>(ends[relation + 1]),
          layer_.fanout_of({0, 0, relation}));
    }
  }
  // Of lanes that stand to the right of others.
  static void left_neighbours(const Lanes& others, const Lanes& lanes, Lanes& neighbours) {
    neighbours = __builtin_shufflevector(others, lanes, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27,
                                         28, 29, 30);
  }

  LayerDraw layer_;
  ColumnsOf columns_;
  // Of lanes beyond the relations nothing lies below the end, so their sizes are 0 or less.
  Lanes bounds_[2] = {}, fanouts_[2] = {};
};

}  // namespace espalier
