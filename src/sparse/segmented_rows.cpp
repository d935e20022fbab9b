// Threads work on segments, or on chunks of rows, joined in order: their number changes nothing.
#include "espalier/sparse/segmented_rows.hpp"

#include <algorithm>
#include <limits>

#include "espalier/base/error.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/sparse/entries.hpp"
#include "espalier/sparse/select_columns.hpp"

namespace espalier {

namespace {

/// What an entry counts. The entries of a mean's row are equal: what the last one counted is kept.
template <class Index>
struct EntryCounts {
  const EntryWeight& weight;
  float last = std::numeric_limits<float>::quiet_NaN();
  std::uint64_t of_last = 0;

  std::uint64_t operator()(const RowView<Index>& row, std::int64_t entry) {
    if (row.values == nullptr) return weight(nullptr);
    if (row.values[entry] != last) of_last = weight(&(last = row.values[entry]));
    return of_last;
  }
};

}  // namespace

template <class Index>
void sum_segments(const Cpu& cpu, const SegmentedRows<Index>& rows, const EntryWeight& weight,
                  const SumVisitor<Index>& visit, const EarlierSums<Index>* earlier) {
  // A segment for each thread while there are enough of them, else all threads inside of each.
  const bool share = rows.segments() < cpu.threads;
#pragma omp parallel num_threads(share ? 1 : cpu.threads)
  {
    const SparseSum<Index> nothing;
    SparseSum<Index> sum;
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t k = 0; k < rows.segments(); ++k) {
      const auto known = earlier != nullptr ? earlier->rows[k] : 0;
      const std::span<const RowView<Index>> of_segment(rows.rows.begin() + rows.offsets[k] + known,
                                                       rows.rows.begin() + rows.offsets[k + 1]);
      sum_rows(share ? cpu : Cpu{1}, of_segment, rows.columns, EntryCounts<Index>{weight}, sum,
               weight.equal_in_rows, known > 0 ? earlier->sums[k] : nothing);
      visit(k, sum);
    }
  }
}

template <class Index>
Sums<Index> stack_sums(const Cpu& cpu, const SegmentedRows<Index>& rows, const EntryWeight& weight) {
  std::vector<SparseSum<Index>> sums(rows.segments());
  sum_segments<Index>(cpu, rows, weight,
                      [&](std::int64_t segment, SparseSum<Index>& sum) { sums[segment] = sum; });
  std::vector<std::int64_t> offsets = {0};
  Sums<Index> all;
  for (const auto& sum : sums) {
    all.columns.insert(all.columns.end(), sum.columns.begin(), sum.columns.end());
    all.sums.insert(all.sums.end(), sum.sums.begin(), sum.sums.end());
    offsets.push_back(std::ssize(all.columns));
  }
  all.offsets = {cpu, std::move(offsets)};
  return all;
}

template <class Index>
void merge_sums(const Cpu& cpu, const Sums<Index>& partial, const SharedList<std::int64_t>& target,
                std::int64_t count, std::int64_t columns, const SumVisitor<Index>& visit) {
  struct Part {
    const Index* indices;
    const std::uint64_t* sums;
    std::int64_t size;
  };
  std::vector<std::vector<Part>> parts(count);
  for (std::int64_t list = 0; list < partial.lists(); ++list) {
    const auto at = partial.offsets[list];
    parts[target[list]].push_back(
        {partial.columns.data() + at, partial.sums.data() + at, partial.offsets[list + 1] - at});
  }
#pragma omp parallel num_threads(cpu.threads)
  {
    SparseSum<Index> sum;
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t segment = 0; segment < count; ++segment) {
      sum_rows(
          Cpu{1}, std::span<const Part>(parts[segment]), columns,
          [](const Part& part, std::int64_t k) { return part.sums[k]; }, sum);
      visit(segment, sum);
    }
  }
}

template <class Index>
Entries<std::int32_t> select_columns(const Cpu& cpu, const SegmentedRows<Index>& rows, const Index* columns,
                                     const SharedList<std::int64_t>& offsets) {
  const auto columns_of = [&](std::int64_t segment) {
    return std::span<const Index>(columns + offsets[segment], columns + offsets[segment + 1]);
  };
  for (std::int64_t segment = 0; segment < rows.segments(); ++segment)
    ESPALIER_CHECK(std::ssize(columns_of(segment)) < (std::int64_t{1} << 31),
                   "{} columns of one batch; take fewer", columns_of(segment).size());
  // Rows whose first lines are asked for meanwhile, and those whose values are read together, long
  // after they were asked for.
  constexpr std::int64_t kAhead = 8, kTogether = 64;
  constexpr int kLines = 4;
  const auto select = [&](std::int64_t first, std::int64_t last, Entries<std::int32_t>& out) {
    auto segment = segment_of(rows.offsets.data(), rows.segments(), first);
    ColumnSelection<Index> chosen;
    chosen.choose(columns_of(segment));
    Buffer<std::int64_t> entries;  // of the rows from `unread` on, which meet a column
    auto unread = first;
    const auto read_values = [&](std::int64_t end) {
      const auto* entry = entries.data();
      for (; unread < end; ++unread)
        for (auto count = out.size(unread - first); count > 0; --count, ++entry)
          if (rows.rows[unread].values != nullptr) out.values.push_back(rows.rows[unread].values[*entry]);
      entries.clear();
    };
    for (auto r = first; r < last; ++r) {
      if (rows.offsets[segment + 1] <= r) {
        while (rows.offsets[segment + 1] <= r) ++segment;
        chosen.choose(columns_of(segment));
      }
      const auto& row = rows.rows[r];
      if (r + kAhead < last)
        for (int line = 0; line < kLines; ++line)
          __builtin_prefetch(rows.rows[r + kAhead].indices + line * static_cast<int>(64 / sizeof(Index)));
      chosen.meet(row, out.ids, entries);
      out.end_row();
      if (r + 1 == last || (r + 1 - first) % kTogether == 0) read_values(r + 1);
    }
  };
  Entries<std::int32_t> out;
  collect_rows(cpu, std::ssize(rows.rows), select, out);
  return out;
}

#define ESPALIER_INSTANTIATE(Index)                                                                       \
  template void sum_segments(const Cpu&, const SegmentedRows<Index>&, const EntryWeight&,                 \
                             const SumVisitor<Index>&, const EarlierSums<Index>*);                        \
  template Sums<Index> stack_sums(const Cpu&, const SegmentedRows<Index>&, const EntryWeight&);           \
  template void merge_sums(const Cpu&, const Sums<Index>&, const SharedList<std::int64_t>&, std::int64_t, \
                           std::int64_t, const SumVisitor<Index>&);                                       \
  template Entries<std::int32_t> select_columns(const Cpu&, const SegmentedRows<Index>&, const Index*,    \
                                                const SharedList<std::int64_t>&);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
