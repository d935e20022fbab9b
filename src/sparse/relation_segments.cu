// The first entries of segments, sorted stably by relation, are the segments in order; entries in
// the order of the transpose, sorted stably by relation, are those of each relation by source.
#include "espalier/sparse/relation_segments.hpp"

#include "espalier/base/device_algorithms.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {

namespace {

constexpr int kRelationBits = 9;  // 256 relations, and what is none

/// A block as kernels read it; entries are counted from its first.
struct Relations {
  const std::int64_t* indptr;
  const std::uint8_t* relations;
  std::int64_t rows;

  explicit Relations(const BlockView<Cuda>& block)
      : indptr(block.indptr), relations(block.relations), rows(block.rows) {}
  __device__ int operator()(std::int64_t entry) const {
    return relations == nullptr ? 0 : relations[indptr[0] + entry];
  }
  __device__ std::int64_t begin(std::int64_t row) const { return indptr[row] - indptr[0]; }
};

/// Of each entry its row, and as its key the relation if it begins a segment, else `none`.
void key_first_entries(const Cuda& cuda, const BlockView<Cuda>& block, std::uint32_t none,
                       std::uint32_t* keys, std::int32_t* entries, std::int32_t* rows) {
  const Relations relation(block);
  for_each(cuda, "key_first_entries", block.rows, [=] __device__(std::int64_t row) {
    const auto begin = relation.begin(row), end = relation.begin(row + 1);
    for (auto e = begin; e < end; ++e) {
      const bool first = e == begin || relation(e) != relation(e - 1);
      keys[e] = first ? static_cast<std::uint32_t>(relation(e)) : none;
      entries[e] = static_cast<std::int32_t>(e);
      rows[e] = static_cast<std::int32_t>(row);
    }
  });
}

}  // namespace

void find_segments(const Cuda& cuda, const BlockView<Cuda>& block, std::int64_t relations,
                   RelationSegmentsOn<Cuda>& of) {
  const auto entries = block.entries();
  ESPALIER_CHECK(entries < std::int64_t{1} << 31, "{} entries in a block", entries);
  const auto most = most_segments(block.rows, entries, relations);
  for (auto* list : {&of.rows, &of.begins, &of.ends}) list->resize(static_cast<std::size_t>(most));
  of.numbers.resize(static_cast<std::size_t>(entries));
  of.first.assign(static_cast<std::size_t>(relations) + 1, 0);
  of.first_entry = of.first;
  if (entries == 0) return;

  const auto size = static_cast<std::size_t>(entries);
  DeviceArray<std::uint32_t> keys(size), sorted_keys(size);
  DeviceArray<std::int32_t> all(size), sorted(size), row_of(size);
  key_first_entries(cuda, block, static_cast<std::uint32_t>(relations), keys.data(), all.data(),
                    row_of.data());
  sort_pairs(cuda, keys.data(), sorted_keys.data(), all.data(), sorted.data(), entries, kRelationBits);

  // Segments, and how many entries each has.
  DeviceArray<std::int64_t> sizes(static_cast<std::size_t>(most)), before(static_cast<std::size_t>(most) + 1);
  const Relations relation(block);
  const auto none = static_cast<std::uint32_t>(relations);
  const auto* const key = sorted_keys.data();
  const auto *const from = sorted.data(), *const row_from = row_of.data();
  auto *const rows = of.rows.data(), *const begins = of.begins.data(), *const ends = of.ends.data(),
              *const numbers = of.numbers.data();
  auto* const count = sizes.data();
  for_each(cuda, "find_segments", most, [=] __device__(std::int64_t k) {
    count[k] = 0;
    if (key[k] >= none) return;
    const std::int64_t begin = from[k], row = row_from[begin];
    const auto number = static_cast<std::int32_t>(k - count_below(key, entries, key[k]));
    auto e = begin;
    for (; e < relation.begin(row + 1) && relation(e) == static_cast<int>(key[k]); ++e) numbers[e] = number;
    rows[k] = static_cast<std::int32_t>(row);
    begins[k] = static_cast<std::int32_t>(begin);
    ends[k] = static_cast<std::int32_t>(e);
    count[k] = e - begin;
  });
  exclusive_sum(cuda, sizes.data(), before.data(), most);

  DeviceArray<std::int64_t> firsts(2 * of.first.size());
  auto* const first = firsts.data();
  const auto* const entries_before = before.data();
  const std::int64_t lists = std::ssize(of.first);
  for_each(cuda, "first_segments", lists, [=] __device__(std::int64_t r) {
    const auto place = count_below(key, entries, static_cast<std::uint32_t>(r));
    first[r] = place;
    first[lists + r] = entries_before[place];
  });
  const auto known = copy_from(cuda, firsts);
  std::copy_n(known.begin(), lists, of.first.begin());
  std::copy_n(known.begin() + lists, lists, of.first_entry.begin());
}

void order_by_source(const Cuda& cuda, const BlockView<Cuda>& block,
                     const DeviceArray<std::int32_t>& positions, const RelationSegmentsOn<Cuda>&,
                     DeviceArray<std::int32_t>& order) {
  const auto entries = block.entries();
  const auto size = static_cast<std::size_t>(entries);
  order.resize(size);
  if (entries == 0) return;
  DeviceArray<std::uint32_t> keys(size), sorted_keys(size);
  DeviceArray<std::int32_t> values(size);
  const Relations relation(block);
  const auto* const position = positions.data();
  auto* const key = keys.data();
  auto* const value = values.data();
  for_each(cuda, "key_by_relation", entries, [=] __device__(std::int64_t k) {
    key[k] = static_cast<std::uint32_t>(relation(position[k]));
    value[k] = position[k];
  });
  sort_pairs(cuda, keys.data(), sorted_keys.data(), values.data(), order.data(), entries, kRelationBits);
}

}  // namespace espalier
