// GraphSAGE's draws alone, by draw_few_uniform: what is left of sampling when no vertex gets
// a local id.
#pragma once

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <vector>

#include "espalier/base/random_blocks.hpp"
#include "espalier/sample/draw.hpp"
#include "espalier/sample/draw_few.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier::bench {

/// Rows that draw with one fanout, below kFewDraws, and what they drew.
struct DrawnRows {
  std::int64_t fanout = 0;
  KeyedStream stream;                  ///< of all rows, but for the row
  std::vector<std::int64_t> vertices;  ///< [rows]
  std::vector<std::int64_t> begin;     ///< [rows + 1] the place of each row's picks
  Buffer<std::int32_t> picks;          ///< neighbour ids; a row with at most `fanout` neighbours
                                       ///< has them all

  DrawnRows(const Csr<std::int32_t>& a, std::int64_t fanout_, const KeyedStream& stream_,
            std::span<const std::int64_t> rows)
      : fanout(fanout_), stream(stream_), vertices(rows.begin(), rows.end()), begin(1, 0) {
    for (const auto v : vertices) begin.push_back(begin.back() + std::min(fanout, a.row_size(v)));
    picks.resize(static_cast<std::size_t>(begin.back()));
  }
  std::int64_t rows() const { return std::ssize(vertices); }
};

/// Random words of a window of rows, drawn together: `blocks` blocks of four for each row
/// that asks.
class WindowWords {
 public:
  static constexpr std::int64_t kWindow = 32;

  WindowWords(const KeyedStream& stream, std::int64_t fanout)
      : stream_(stream), blocks_(static_cast<std::size_t>((fanout + 3) / 4)) {
    for (auto& counters : counters_) std::ranges::fill(counters.batch, stream.batch);
  }
  void clear() { asked_ = taken_ = 0; }
  void ask(std::int64_t vertex) {
    for (std::size_t block = 0; block < blocks_; ++block, ++asked_) {
      auto& counters = counters_[asked_ / kBlocksAtOnce];
      counters.block[asked_ % kBlocksAtOnce] = block;
      counters.row[asked_ % kBlocksAtOnce] = static_cast<std::uint64_t>(vertex);
    }
  }
  void fill() {
    for (std::size_t k = 0; k * kBlocksAtOnce < asked_; ++k)
      random_blocks(stream_.key, counters_[k], words_.data() + 4 * kBlocksAtOnce * k);
  }
  /// The high halves of the words of the next row that asked.
  const std::uint32_t* take() { return words_.data() + 4 * blocks_ * taken_++; }

 private:
  static constexpr std::size_t kMostBlocks = kWindow * (kFewDraws / 4);
  KeyedStream stream_;
  std::size_t blocks_, asked_ = 0, taken_ = 0;
  std::array<BlockCounters, kMostBlocks / kBlocksAtOnce> counters_;
  alignas(64) std::array<std::uint32_t, 4 * kMostBlocks> words_;
};

/// Draws for rows first .. last-1. For a window of rows the random words are drawn, then the
/// positions of all picks, and the ids that stand there asked for; then these are read. The places
/// of later rows arrive meanwhile. So does the sampler.
inline void draw_rows(const Csr<std::int32_t>& a, DrawnRows& drawn, std::int64_t first, std::int64_t last) {
  constexpr std::int64_t kWindow = WindowWords::kWindow, kAhead = 64;
  std::array<std::array<std::int32_t, kFewDraws>, kWindow> chosen;
  WindowWords words(drawn.stream, drawn.fanout);
  const auto vertex = [&](std::int64_t r) { return drawn.vertices[static_cast<std::size_t>(r)]; };
  for (auto from = first; from < last; from += kWindow) {
    const auto end = std::min(last, from + kWindow);
    words.clear();
    for (auto r = from; r < end; ++r) {
      if (r + kAhead < last) __builtin_prefetch(a.indptr.data() + vertex(r + kAhead));
      if (a.row_size(vertex(r)) > drawn.fanout) words.ask(vertex(r));
    }
    words.fill();
    for (auto r = from; r < end; ++r) {
      const auto* ids = a.indices.data() + a.row_begin(vertex(r));
      const auto degree = a.row_size(vertex(r)), picks = std::min(degree, drawn.fanout);
      auto& here = chosen[static_cast<std::size_t>(r - from)];
      if (degree > drawn.fanout)
        draw_few_uniform(
            words.take(),
            [&](std::int64_t t) {
              return low_random32(drawn.stream.of_row(vertex(r)), static_cast<std::uint64_t>(t));
            },
            degree, picks, -1, here.data());
      else
        std::iota(here.begin(), here.end(), 0);
      for (std::int64_t k = 0; k < picks; ++k) __builtin_prefetch(ids + here[static_cast<std::size_t>(k)]);
    }
    for (auto r = from; r < end; ++r) {
      const auto i = static_cast<std::size_t>(r);
      const auto* ids = a.indices.data() + a.row_begin(vertex(r));
      for (auto k = drawn.begin[i]; k < drawn.begin[i + 1]; ++k)
        drawn.picks[static_cast<std::size_t>(k)] =
            ids[chosen[static_cast<std::size_t>(r - from)][static_cast<std::size_t>(k - drawn.begin[i])]];
    }
  }
}

/// Picks that are not those of draw_uniform, which draws one after another.
inline std::int64_t count_wrong(const Csr<std::int32_t>& a, const DrawnRows& drawn) {
  std::int64_t wrong = 0;
  std::vector<std::int64_t> chosen(static_cast<std::size_t>(drawn.fanout));
  for (std::size_t r = 0; r < drawn.vertices.size(); ++r) {
    const auto neighbours = a.row_indices(drawn.vertices[r]);
    const auto picks = drawn.begin[r + 1] - drawn.begin[r];
    draw_uniform(drawn.stream.of_row(drawn.vertices[r]), std::ssize(neighbours), picks, 0, chosen.data());
    for (std::int64_t k = 0; k < picks; ++k)
      wrong += drawn.picks[static_cast<std::size_t>(drawn.begin[r] + k)] !=
               neighbours[static_cast<std::size_t>(chosen[static_cast<std::size_t>(k)])];
  }
  return wrong;
}

}  // namespace espalier::bench
