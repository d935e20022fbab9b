// GraphSAGE's draws alone, by draw_few_uniform: what is left of sampling when no vertex gets a local id.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "espalier/sample/draw.hpp"
#include "espalier/sample/draw_few.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier::bench {

/// Rows that draw with one fanout, below kFewDraws, and what they drew.
struct DrawnRows {
  std::int64_t fanout = 0;
  RandomStream stream;                 ///< of all rows, but for the row
  std::vector<std::int64_t> vertices;  ///< [rows]
  std::vector<std::int64_t> begin;     ///< [rows + 1] the place of each row's picks
  Buffer<std::int32_t> picks;          ///< neighbour ids; a row with at most `fanout` neighbours has them all

  DrawnRows(const Csr<std::int32_t>& a, std::int64_t fanout_, const RandomStream& stream_,
            std::span<const std::int64_t> rows)
      : fanout(fanout_), stream(stream_), vertices(rows.begin(), rows.end()), begin(1, 0) {
    for (const auto v : vertices) begin.push_back(begin.back() + std::min(fanout, a.row_size(v)));
    picks.resize(static_cast<std::size_t>(begin.back()));
  }
  std::int64_t rows() const { return std::ssize(vertices); }
};

/// Draws for rows first .. last-1. For a window of rows the positions of all picks are drawn and the ids that stand
/// there asked for, then these are read, while the places of later rows arrive, as the sampler does it.
inline void draw_rows(const Csr<std::int32_t>& a, DrawnRows& drawn, std::int64_t first, std::int64_t last) {
  constexpr std::int64_t kWindow = 32, kAhead = 64;
  std::array<std::array<std::int32_t, kFewDraws>, kWindow> chosen;
  RandomStream stream = drawn.stream;
  for (auto from = first; from < last; from += kWindow) {
    const auto end = std::min(last, from + kWindow);
    for (auto r = from; r < end; ++r) {
      const auto vertex = drawn.vertices[static_cast<std::size_t>(r)];
      if (r + kAhead < last)
        __builtin_prefetch(a.indptr.data() + drawn.vertices[static_cast<std::size_t>(r + kAhead)]);
      const auto* ids = a.indices.data() + a.row_begin(vertex);
      const auto degree = a.row_size(vertex), picks = std::min(degree, drawn.fanout);
      auto& here = chosen[static_cast<std::size_t>(r - from)];
      for (std::int32_t k = 0; k < kFewDraws; ++k) here[static_cast<std::size_t>(k)] = k;
      stream.row = static_cast<std::uint64_t>(vertex);
      if (degree > picks) draw_few_uniform(stream, degree, picks, -1, here.data());
      for (std::int64_t k = 0; k < picks; ++k) __builtin_prefetch(ids + here[static_cast<std::size_t>(k)]);
    }
    for (auto r = from; r < end; ++r) {
      const auto i = static_cast<std::size_t>(r);
      const auto* ids = a.indices.data() + a.row_begin(drawn.vertices[i]);
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
    RandomStream stream = drawn.stream;
    stream.row = static_cast<std::uint64_t>(drawn.vertices[r]);
    draw_uniform(stream, std::ssize(neighbours), picks, 0, chosen.data());
    for (std::int64_t k = 0; k < picks; ++k)
      wrong += drawn.picks[static_cast<std::size_t>(drawn.begin[r] + k)] !=
               neighbours[static_cast<std::size_t>(chosen[static_cast<std::size_t>(k)])];
  }
  return wrong;
}

}  // namespace espalier::bench
