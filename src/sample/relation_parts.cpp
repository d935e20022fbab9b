#include "relation_parts.hpp"

namespace espalier {

namespace {

// The place after the last entry of [begin, size) whose column lies before `end`: by doubling
// steps, as most parts are short.
template <class Index>
std::int64_t end_of_part(const RowView<Index>& row, std::int64_t begin, std::int64_t end) {
  std::int64_t step = 1, low = begin;  // row.indices[low] < end
  while (low + step < row.size && row.indices[low + step] < end) {
    low += step;
    step *= 2;
  }
  const auto* const from = row.indices + low + 1;
  const auto* const to = row.indices + std::min(low + step, row.size);
  return std::lower_bound(from, to, end, [](Index column, std::int64_t bound) { return column < bound; }) -
         row.indices;
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

  void clear() {
    pieces.clear();
    of_row.assign(1, 0);
    drawn_rows.clear();
    drawn_keys.clear();
  }
  // Parts that are kept and stand together are one piece.
  void keep(const RowView<Index>& row, std::int64_t begin, std::int64_t end) {
    const bool goes_on = std::ssize(pieces) > of_row.back() && pieces.back().kept != nullptr &&
                         pieces.back().kept + pieces.back().count == row.indices + begin;
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

template <class Index>
void cut_by_relation(const RowDraw<Index>& draw, const LayerDraw& layer, const ColumnsOf& columns,
                     const RowView<Index>* rows, const RowKey* keys, std::int64_t count,
                     Pieces<Index>& pieces) {
  pieces.clear();
  const bool keeps = draw.keeps_small_rows();
  for (std::int64_t r = 0; r < count; ++r) {
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
  std::int64_t part = 0;
  for (std::int64_t r = 0; r < count; ++r) {
    for (auto p = pieces.of_row[r]; p < pieces.of_row[r + 1]; ++p) {
      const auto& piece = pieces.pieces[p];
      if (piece.kept != nullptr) {
        out.ids.insert(out.ids.end(), piece.kept, piece.kept + piece.count);
        continue;
      }
      const auto first = drawn.offsets[part], last = drawn.offsets[++part];
      out.ids.insert(out.ids.end(), drawn.ids.begin() + first, drawn.ids.begin() + last);
      if (!drawn.values.empty())
        out.values.insert(out.values.end(), drawn.values.begin() + first, drawn.values.begin() + last);
    }
    out.end_row();
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
