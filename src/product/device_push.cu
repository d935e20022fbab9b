// Schedule `push` on GPUs: keys travel to the owners of the rows, in the process column; they apply the operation, and
// what remains of each row travels back. The messages are those of inquiry.hpp:
//
//   keeper                                 owner
//   [batch, rows] ..., ids             ──► lines, ids                      label/ids
//   results of each row                ◄── sizes, indices, values          label/rows
//
// The keys of a batch are neighbours in Q, so they are neighbours among the keys of one owner too: a line is a run of
// equal batch numbers. The host waits for the counts of runs and rows, for the rows of each asker, and for the entries
// of the answers.
#include "device_schedules.hpp"
#include "espalier/partition/group_by_owner.hpp"
#include "fetch_rows.hpp"

namespace espalier {

namespace {

struct Line {
  std::int64_t batch, rows;
};

/// What I ask: the rows of Q grouped by owner.
struct Question {
  OwnerGroups groups;
  DeviceArray<Line> lines;                        // [lines, at least]
  std::vector<std::int64_t> counts, line_counts;  // for each owner: rows, lines
  std::int64_t batches = 0;
};

/// heads[j]: does a line begin at place j of the grouped keys?
void find_lines(const Cuda& cuda, const RowKey* keys, std::int64_t count, const OwnerGroups& groups,
                DeviceArray<std::int64_t>& line_of, DeviceArray<Line>& lines) {
  const auto size = static_cast<std::size_t>(count);
  DeviceArray<std::int64_t> heads(size), starts(size + 1);
  line_of.resize(size + 1);
  lines.resize(size);
  auto *const head = heads.data(), *const start = starts.data(), *const number = line_of.data();
  auto* const line = lines.data();
  const auto* const order = groups.order.data();
  const auto* const owner = groups.sorted_owner.data();
  for_each(cuda, "find_lines", count, [=] __device__(std::int64_t j) {
    head[j] = j == 0 || owner[j] != owner[j - 1] || keys[order[j]].batch != keys[order[j - 1]].batch;
  });
  exclusive_sum(cuda, head, number, count);
  for_each(cuda, "begin_lines", count + 1, [=] __device__(std::int64_t j) {
    if (j == count || head[j] != 0) start[number[j]] = j;
  });
  for_each(cuda, "write_lines", count, [=] __device__(std::int64_t j) {
    if (head[j] != 0) line[number[j]] = {keys[order[j]].batch, start[number[j] + 1] - start[number[j]]};
  });
}

/// to = {where the rows of each part begin, where their lines begin, how many batches there are}.
void summarize(const Cuda& cuda, const RowKey* keys, std::int64_t count, const OwnerGroups& groups, int parts,
               const DeviceArray<std::int64_t>& line_of, DeviceArray<std::int64_t>& to) {
  to.resize(2 * (static_cast<std::size_t>(parts) + 1) + 1);
  fill_zero(cuda, to);
  auto* const summary = to.data();
  auto* const batches = reinterpret_cast<unsigned long long*>(summary + 2 * (parts + 1));
  const auto *const begin = groups.begin.data(), *const number = line_of.data();
  for_each(cuda, "summarize", parts + 1, [=] __device__(std::int64_t part) {
    summary[part] = begin[part];
    summary[parts + 1 + part] = number[begin[part]];
  });
  for_each(cuda, "count_batches", count, [=] __device__(std::int64_t k) {
    if (k == 0 || keys[k].batch != keys[k - 1].batch) atomicAdd(batches, 1ull);
  });
}

Question make_question(const Cuda& cuda, const RowKey* keys, std::int64_t count,
                       const RowPartition& partition) {
  Question question;
  DeviceArray<std::int64_t> vertices(static_cast<std::size_t>(count)), line_of, summary;
  auto* const vertex = vertices.data();
  for_each(cuda, "take_vertices", count, [=] __device__(std::int64_t k) { vertex[k] = keys[k].vertex; });
  const auto offsets = offsets_of(cuda, partition);
  const int parts = partition.parts();
  group_by_owner(cuda, vertex, count, offsets.data(), parts, -1, question.groups);
  find_lines(cuda, keys, count, question.groups, line_of, question.lines);
  summarize(cuda, keys, count, question.groups, parts, line_of, summary);
  const auto read = download(cuda, summary);
  const auto half = static_cast<std::size_t>(parts) + 1;
  question.counts = counts_between({read.data(), half});
  question.line_counts = counts_between({read.data() + half, half});
  question.batches = read.back();
  return question;
}

/// What others ask of me: keys and rows, asker after asker.
template <class Index>
struct Asked {
  DeviceArray<RowKey> keys;
  DeviceArray<RowView<Index>> rows;
  std::vector<std::int64_t> counts;  // of each asker
};

template <class Index>
Asked<Index> ask(const Cuda& cuda, const DeviceCommunicator& column, const Question& question,
                 const DeviceDistCsr<Index>& a, const std::string& label) {
  // 1. Lines.
  const auto asked_lines = column.host().exchange_counts(question.line_counts, label);
  const auto line_begins = begins_of(asked_lines);
  const auto lines = line_begins.back();
  DeviceArray<Line> arrived(static_cast<std::size_t>(lines));
  column.all_to_all_v(question.lines.data(), question.line_counts, arrived.data(), asked_lines, label);
  DeviceArray<std::int64_t> sizes(static_cast<std::size_t>(lines)),
      segments(static_cast<std::size_t>(lines) + 1);
  auto *const size = sizes.data(), *const segment = segments.data();
  const auto* const line = arrived.data();
  for_each(cuda, "rows_of_lines", lines, [=] __device__(std::int64_t l) { size[l] = line[l].rows; });
  exclusive_sum(cuda, size, segment, lines);
  Asked<Index> asked;
  asked.counts = counts_between(read_at(cuda, segment, line_begins));

  // 2. Ids.
  const auto rows = begins_of(asked.counts).back();
  DeviceArray<Index> ids(question.groups.ids.size()), asked_ids(static_cast<std::size_t>(rows));
  auto *const to = ids.data(), *const id = asked_ids.data();
  const auto* const grouped = question.groups.ids.data();
  for_each(cuda, "narrow_ids", static_cast<std::int64_t>(ids.size()),
           [=] __device__(std::int64_t j) { to[j] = static_cast<Index>(grouped[j]); });
  column.all_to_all_v(to, question.counts, id, asked.counts, label);

  // 3. The rows that they name.
  asked.keys.resize(static_cast<std::size_t>(rows));
  asked.rows.resize(static_cast<std::size_t>(rows));
  auto* const key = asked.keys.data();
  auto* const row = asked.rows.data();
  const auto local = rows_of(a.local);
  const auto first_row = a.host->first_row();
  for_each(cuda, "keys_of_lines", rows, [=] __device__(std::int64_t r) {
    key[r] = {id[r], line[segment_of(segment, lines, r)].batch};
    row[r] = local[id[r] - first_row];
  });
  return asked;
}

/// out = the answers, of which number j is that to row order[j] of Q.
template <class Index>
void put_in_order(const Cuda& cuda, const DeviceRowEntries<Index>& answers, const std::int64_t* order,
                  std::int64_t count, bool with_values, DeviceRowEntries<Index>& out) {
  DeviceArray<RowView<Index>> rows(static_cast<std::size_t>(count));
  DeviceArray<std::int64_t> sizes(static_cast<std::size_t>(count));
  auto* const row = rows.data();
  auto* const size = sizes.data();
  const RowsInMemory<Index> from = {answers.offsets.data(), answers.indices.data(),
                                    with_values ? answers.values.data() : nullptr};
  for_each(cuda, "answers_in_order", count, [=] __device__(std::int64_t j) {
    row[order[j]] = from[j];
    size[order[j]] = from[j].size;
  });
  out.offsets.resize(static_cast<std::size_t>(count) + 1);
  exclusive_sum(cuda, size, out.offsets.data(), count);
  out.indices.resize(answers.indices.size());
  out.values.resize(with_values ? answers.indices.size() : 0);
  copy_entries(cuda, row, out.offsets.data(), count, static_cast<std::int64_t>(answers.indices.size()),
               out.indices.data(), with_values ? out.values.data() : nullptr);
}

}  // namespace

template <class Index>
void push_product(const Cuda& cuda, const DeviceCommunicator& column, const RowKey* keys, std::int64_t count,
                  const DeviceDistCsr<Index>& a, const std::string& label,
                  const DeviceRowOperation<Index>& operation, DeviceRowEntries<Index>& out) {
  const bool values = operation.has_values();
  const auto question = make_question(cuda, keys, count, a.host->partition);
  const auto asked = ask(cuda, column, question, a, label + "/ids");

  DeviceRowEntries<Index> results, answers;
  operation.apply(cuda, asked.rows.data(), asked.keys.data(), static_cast<std::int64_t>(asked.keys.size()),
                  results);
  RowExchange<Index> back(cuda, column, results.offsets.data(), asked.counts, question.counts,
                          label + "/rows");
  back.send(cuda, results.indices.data(), results.values.data(), values, answers);
  put_in_order(cuda, answers, question.groups.order.data(), count, values, out);

  const auto shape = shape_of(*a.host);
  auto& traffic = column.host().traffic();
  const auto ids =
      inquiry_cost(column.size(), static_cast<double>(question.batches), static_cast<double>(count), shape);
  traffic.predict(label + "/ids", ids.messages, ids.bytes);
  const auto rows = rows_cost(column.size(), static_cast<double>(count), static_cast<double>(back.received()),
                              sizeof(Index), values ? 4 : 0, shape);
  traffic.predict(label + "/rows", rows.messages, rows.bytes);
}

#define ESPALIER_INSTANTIATE(Index)                                                               \
  template void push_product(const Cuda&, const DeviceCommunicator&, const RowKey*, std::int64_t, \
                             const DeviceDistCsr<Index>&, const std::string&,                     \
                             const DeviceRowOperation<Index>&, DeviceRowEntries<Index>&);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
