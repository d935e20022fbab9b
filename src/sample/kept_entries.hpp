// Some of the entries of many rows, chosen one by one: a bit for each entry, and how many are kept
// before each word of bits. Memory: 20 bytes for every 32 entries. For .cu files only.
#pragma once

#include <cstdint>

#include "each_entry.hpp"
#include "espalier/base/device_algorithms.hpp"

namespace espalier {

/// Bit i of word words[row] + k is entry 32 k + i of the row.
struct KeptBits {
  const std::int64_t* words;   ///< [rows + 1] where the words of each row begin
  const std::uint32_t* bits;   ///< [words]
  const std::int64_t* before;  ///< [words + 1] kept in all words before, of all rows

  __device__ std::int64_t in_row(std::int64_t row) const {
    return before[words[row + 1]] - before[words[row]];
  }
};

struct KeptEntries {
  std::int64_t rows = 0, word_count = 0;
  DeviceArray<std::int64_t> words, before;
  DeviceArray<std::uint32_t> bits;

  KeptBits view() const { return {words.data(), bits.data(), before.data()}; }
};

__device__ inline int lane_of_thread() {
  return static_cast<int>(threadIdx.x) % kWarp;
}

/// Looks at size_of(row) entries of each row; keeps(row, position) says which stay. One wait.
template <class Size, class Keeps>
KeptEntries find_kept(const Cuda& cuda, std::int64_t rows, const Size& size_of, const Keeps& keeps) {
  KeptEntries kept;
  kept.rows = rows;
  kept.words.resize(rows + 1);
  {
    DeviceArray<std::int64_t> of_row(rows);
    auto* to = of_row.data();
    for_each(cuda, "words_of_rows", rows,
             [=] __device__(std::int64_t row) { to[row] = (size_of(row) + kWarp - 1) / kWarp; });
    exclusive_sum(cuda, of_row.data(), kept.words.data(), rows);
  }
  kept.word_count = download(cuda, kept.words.data() + rows, 1)[0];
  kept.bits.resize(kept.word_count);
  kept.before.resize(kept.word_count + 1);
  DeviceArray<std::int64_t> counts(kept.word_count);
  auto* to = counts.data();
  auto* bits = kept.bits.data();
  const auto* words = kept.words.data();
  for_each_entry_by_warp(cuda, "find_kept", words, rows, kept.word_count,
                         [=] __device__(std::int64_t word, std::int64_t row) {
                           const auto position = (word - words[row]) * kWarp + lane_of_thread();
                           const bool mine = position < size_of(row) && keeps(row, position);
                           const unsigned of_word = __ballot_sync(kAllLanes, mine);
                           if (lane_of_thread() != 0) return;
                           bits[word] = of_word;
                           to[word] = __popc(of_word);
                         });
  exclusive_sum(cuda, counts.data(), kept.before.data(), kept.word_count);
  return kept;
}

/// function(row, position, rank) for every kept entry: `rank` counts those of its row.
template <class Function>
void for_each_kept(const Cuda& cuda, const char* name, const KeptEntries& kept, const Function& function) {
  const auto of = kept.view();
  for_each_entry_by_warp(
      cuda, name, of.words, kept.rows, kept.word_count, [=] __device__(std::int64_t word, std::int64_t row) {
        const auto bits = of.bits[word];
        const int lane = lane_of_thread();
        if ((bits >> lane & 1u) == 0) return;
        const auto rank = of.before[word] - of.before[of.words[row]] + __popc(bits & ((1u << lane) - 1));
        function(row, (word - of.words[row]) * kWarp + lane, rank);
      });
}

}  // namespace espalier
