// Counted, then filled, by one thread: two passes over the bytes that name the relations.
#include "espalier/sparse/relation_segments.hpp"

#include <numeric>

#include "espalier/base/error.hpp"

namespace espalier {

namespace {

/// Calls use(row, relation, begin, end) for each segment, row by row, entries from the first.
template <class Use>
void for_each_segment(const BlockView<Cpu>& block, const Use& use) {
  const auto base = block.indptr[0];
  for (std::int64_t row = 0; row < block.rows; ++row)
    for (auto e = block.row_begin(row); e < block.row_end(row);) {
      const auto begin = e;
      const int relation = block.relation(e);
      while (e < block.row_end(row) && block.relation(e) == relation) ++e;
      use(static_cast<std::int32_t>(row), static_cast<std::size_t>(relation),
          static_cast<std::int32_t>(begin - base), static_cast<std::int32_t>(e - base));
    }
}

}  // namespace

void find_segments(const Cpu&, const BlockView<Cpu>& block, std::int64_t relations, RelationSegments& of) {
  ESPALIER_CHECK(block.entries() < std::int64_t{1} << 31, "{} entries in a block", block.entries());
  const auto most = static_cast<std::size_t>(most_segments(block.rows, block.entries(), relations));
  for (auto* list : {&of.rows, &of.begins, &of.ends}) list->resize(most);
  of.numbers.resize(static_cast<std::size_t>(block.entries()));
  of.first.assign(static_cast<std::size_t>(relations) + 1, 0);
  of.first_entry = of.first;
  for_each_segment(block, [&](std::int32_t, std::size_t relation, std::int32_t begin, std::int32_t end) {
    ++of.first[relation + 1];
    of.first_entry[relation + 1] += end - begin;
  });
  std::partial_sum(of.first.begin(), of.first.end(), of.first.begin());
  std::partial_sum(of.first_entry.begin(), of.first_entry.end(), of.first_entry.begin());
  auto next = of.first;
  for_each_segment(block, [&](std::int32_t row, std::size_t relation, std::int32_t begin, std::int32_t end) {
    const auto at = static_cast<std::size_t>(next[relation]++);
    of.rows[at] = row;
    of.begins[at] = begin;
    of.ends[at] = end;
    const auto number = static_cast<std::int32_t>(next[relation] - 1 - of.first[relation]);
    for (auto e = begin; e < end; ++e) of.numbers[static_cast<std::size_t>(e)] = number;
  });
}

void order_by_source(const Cpu&, const BlockView<Cpu>& block, const Buffer<std::int32_t>& positions,
                     const RelationSegments& segments, Buffer<std::int32_t>& order) {
  order.resize(positions.size());
  auto next = segments.first_entry;
  for (const auto position : positions)
    order[static_cast<std::size_t>(
        next[static_cast<std::size_t>(block.relation(block.indptr[0] + position))]++)] = position;
}

}  // namespace espalier
