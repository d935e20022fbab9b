#include "inquiry.hpp"

#include <numeric>

#include "cost_model.hpp"
#include "espalier/base/work.hpp"

namespace espalier {

namespace {

// For each rank, the sum of its counts[rank] sizes out of `sizes`, where they stand one after another.
template <class Size>
std::vector<std::int64_t> sum_by_rank(std::span<const std::int64_t> counts, const Buffer<Size>& sizes) {
  std::vector<std::int64_t> sums;
  auto from = sizes.begin();
  for (const auto count : counts) {
    sums.push_back(std::accumulate(from, from + count, std::int64_t{0}));
    from += count;
  }
  return sums;
}

}  // namespace

template <class Index>
Inquiry<Index>::Inquiry(const Communicator& group, const StackedFrontier& q,
                        const std::function<int(std::int64_t)>& server_of, const ProductShape& shape,
                        const std::string& label)
    : group_(group),
      shape_(shape),
      label_(label),
      rows_(static_cast<double>(q.rows())),
      batches_(static_cast<double>(q.batches())),
      counts_(static_cast<std::size_t>(group.size()), 0),
      batches_of_(static_cast<std::size_t>(group.size())),
      place_of_(q.vertices.size()) {
  const auto size = static_cast<std::size_t>(group.size());

  // 1. Rows by server, and lines for the batches they belong to.
  std::vector<int> server(q.vertices.size());
  std::vector<std::vector<Line>> lines(size);
  for (std::int64_t b = 0; b < q.batches(); ++b)
    for (auto r = q.begin(b); r < q.end(b); ++r) {
      const auto s = static_cast<std::size_t>(server_of(q.vertices[static_cast<std::size_t>(r)]));
      server[static_cast<std::size_t>(r)] = static_cast<int>(s);
      ++counts_[s];
      if (batches_of_[s].empty() || batches_of_[s].back() != b) {
        batches_of_[s].push_back(b);
        lines[s].push_back({q.numbers[static_cast<std::size_t>(b)], 0});
      }
      ++lines[s].back().rows;
    }
  std::vector<std::int64_t> next(size);
  std::exclusive_scan(counts_.begin(), counts_.end(), next.begin(), std::int64_t{0});
  Buffer<Index> ids(q.vertices.size());
  for (std::size_t r = 0; r < q.vertices.size(); ++r) {
    place_of_[r] = next[static_cast<std::size_t>(server[r])]++;
    ids[static_cast<std::size_t>(place_of_[r])] = static_cast<Index>(q.vertices[r]);
  }
  // Owner, count, scatter of ids and places.
  charge(Work{.gathers = rows_, .bytes = 24 * rows_, .launches = 4});

  // 2. Lines, then ids.
  Buffer<Line> all_lines;
  for (const auto& of_server : lines) all_lines.insert(all_lines.end(), of_server.begin(), of_server.end());
  const auto asked_lines =
      group.all_to_all_v(std::span<const Line>(all_lines), line_counts(), label + "/ids");
  asked_lines_ = asked_lines.counts;
  std::size_t line = 0;
  for (const auto count : asked_lines.counts) {
    const auto before = segments_.back();
    for (std::int64_t k = 0; k < count; ++k)
      segments_.push_back(segments_.back() + asked_lines.data[line++].rows);
    asked_counts_.push_back(segments_.back() - before);
  }
  group.all_to_all_v(std::span<const Index>(ids), counts_, asked_counts_, asked_, label + "/ids");
  keys_.resize(asked_.size());
  for (std::size_t s = 0; s + 1 < segments_.size(); ++s)
    for (auto r = segments_[s]; r < segments_[s + 1]; ++r)
      keys_[static_cast<std::size_t>(r)] = {asked_[static_cast<std::size_t>(r)], asked_lines.data[s].batch};
  charge(Work{.bytes = 20 * static_cast<double>(asked_.size()), .launches = 2});

  const auto expected = inquiry_cost(group.size(), batches_, rows_, shape_);
  group.traffic().predict(label + "/ids", expected.messages, expected.bytes);
}

template <class Index>
std::vector<std::int64_t> Inquiry<Index>::line_counts() const {
  std::vector<std::int64_t> counts;
  for (const auto& batches : batches_of_) counts.push_back(std::ssize(batches));
  return counts;
}

template <class Index>
template <class Id>
RowEntries<Id> Inquiry<Index>::send_back(const RowEntries<Id>& answers, bool values,
                                         const std::string& back) const {
  Buffer<Index> sizes(static_cast<std::size_t>(answers.rows()));
  for (std::int64_t r = 0; r < answers.rows(); ++r)
    sizes[static_cast<std::size_t>(r)] = static_cast<Index>(answers.size(r));
  Buffer<Index> my_sizes;
  group_.all_to_all_v(std::span<const Index>(sizes), asked_counts_, counts_, my_sizes, back);
  RowEntries<Id> mine;
  mine.offsets.resize(my_sizes.size() + 1);
  std::inclusive_scan(my_sizes.begin(), my_sizes.end(), mine.offsets.begin() + 1, std::plus<>(),
                      std::int64_t{0});
  const auto sent = sum_by_rank(asked_counts_, sizes), received = sum_by_rank(counts_, my_sizes);
  group_.all_to_all_v(std::span<const Id>(answers.indices), sent, received, mine.indices, back);
  if (values) group_.all_to_all_v(std::span<const float>(answers.values), sent, received, mine.values, back);
  charge(Work{.bytes = 12 * static_cast<double>(sizes.size() + my_sizes.size()), .launches = 3});

  const auto expected = rows_cost(group_.size(), rows_, static_cast<double>(mine.offsets.back()), sizeof(Id),
                                  values ? 4 : 0, shape_);
  group_.traffic().predict(back, expected.messages, expected.bytes);
  return mine;
}

template <class Index>
void Inquiry<Index>::reduce(const Cpu& cpu, const std::vector<SparseSum<Index>>& partial,
                            std::int64_t columns, const SumVisitor<Index>& visit) const {
  // 1. Partial sums, segment after segment, to the askers.
  Buffer<std::int64_t> sizes, my_sizes;
  Buffer<Index> sent_columns, my_columns;
  Buffer<std::uint64_t> sent_sums, my_sums;
  for (const auto& part : partial) {
    sizes.push_back(std::ssize(part.columns));
    sent_columns.insert(sent_columns.end(), part.columns.begin(), part.columns.end());
    sent_sums.insert(sent_sums.end(), part.sums.begin(), part.sums.end());
  }
  const auto lines = line_counts();
  const auto label = label_ + "/reduction";
  group_.all_to_all_v(std::span<const std::int64_t>(sizes), asked_lines_, lines, my_sizes, label);
  const auto sent = sum_by_rank(asked_lines_, sizes), received = sum_by_rank(lines, my_sizes);
  group_.all_to_all_v(std::span<const Index>(sent_columns), sent, received, my_columns, label);
  group_.all_to_all_v(std::span<const std::uint64_t>(sent_sums), sent, received, my_sums, label);
  const auto expected = sums_cost(group_.size(), batches_, static_cast<double>(my_columns.size()), shape_);
  group_.traffic().predict(label, expected.messages, expected.bytes);

  // 2. The parts of each batch, one from every server that has rows of it.
  struct Part {
    const Index* indices;
    const std::uint64_t* sums;
    std::int64_t size;
  };
  std::vector<std::vector<Part>> parts(static_cast<std::size_t>(batches_));
  std::int64_t at = 0;
  std::size_t line = 0;
  for (const auto& batches : batches_of_)
    for (const auto batch : batches) {
      parts[static_cast<std::size_t>(batch)].push_back(
          {my_columns.data() + at, my_sums.data() + at, my_sizes[line]});
      at += my_sizes[line++];
    }
#pragma omp parallel num_threads(cpu.threads)
  {
    SparseSum<Index> sum;
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t batch = 0; batch < std::ssize(parts); ++batch) {
      const auto& of_batch = parts[static_cast<std::size_t>(batch)];
      sum_rows(
          std::span<const Part>(of_batch), columns,
          [](const Part& part, std::int64_t k) { return part.sums[k]; }, sum);
      visit(batch, sum);
    }
  }
}

template <class Index>
std::vector<std::span<const Index>> Inquiry<Index>::send_picks(
    std::span<const std::span<const Index>> columns, Buffer<Index>& storage) const {
  Buffer<std::int64_t> sizes, asked_sizes;
  Buffer<Index> picks;
  for (const auto& batches : batches_of_)
    for (const auto batch : batches) {
      const auto& of_batch = columns[static_cast<std::size_t>(batch)];
      sizes.push_back(std::ssize(of_batch));
      picks.insert(picks.end(), of_batch.begin(), of_batch.end());
    }
  const auto lines = line_counts();
  const auto label = label_ + "/picks";
  group_.all_to_all_v(std::span<const std::int64_t>(sizes), lines, asked_lines_, asked_sizes, label);
  const auto sent = sum_by_rank(lines, sizes), received = sum_by_rank(asked_lines_, asked_sizes);
  group_.all_to_all_v(std::span<const Index>(picks), sent, received, storage, label);
  double all_picks = 0;
  for (const auto& of_batch : columns) all_picks += static_cast<double>(of_batch.size());
  const auto expected = picks_cost(group_.size(), batches_, all_picks, shape_);
  group_.traffic().predict(label, expected.messages, expected.bytes);

  std::vector<std::span<const Index>> lists;
  std::size_t at = 0;
  for (const auto size : asked_sizes) {
    lists.emplace_back(storage.data() + at, static_cast<std::size_t>(size));
    at += static_cast<std::size_t>(size);
  }
  return lists;
}

template <class Id>
RowEntries<Id> in_order(const Cpu& cpu, const RowEntries<Id>& answers,
                        std::span<const std::int64_t> place_of) {
  const auto rows = std::ssize(place_of);
  RowEntries<Id> result;
  result.offsets.resize(place_of.size() + 1);
  for (std::int64_t q = 0; q < rows; ++q)
    result.offsets[static_cast<std::size_t>(q) + 1] =
        result.begin(q) + answers.size(place_of[static_cast<std::size_t>(q)]);
  result.indices.resize(answers.indices.size());
  result.values.resize(answers.values.size());
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t q = 0; q < rows; ++q) {
    const auto from = answers.begin(place_of[static_cast<std::size_t>(q)]);
    std::copy_n(answers.indices.begin() + from, result.size(q), result.indices.begin() + result.begin(q));
    if (!answers.values.empty())
      std::copy_n(answers.values.begin() + from, result.size(q), result.values.begin() + result.begin(q));
  }
  charge(Work{.gathers = 2.0 * static_cast<double>(rows),
              .bytes = 8.0 * static_cast<double>(rows) + 2.0 * entry_bytes(answers),
              .launches = 2});
  return result;
}

#define ESPALIER_INSTANTIATE(Index)                                                                        \
  template class Inquiry<Index>;                                                                           \
  template RowEntries<Index> Inquiry<Index>::send_back(const RowEntries<Index>&, bool, const std::string&) \
      const;
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE
template RowEntries<std::int32_t> Inquiry<std::int64_t>::send_back(const RowEntries<std::int32_t>&, bool,
                                                                   const std::string&) const;
template RowEntries<std::int32_t> in_order(const Cpu&, const RowEntries<std::int32_t>&,
                                           std::span<const std::int64_t>);
template RowEntries<std::int64_t> in_order(const Cpu&, const RowEntries<std::int64_t>&,
                                           std::span<const std::int64_t>);

}  // namespace espalier
