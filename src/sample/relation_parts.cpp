// A fanout for each relation, on a CPU: a row is cut where the relation of its entries changes,
// each part is drawn from as a row of its own, and the picks stand together again.
#include "node_wise.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "long_parts.hpp"

#if defined(__AVX512F__) && defined(__BMI2__)
#include <immintrin.h>
#define ESPALIER_MASKED_STORES 1
#else
#define ESPALIER_MASKED_STORES 0
#endif

namespace espalier {

// Copies and fills of a few numbers, mostly sixteen or less: one masked store where the processor
// has it, instead of a loop whose end no processor foresees.

#if ESPALIER_MASKED_STORES
/// Of sixteen lanes those of the next `left` numbers.
inline __mmask16 lanes_of(std::int64_t left) {
  return static_cast<__mmask16>(_bzhi_u32(0xffff, static_cast<unsigned>(std::min<std::int64_t>(left, 16))));
}
#endif

/// to[k] = from[k] for k < count; returns the place behind them.
template <class Number>
Number* copy_few(const Number* from, std::int64_t count, Number* to) {
#if ESPALIER_MASKED_STORES
  if constexpr (sizeof(Number) == 4) {
    for (std::int64_t k = 0; k < count; k += 16)
      _mm512_mask_storeu_epi32(to + k, lanes_of(count - k),
                               _mm512_maskz_loadu_epi32(lanes_of(count - k), from + k));
    return to + count;
  }
#endif
  return std::copy(from, from + count, to);
}

/// to[k] = value for k < count.
inline void fill_few(float* to, std::int64_t count, float value) {
#if ESPALIER_MASKED_STORES
  for (std::int64_t k = 0; k < count; k += 16)
    _mm512_mask_storeu_ps(to + k, lanes_of(count - k), _mm512_set1_ps(value));
#else
  std::fill(to, to + count, value);
#endif
}

namespace {

// Parts of rows that are drawn from.
template <class Index>
struct Parts {
  std::vector<RowView<Index>> rows;
  std::vector<RowKey> keys;
  std::vector<std::int64_t> places;  // where their picks go

  void clear() {
    rows.clear();
    keys.clear();
    places.clear();
  }
  void add(const RowView<Index>& row, const RowKey& key, int relation, std::int64_t begin, std::int64_t end) {
    rows.push_back({row.indices + begin, row.values + begin, end - begin});
    keys.push_back({key.vertex, key.batch, relation});
  }
};

// Asks for the entries of a row, which lie anywhere in memory, while others are looked at.
template <class Index>
void prefetch(const RowView<Index>& row) {
  constexpr std::int64_t kLine = 64 / sizeof(Index), kMostLines = 8;
  for (std::int64_t k = 0; k < std::min(row.size, kMostLines * kLine); k += kLine)
    __builtin_prefetch(row.indices + k);
}

// Calls visit(r) for each row, whose entries are then on their way.
template <class Index, class Visit>
void for_each_row(const RowView<Index>* rows, std::int64_t count, const Visit& visit) {
  constexpr std::int64_t kAhead = 8;
  for (std::int64_t r = 0; r < std::min(kAhead, count); ++r) prefetch(rows[r]);
  for (std::int64_t r = 0; r < count; ++r) {
    if (r + kAhead < count) prefetch(rows[r + kAhead]);
    visit(r);
  }
}

// The most entries that may be picked of rows.
template <class Index>
std::int64_t most_picks(const LayerDraw& layer, const ColumnsOf& columns, const RowView<Index>* rows,
                        std::int64_t count) {
  std::int64_t most = 0;
  for (std::int64_t r = 0; r < count; ++r) {
    const auto size = rows[r].size;
    most += layer.fanout < 0 ? size : std::min(size, columns.relations * std::min(size, layer.fanout));
  }
  return most;
}

// A draw that takes parts of no more entries than their fanout whole, without values: what is not
// drawn from goes to its place at once.
template <class Index>
void draw_long_parts(const Cpu& cpu, const RowDraw<Index>& draw, const LayerDraw& layer,
                     const ColumnsOf& columns, const RowView<Index>* rows, const RowKey* keys,
                     std::int64_t count, Parts<Index>& parts, Entries<Index>& drawn, Entries<Index>& out) {
  const LongParts<Index> long_parts(layer, columns);
  out.ids.resize(out.entries() + most_picks(layer, columns, rows, count));
  auto* const ids = out.ids.data();
  auto* to = ids + out.offsets.back();
  for_each_row(rows, count, [&](std::int64_t r) {
    const auto& row = rows[r];
    std::int64_t rest = 0;
    if (layer.least >= 0 && row.size > layer.least)
      long_parts.for_each(row, [&](int relation, std::int64_t begin, std::int64_t end, std::int64_t fanout) {
        to = copy_few(row.indices + rest, begin - rest, to);
        rest = end;
        if (fanout == 0) return;
        parts.add(row, keys[r], relation, begin, end);
        parts.places.push_back(to - ids);
        to += fanout;
      });
    to = copy_few(row.indices + rest, row.size - rest, to);
    out.offsets.push_back(to - ids);
  });
  out.ids.resize(to - ids);
  draw.draw(cpu, layer, parts.rows.data(), parts.keys.data(), std::ssize(parts.rows), drawn);
  for (std::int64_t part = 0; part < drawn.rows(); ++part)
    copy_few(drawn.ids.data() + drawn.begin(part), drawn.size(part), ids + parts.places[part]);
}

// Any other: from all parts.
template <class Index>
void draw_all_parts(const Cpu& cpu, const RowDraw<Index>& draw, const LayerDraw& layer,
                    const ColumnsOf& columns, const RowView<Index>* rows, const RowKey* keys,
                    std::int64_t count, Parts<Index>& parts, Entries<Index>& drawn, Entries<Index>& out) {
  for_each_row(rows, count, [&](std::int64_t r) {
    for_each_part(columns, rows[r], [&](int relation, std::int64_t begin, std::int64_t end) {
      parts.add(rows[r], keys[r], relation, begin, end);
    });
    parts.places.push_back(std::ssize(parts.rows));
  });
  draw.draw(cpu, layer, parts.rows.data(), parts.keys.data(), std::ssize(parts.rows), drawn);
  const auto before = out.entries();
  out.ids.insert(out.ids.end(), drawn.ids.begin(), drawn.ids.end());
  out.values.insert(out.values.end(), drawn.values.begin(), drawn.values.end());
  for (const auto end : parts.places) out.offsets.push_back(before + drawn.offsets[end]);
}

}  // namespace

template <class Index>
void draw_by_relation(const Cpu& cpu, const RowDraw<Index>& draw, const LayerDraw& layer,
                      const ColumnsOf& columns, const RowView<Index>* rows, const RowKey* keys,
                      std::int64_t count, Entries<Index>& out) {
  thread_local Parts<Index> parts;
  thread_local Entries<Index> drawn;
  parts.clear();
  drawn.clear();
  if (draw.keeps_small_rows())
    draw_long_parts(cpu, draw, layer, columns, rows, keys, count, parts, drawn, out);
  else
    draw_all_parts(cpu, draw, layer, columns, rows, keys, count, parts, drawn, out);
}

namespace {

// The relations of the first columns of [count]: 64 at a time are compared with where relations
// begin, which counts the relations before theirs. Returns how many columns are done.
template <class Index>
std::int64_t read_by_lanes(const ColumnsOf& columns, const Index* picks, std::int64_t count,
                           std::uint8_t* relations) {
  typedef Index Lanes __attribute__((vector_size(16 * sizeof(Index))));
  typedef std::uint8_t Bytes __attribute__((vector_size(16)));
  std::int64_t k = 0;
  for (; k + 64 <= count; k += 64) {
    Lanes column[4], relation[4] = {};
    __builtin_memcpy(column, picks + k, sizeof column);
    for (int r = 1; r < columns.relations; ++r)
      for (int j = 0; j < 4; ++j) relation[j] -= column[j] >= static_cast<Index>(columns.begins[r]);
    for (int j = 0; j < 4; ++j) {
      const auto bytes = __builtin_convertvector(relation[j], Bytes);
      __builtin_memcpy(relations + k + 16 * j, &bytes, sizeof bytes);
    }
  }
  return k;
}

// Vertices and relations of columns in any order.
template <class Index>
void read_each(const ColumnsOf& columns, const Index* picks, std::int64_t count, Index* vertices,
               std::uint8_t* relations) {
  constexpr int kFewRelations = 48;  // with more of them a search is faster
  auto k = columns.relations <= kFewRelations ? read_by_lanes(columns, picks, count, relations) : 0;
  for (; k < count; ++k) relations[k] = static_cast<std::uint8_t>(columns.relation(picks[k]));
  for (k = 0; k < count; ++k) vertices[k] = static_cast<Index>(picks[k] + columns.shifts[relations[k]]);
}

// Bit k: is relations[k] another than relations[k - 1]? For k < 64.
std::uint64_t changes(const std::uint8_t* relations) {
#if defined(__AVX512BW__)
  return _mm512_cmpneq_epi8_mask(_mm512_loadu_si512(relations), _mm512_loadu_si512(relations - 1));
#else
  std::uint64_t bits = 0;
  for (int k = 0; k < 64; ++k) bits |= std::uint64_t{relations[k] != relations[k - 1]} << k;
  return bits;
#endif
}

// means[k] of entries whose relations are known: 1 / entries of its relation in its row.
class PartMeans {
 public:
  PartMeans() {
    for (std::int64_t count = 1; count < std::ssize(few_); ++count) few_[count] = mean_value(count);
  }
  // offsets [rows + 1]; relations and means are those of entry offsets[0] on.
  void write(const std::int64_t* offsets, std::int64_t rows, const std::uint8_t* relations, float* means) {
    const auto first = offsets[0], count = offsets[rows] - first;
    starts_.assign(count / 64 + 1, 0);
    for (std::int64_t r = 0; r <= rows; ++r) {
      const auto at = offsets[r] - first;
      starts_[at / 64] |= std::uint64_t{1} << at % 64;
    }
    std::int64_t begin = 0;
    for (std::int64_t word = 0; word < std::ssize(starts_); ++word) {
      auto bits = starts_[word];
      if (word > 0 && 64 * word + 64 <= count)
        bits |= changes(relations + 64 * word);
      else
        for (auto k = std::max<std::int64_t>(64 * word, 1); k < std::min(count, 64 * word + 64); ++k)
          bits |= std::uint64_t{relations[k] != relations[k - 1]} << k % 64;
      for (; bits != 0; bits &= bits - 1) {
        const auto end = 64 * word + std::countr_zero(bits);
        fill_few(means + begin, end - begin, of(end - begin));
        begin = end;
      }
    }
  }

 private:
  float of(std::int64_t count) const { return count < std::ssize(few_) ? few_[count] : mean_value(count); }

  std::array<float, 64> few_ = {};
  std::vector<std::uint64_t> starts_;  // a bit for each entry that begins a part, and for the end
};

}  // namespace

template <class Index>
void read_columns(const Cpu& cpu, const ColumnsOf& columns, const Buffer<std::int64_t>& offsets,
                  const Buffer<Index>& picks, Buffer<Index>& vertices, Buffer<std::uint8_t>& relations,
                  Buffer<float>* means) {
  vertices.resize(picks.size());
  relations.resize(picks.size());
  if (means != nullptr) means->resize(picks.size());
  const auto rows = std::ssize(offsets) - 1;
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t piece = 0; piece < cpu.threads; ++piece) {
    const auto first = rows * piece / cpu.threads, last = rows * (piece + 1) / cpu.threads;
    const auto begin = offsets[first];
    read_each(columns, picks.data() + begin, offsets[last] - begin, vertices.data() + begin,
              relations.data() + begin);
    thread_local PartMeans part_means;
    if (means != nullptr)
      part_means.write(offsets.data() + first, last - first, relations.data() + begin, means->data() + begin);
  }
}

#define ESPALIER_INSTANTIATE(Index)                                                                     \
  template void draw_by_relation(const Cpu&, const RowDraw<Index>&, const LayerDraw&, const ColumnsOf&, \
                                 const RowView<Index>*, const RowKey*, std::int64_t, Entries<Index>&);  \
  template void read_columns(const Cpu&, const ColumnsOf&, const Buffer<std::int64_t>&,                 \
                             const Buffer<Index>&, Buffer<Index>&, Buffer<std::uint8_t>&, Buffer<float>*);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
