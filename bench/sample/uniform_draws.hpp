// GraphSAGE's draws alone, by draw_uniform: what is left of sampling when no vertex gets a local id.
#pragma once

#include <vector>

#include "espalier/base/execution.hpp"
#include "espalier/sample/draw.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier::bench {

/// Rows that draw with one fanout, and what they drew.
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
};

/// Positions first, for a chunk of rows, then the ids that stand there: the reads depend on nothing loaded
/// between them, so the processor overlaps them.
inline void draw_rows(const Cpu& cpu, const Csr<std::int32_t>& a, DrawnRows& drawn) {
  constexpr std::int64_t kChunk = 256;
  const auto rows = std::ssize(drawn.vertices);
#pragma omp parallel num_threads(cpu.threads)
  {
    std::vector<std::int64_t> places(static_cast<std::size_t>(kChunk * drawn.fanout));
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t first = 0; first < rows; first += kChunk) {
      const auto last = std::min(rows, first + kChunk);
      auto* place = places.data();
      for (auto r = first; r < last; ++r) {
        const auto vertex = drawn.vertices[static_cast<std::size_t>(r)];
        const auto start = a.row_begin(vertex), degree = a.row_size(vertex);
        const auto count = std::min(degree, drawn.fanout);
        if (degree > drawn.fanout) {
          RandomStream stream = drawn.stream;
          stream.row = static_cast<std::uint64_t>(vertex);
          draw_uniform(stream, degree, count, 0, place);
          for (std::int64_t k = 0; k < count; ++k) place[k] += start;
        } else {
          for (std::int64_t k = 0; k < count; ++k) place[k] = start + k;
        }
        place += count;
      }
      auto* pick = drawn.picks.data() + drawn.begin[static_cast<std::size_t>(first)];
      for (const auto* from = places.data(); from < place; ++from)
        *pick++ = a.indices[static_cast<std::size_t>(*from)];
    }
  }
}

/// The law of a row: its picks ascend strictly, and each is a neighbour.
inline std::int64_t count_wrong(const Csr<std::int32_t>& a, const DrawnRows& drawn) {
  std::int64_t wrong = 0;
  for (std::size_t r = 0; r < drawn.vertices.size(); ++r) {
    const auto neighbours = a.row_indices(drawn.vertices[r]);
    for (auto k = drawn.begin[r]; k < drawn.begin[r + 1]; ++k) {
      const auto pick = drawn.picks[static_cast<std::size_t>(k)];
      wrong += !std::binary_search(neighbours.begin(), neighbours.end(), pick);
      wrong += k > drawn.begin[r] && pick <= drawn.picks[static_cast<std::size_t>(k - 1)];
    }
  }
  return wrong;
}

}  // namespace espalier::bench
