#include "relation_parts.hpp"

namespace espalier {

namespace {

// The place after the last entry of [begin, size) whose column lies before `end`. Most parts are
// short: columns are compared sixteen at a time, which takes no branch that depends on them; what
// is left of a long one is searched.
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

// Calls use(relation, begin, end) for each part of a row.
template <class Index, class Use>
void for_each_part(const ColumnsOf& columns, const RowView<Index>& row, Use use) {
  int relation = 0;
  for (std::int64_t begin = 0; begin < row.size;) {
    while (columns.begins[relation + 1] <= row.indices[begin]) ++relation;
    const auto end = end_of_part(row, begin, columns.begins[relation + 1]);
    use(relation, begin, end);
    begin = end;
  }
}

// Rows as pieces one after another: entries that are picked as they stand, and parts of which some
// are drawn.
template <class Index>
struct Pieces {
  struct Piece {
    const Index* kept;   // or null: the next of drawn_rows
    std::int64_t count;  // of kept
  };
  std::vector<Piece> pieces;
  std::vector<std::int64_t> of_row;  // [rows + 1] the pieces of each row
  std::vector<RowView<Index>> drawn_rows;
  std::vector<RowKey> drawn_keys;
  std::int64_t kept_entries = 0;

  void clear() {
    kept_entries = 0;
    pieces.clear();
    of_row.assign(1, 0);
    drawn_rows.clear();
    drawn_keys.clear();
  }
  // Parts that are kept and stand together are one piece.
  void keep(const RowView<Index>& row, std::int64_t begin, std::int64_t end) {
    const bool goes_on = std::ssize(pieces) > of_row.back() && pieces.back().kept != nullptr &&
                         pieces.back().kept + pieces.back().count == row.indices + begin;
    kept_entries += end - begin;
    if (goes_on)
      pieces.back().count += end - begin;
    else
      pieces.push_back({row.indices + begin, end - begin});
  }
  void draw(const RowView<Index>& row, const RowKey& key, std::int64_t begin, std::int64_t end) {
    pieces.push_back({nullptr, 0});
    drawn_rows.push_back(
        {row.indices + begin, row.values == nullptr ? nullptr : row.values + begin, end - begin});
    drawn_keys.push_back(key);
  }
  void end_row() { of_row.push_back(std::ssize(pieces)); }
};

// Asks for the entries of a row, which lie anywhere in memory, while others are looked at.
template <class Index>
void prefetch(const RowView<Index>& row) {
  constexpr std::int64_t kLine = 64 / sizeof(Index), kMostLines = 8;
  for (std::int64_t k = 0; k < std::min(row.size, kMostLines * kLine); k += kLine)
    __builtin_prefetch(row.indices + k);
}

template <class Index>
void cut_by_relation(const RowDraw<Index>& draw, const LayerDraw& layer, const ColumnsOf& columns,
                     const RowView<Index>* rows, const RowKey* keys, std::int64_t count,
                     Pieces<Index>& pieces) {
  pieces.clear();
  const bool keeps = draw.keeps_small_rows();
  constexpr std::int64_t kAhead = 8;
  for (std::int64_t r = 0; r < std::min(kAhead, count); ++r) prefetch(rows[r]);
  for (std::int64_t r = 0; r < count; ++r) {
    if (r + kAhead < count) prefetch(rows[r + kAhead]);
    const auto& row = rows[r];
    if (keeps && row.size > 0 && (layer.least < 0 || row.size <= layer.least)) {
      pieces.keep(row, 0, row.size);  // whichever relations they are of
    } else {
      for_each_part(columns, row, [&](int relation, std::int64_t begin, std::int64_t end) {
        const RowKey key = {keys[r].vertex, keys[r].batch, relation};
        const auto fanout = layer.fanout_of(key);
        if (keeps && (fanout < 0 || end - begin <= fanout))
          pieces.keep(row, begin, end);
        else if (!keeps || fanout > 0)
          pieces.draw(row, key, begin, end);
      });
    }
    pieces.end_row();
  }
}

}  // namespace

template <class Index>
void draw_by_relation(const Cpu& cpu, const RowDraw<Index>& draw, const LayerDraw& layer,
                      const ColumnsOf& columns, const RowView<Index>* rows, const RowKey* keys,
                      std::int64_t count, Entries<Index>& out) {
  thread_local Pieces<Index> pieces;
  thread_local Entries<Index> drawn;
  cut_by_relation(draw, layer, columns, rows, keys, count, pieces);
  drawn.clear();
  draw.draw(cpu, layer, pieces.drawn_rows.data(), pieces.drawn_keys.data(), std::ssize(pieces.drawn_rows),
            drawn);
  // In the order of the rows.
  const auto before = out.entries(), picks = pieces.kept_entries + drawn.entries();
  out.ids.resize(before + picks);
  if (!drawn.values.empty()) out.values.resize(before + picks);
  auto* to = out.ids.data() + before;
  auto* const values = drawn.values.empty() ? nullptr : out.values.data();
  std::int64_t part = 0;
  for (std::int64_t r = 0; r < count; ++r) {
    for (auto p = pieces.of_row[r]; p < pieces.of_row[r + 1]; ++p) {
      const auto& piece = pieces.pieces[p];
      if (piece.kept != nullptr) {
        for (std::int64_t k = 0; k < piece.count; ++k) *to++ = piece.kept[k];
        continue;
      }
      const auto first = drawn.offsets[part], last = drawn.offsets[++part];
      if (values != nullptr)
        std::copy(drawn.values.begin() + first, drawn.values.begin() + last, values + (to - out.ids.data()));
      for (auto k = first; k < last; ++k) *to++ = drawn.ids[k];
    }
    out.offsets.push_back(to - out.ids.data());
  }
}

template <class Index>
void read_columns(const Cpu& cpu, const ColumnsOf& columns, const Buffer<std::int64_t>& offsets,
                  const Buffer<Index>& picks, Buffer<Index>& vertices, Buffer<std::uint8_t>& relations,
                  Buffer<float>* means) {
  vertices.resize(picks.size());
  relations.resize(picks.size());
  if (means != nullptr) means->resize(picks.size());
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t r = 0; r < std::ssize(offsets) - 1; ++r) {
    int relation = 0;
    for (auto k = offsets[r]; k < offsets[r + 1];) {
      while (columns.begins[relation + 1] <= picks[k]) ++relation;
      const auto shift = columns.shifts[relation], bound = columns.begins[relation + 1];
      const auto begin = k;
      for (; k < offsets[r + 1] && picks[k] < bound; ++k) {
        vertices[k] = static_cast<Index>(picks[k] + shift);
        relations[k] = static_cast<std::uint8_t>(relation);
      }
      if (means != nullptr) std::fill(means->begin() + begin, means->begin() + k, mean_value(k - begin));
    }
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
