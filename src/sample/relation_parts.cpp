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

}  // namespace

template <class Index>
void cut_by_relation(const Cpu&, const ColumnsOf& columns, const RowView<Index>* rows, const RowKey* keys,
                     std::int64_t count, std::int64_t uncut, RelationParts<Index>& parts) {
  parts.rows.clear();
  parts.keys.clear();
  parts.begins.assign(1, 0);
  for (std::int64_t r = 0; r < count; ++r) {
    const auto& row = rows[r];
    if (row.size > 0 && row.size <= uncut) {
      parts.rows.push_back(row);
      parts.keys.push_back(keys[r]);
      parts.begins.push_back(parts.count());
      continue;
    }
    for_each_part(columns, row, [&](int relation, std::int64_t begin, std::int64_t end) {
      parts.rows.push_back(
          {row.indices + begin, row.values == nullptr ? nullptr : row.values + begin, end - begin});
      parts.keys.push_back({keys[r].vertex, keys[r].batch, relation});
    });
    parts.begins.push_back(parts.count());
  }
}

template <class Index>
void draw_by_relation(const Cpu& cpu, const RowDraw<Index>& draw, const LayerDraw& layer,
                      const ColumnsOf& columns, const RowView<Index>* rows, const RowKey* keys,
                      std::int64_t count, Entries<Index>& out) {
  thread_local RelationParts<Index> parts;
  cut_by_relation(cpu, columns, rows, keys, count, taken_whole(draw, layer), parts);
  const auto first = out.rows();
  draw.draw(cpu, layer, parts.rows.data(), parts.keys.data(), parts.count(), out);
  for (auto& end : parts.begins) end = out.offsets[first + end];
  out.offsets.resize(first + count + 1);
  std::ranges::copy(parts.begins, out.offsets.begin() + first);
}

template <class Index>
void read_columns(const Cpu& cpu, const ColumnsOf& columns, const Buffer<std::int64_t>& offsets,
                  const Buffer<Index>& picks, ReadColumns<Index>& read, Buffer<float>* means) {
  read.vertices.resize(picks.size());
  read.relations.resize(picks.size());
  if (means != nullptr) means->resize(picks.size());
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t r = 0; r < std::ssize(offsets) - 1; ++r) {
    int relation = 0;
    for (auto k = offsets[r]; k < offsets[r + 1];) {
      while (columns.begins[relation + 1] <= picks[k]) ++relation;
      const auto shift = columns.shifts[relation], bound = columns.begins[relation + 1];
      const auto begin = k;
      for (; k < offsets[r + 1] && picks[k] < bound; ++k) {
        read.vertices[k] = static_cast<Index>(picks[k] + shift);
        read.relations[k] = static_cast<std::uint8_t>(relation);
      }
      if (means != nullptr) std::fill(means->begin() + begin, means->begin() + k, mean_value(k - begin));
    }
  }
}

#define ESPALIER_INSTANTIATE(Index)                                                                     \
  template void cut_by_relation(const Cpu&, const ColumnsOf&, const RowView<Index>*, const RowKey*,     \
                                std::int64_t, std::int64_t, RelationParts<Index>&);                     \
  template void draw_by_relation(const Cpu&, const RowDraw<Index>&, const LayerDraw&, const ColumnsOf&, \
                                 const RowView<Index>*, const RowKey*, std::int64_t, Entries<Index>&);  \
  template void read_columns(const Cpu&, const ColumnsOf&, const Buffer<std::int64_t>&,                 \
                             const Buffer<Index>&, ReadColumns<Index>&, Buffer<float>*);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
