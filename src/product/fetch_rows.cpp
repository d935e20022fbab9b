#include "fetch_rows.hpp"

#include <numeric>

#include "cost_model.hpp"
#include "espalier/base/work.hpp"

namespace espalier {

template <class Index>
DistinctIds<Index>::DistinctIds(std::span<const std::int64_t> list, const RowPartition& partition)
    : begin(static_cast<std::size_t>(partition.parts()) + 1, 0), place_of(list.size()) {
  IdMap seen(std::ssize(list));
  Buffer<std::int64_t> distinct;
  std::vector<int> owner;
  for (std::size_t k = 0; k < list.size(); ++k) {
    place_of[k] = seen.insert(list[k]);
    if (place_of[k] < std::ssize(distinct)) continue;
    distinct.push_back(list[k]);
    owner.push_back(partition.owner(list[k]));
    ++begin[static_cast<std::size_t>(owner.back()) + 1];
  }
  // A stable counting sort by owner turns the order of first appearance into that of the request.
  std::inclusive_scan(begin.begin(), begin.end(), begin.begin());
  auto next = begin;
  Buffer<std::int64_t> sorted_place(distinct.size());
  ids.resize(distinct.size());
  for (std::size_t k = 0; k < distinct.size(); ++k) {
    sorted_place[k] = next[static_cast<std::size_t>(owner[k])]++;
    ids[static_cast<std::size_t>(sorted_place[k])] = static_cast<Index>(distinct[k]);
  }
  for (auto& place : place_of) place = sorted_place[static_cast<std::size_t>(place)];
  // A table of ids, filled and read; distinct ids grouped by owner.
  charge(Work{.gathers = 3.0 * static_cast<double>(list.size()) + static_cast<double>(ids.size()),
              .bytes = 16.0 * static_cast<double>(list.size()) + 24.0 * static_cast<double>(ids.size()),
              .launches = 6});
}

namespace {

// The rows `asked` of the local block one after another, and how many entries go to each asker.
template <class Index>
struct Reply {
  Buffer<Index> sizes;
  Buffer<Index> indices;
  Buffer<float> values;
  std::vector<std::int64_t> entry_counts;
};

template <class Index>
Reply<Index> make_reply(const Cpu& cpu, const Received<Index>& asked, const DistCsr<Index>& a) {
  Reply<Index> reply;
  const auto rows = std::ssize(asked.data);
  reply.sizes.resize(asked.data.size());
  Buffer<std::int64_t> offsets(asked.data.size() + 1);
  offsets[0] = 0;
  for (std::size_t k = 0; k < asked.data.size(); ++k) {
    const auto size = a.local.row_size(asked.data[k] - a.first_row());
    reply.sizes[k] = static_cast<Index>(size);
    offsets[k + 1] = offsets[k] + size;
  }
  std::int64_t at = 0;
  for (const auto count : asked.counts) {
    reply.entry_counts.push_back(offsets[static_cast<std::size_t>(at + count)] -
                                 offsets[static_cast<std::size_t>(at)]);
    at += count;
  }
  reply.indices.resize(static_cast<std::size_t>(offsets.back()));
  if (a.local.has_values()) reply.values.resize(reply.indices.size());
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t k = 0; k < rows; ++k) {
    const auto row = asked.data[static_cast<std::size_t>(k)] - a.first_row();
    std::ranges::copy(a.local.row_indices(row), reply.indices.begin() + offsets[static_cast<std::size_t>(k)]);
    if (a.local.has_values())
      std::ranges::copy(a.local.row_values(row), reply.values.begin() + offsets[static_cast<std::size_t>(k)]);
  }
  charge(Work{.gathers = 2.0 * static_cast<double>(rows),
              .bytes = 2.0 * static_cast<double>(reply.indices.size() * sizeof(Index) +
                                                 reply.values.size() * sizeof(float)),
              .launches = rows > 0 ? 3 : 0});
  return reply;
}

template <class T>
void append(Buffer<T>& to, const Buffer<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

template <class Index>
void fetch_rows(const Cpu& cpu, const DistinctIds<Index>& wanted, int first, int last,
                const DistCsr<Index>& a, const std::string& label, Csr<Index>& fetched) {
  const auto& column = a.grid->column_comm();
  std::vector<std::int64_t> counts(static_cast<std::size_t>(column.size()), 0);
  Buffer<Index> ids;
  for (int part = first; part < last; ++part) {
    if (part == a.part) continue;
    counts[static_cast<std::size_t>(part)] = wanted.count(part);
    ids.insert(ids.end(), wanted.ids.begin() + wanted.begin[static_cast<std::size_t>(part)],
               wanted.ids.begin() + wanted.begin[static_cast<std::size_t>(part) + 1]);
  }
  const auto asked = column.all_to_all_v(std::span<const Index>(ids), counts, label + "/ids");
  const auto reply = make_reply(cpu, asked, a);

  Buffer<Index> sizes, indices;
  column.all_to_all_v(std::span<const Index>(reply.sizes), asked.counts, counts, sizes, label + "/rows");
  std::vector<std::int64_t> entry_counts;
  std::size_t row = 0;
  for (const auto count : counts) {
    std::int64_t entries = 0;
    for (std::int64_t k = 0; k < count; ++k) {
      entries += sizes[row];
      fetched.indptr.push_back(fetched.indptr.back() + static_cast<std::int64_t>(sizes[row++]));
    }
    entry_counts.push_back(entries);
  }
  fetched.rows += std::ssize(sizes);
  fetched.columns = a.local.columns;
  column.all_to_all_v(std::span<const Index>(reply.indices), reply.entry_counts, entry_counts, indices,
                      label + "/rows");
  fetched.indices.empty() ? fetched.indices.swap(indices) : append(fetched.indices, indices);
  if (!a.has_values) return;
  Buffer<float> values;
  column.all_to_all_v(std::span<const float>(reply.values), reply.entry_counts, entry_counts, values,
                      label + "/rows");
  fetched.values.empty() ? fetched.values.swap(values) : append(fetched.values, values);
}

template <class Index>
std::vector<RowView<Index>> view_rows(const DistinctIds<Index>& wanted, const Csr<Index>& fetched,
                                      const DistCsr<Index>& a) {
  std::vector<RowView<Index>> rows(wanted.ids.size());
  const auto mine = wanted.begin[static_cast<std::size_t>(a.part)];
  const auto count = wanted.count(a.part);
  for (std::int64_t place = 0; place < std::ssize(rows); ++place) {
    const bool local = place >= mine && place < mine + count;
    const auto i = static_cast<std::size_t>(place);
    rows[i] = local ? row_view(a.local, wanted.ids[i] - a.first_row())
                    : row_view(fetched, place < mine ? place : place - count);
  }
  return rows;
}

template <class Index>
void predict_fetch(std::span<const RowView<Index>> rows, int asked, int exchanges, const DistCsr<Index>& a,
                   const std::string& label) {
  const auto shape = shape_of(a);
  double entries = 0;
  for (const auto& row : rows) entries += static_cast<double>(row.size);
  const auto cost =
      fetch_cost(shape.parts, asked, exchanges, static_cast<double>(rows.size()), entries, shape);
  a.grid->traffic().predict(label + "/ids", cost.ids.messages, cost.ids.bytes);
  a.grid->traffic().predict(label + "/rows", cost.rows.messages, cost.rows.bytes);
}

#define ESPALIER_INSTANTIATE(Index)                                                                \
  template struct DistinctIds<Index>;                                                              \
  template void fetch_rows(const Cpu&, const DistinctIds<Index>&, int, int, const DistCsr<Index>&, \
                           const std::string&, Csr<Index>&);                                       \
  template std::vector<RowView<Index>> view_rows(const DistinctIds<Index>&, const Csr<Index>&,     \
                                                 const DistCsr<Index>&);                           \
  template void predict_fetch(std::span<const RowView<Index>>, int, int, const DistCsr<Index>&,    \
                              const std::string&);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
