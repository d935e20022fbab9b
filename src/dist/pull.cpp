// Schedule `pull` of the distributed product: ids travel to the owners, whole rows travel back, each distinct
// row once.
//
//   asker                              owner (same process column)
//   distinct remote ids, by owner  ──► ids
//   row sizes                      ◄── sizes of those rows
//   rows (indices, then values)    ◄── the rows, one after another
#include <numeric>

#include "espalier/base/id_map.hpp"
#include "espalier/dist/product.hpp"

namespace espalier {

namespace {

// The distinct remote ids of q grouped by owner, and for every q its place in that order (-1: local).
struct Request {
  Buffer<std::int64_t> ids;
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> place_of;  // [q]
};

template <class Index>
Request make_request(std::span<const std::int64_t> q, const DistCsr<Index>& a) {
  Request request;
  request.counts.assign(static_cast<std::size_t>(a.partition.parts()), 0);
  request.place_of.assign(q.size(), -1);
  std::int64_t remote = 0;
  for (const auto id : q) remote += !a.is_local(id);
  IdMap seen(remote);
  std::vector<std::int64_t> distinct;
  std::vector<int> owner;
  for (std::size_t i = 0; i < q.size(); ++i) {
    if (a.is_local(q[i])) continue;
    request.place_of[i] = seen.insert(q[i]);
    if (seen.size() == std::ssize(distinct)) continue;
    distinct.push_back(q[i]);
    owner.push_back(a.partition.owner(q[i]));
    ++request.counts[static_cast<std::size_t>(owner.back())];
  }
  // A stable counting sort by owner turns the order of first appearance into the order of the request.
  std::vector<std::int64_t> next(request.counts.size());
  std::exclusive_scan(request.counts.begin(), request.counts.end(), next.begin(), std::int64_t{0});
  std::vector<std::int64_t> sorted_place(distinct.size());
  request.ids.resize(distinct.size());
  for (std::size_t k = 0; k < distinct.size(); ++k) {
    sorted_place[k] = next[static_cast<std::size_t>(owner[k])]++;
    request.ids[static_cast<std::size_t>(sorted_place[k])] = distinct[k];
  }
  for (auto& place : request.place_of)
    if (place >= 0) place = sorted_place[static_cast<std::size_t>(place)];
  return request;
}

// The rows `ids` of the local block one after another; sizes and how many entries go to each asker.
template <class Index>
struct Reply {
  Buffer<std::int64_t> sizes;
  Buffer<Index> indices;
  Buffer<float> values;
  std::vector<std::int64_t> entry_counts;
};

template <class Index>
Reply<Index> make_reply(const Cpu& cpu, const Received<std::int64_t>& asked, const DistCsr<Index>& a) {
  Reply<Index> reply;
  const auto rows = std::ssize(asked.data);
  reply.sizes.resize(asked.data.size());
  Buffer<std::int64_t> offsets(asked.data.size() + 1);
  offsets[0] = 0;
  for (std::int64_t k = 0; k < rows; ++k) {
    const auto i = static_cast<std::size_t>(k);
    reply.sizes[i] = a.local.row_size(asked.data[i] - a.first_row());
    offsets[i + 1] = offsets[i] + reply.sizes[i];
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
  return reply;
}

template <class Index>
Csr<Index> exchange_rows(const Cpu& cpu, const Request& request, const DistCsr<Index>& a,
                         std::string_view label) {
  const auto& column = a.grid->column_comm();
  const auto asked = column.all_to_all_v(std::span<const std::int64_t>(request.ids), request.counts, label);
  const auto reply = make_reply(cpu, asked, a);
  Buffer<std::int64_t> sizes;
  column.all_to_all_v(std::span<const std::int64_t>(reply.sizes), asked.counts, request.counts, sizes, label);
  Csr<Index> rows;
  rows.rows = std::ssize(sizes);
  rows.columns = a.local.columns;
  rows.indptr.resize(sizes.size() + 1);
  std::inclusive_scan(sizes.begin(), sizes.end(), rows.indptr.begin() + 1);
  std::vector<std::int64_t> entry_counts;
  std::int64_t at = 0;
  for (const auto count : request.counts) {
    entry_counts.push_back(rows.indptr[static_cast<std::size_t>(at + count)] -
                           rows.indptr[static_cast<std::size_t>(at)]);
    at += count;
  }
  column.all_to_all_v(std::span<const Index>(reply.indices), reply.entry_counts, entry_counts, rows.indices,
                      label);
  if (a.has_values)
    column.all_to_all_v(std::span<const float>(reply.values), reply.entry_counts, entry_counts, rows.values,
                        label);
  return rows;
}

template <class Index>
typename SelectedRows<Index>::Row view(const Csr<Index>& matrix, std::int64_t row) {
  return {matrix.indices.data() + matrix.row_begin(row),
          matrix.has_values() ? matrix.values.data() + matrix.row_begin(row) : nullptr, matrix.row_size(row)};
}

}  // namespace

template <class Index>
SelectedRows<Index> select_rows_pull(const Cpu& cpu, std::span<const std::int64_t> q, const DistCsr<Index>& a,
                                     std::string_view label) {
  SelectedRows<Index> p;
  Request request;
  if (a.partition.parts() > 1) {
    request = make_request(q, a);
    p.received = exchange_rows(cpu, request, a, label);
  }
  p.rows.resize(q.size());
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t k = 0; k < std::ssize(q); ++k) {
    const auto i = static_cast<std::size_t>(k);
    p.rows[i] =
        a.is_local(q[i]) ? view(a.local, q[i] - a.first_row()) : view(p.received, request.place_of[i]);
  }
  return p;
}

template SelectedRows<std::int32_t> select_rows_pull(const Cpu&, std::span<const std::int64_t>,
                                                     const DistCsr<std::int32_t>&, std::string_view);
template SelectedRows<std::int64_t> select_rows_pull(const Cpu&, std::span<const std::int64_t>,
                                                     const DistCsr<std::int64_t>&, std::string_view);

}  // namespace espalier
