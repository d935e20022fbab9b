// Rows between the ranks of a group, for every space: entries sent field by field, and whole rows
// of A fetched from the ranks of a process column that hold them, each distinct row once.
//
//   owner rank of a batch              owner of rows (same process column)
//   distinct remote ids, by owner  ──► ids                               label/ids
//   row sizes, then rows           ◄── those rows, one after another     label/rows
#pragma once

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "cost_model.hpp"
#include "join_rows.hpp"
#include "row_views.hpp"

namespace espalier {

/// Rows to the ranks of a group, sizes first (as numbers of type Size), then each field: counts[r]
/// rows to rank r, my_counts[r] from it. `values`: do rows hold values, anywhere? Collective.
template <class Size, class Id, class Space>
Entries<Id, Space> send_entries(const Space& space, const CommunicatorOn<Space>& group,
                                const Entries<Id, Space>& rows, std::span<const std::int64_t> counts,
                                std::span<const std::int64_t> my_counts, bool values,
                                const std::string& label) {
  const auto begins = begins_of(counts), my_begins = begins_of(my_counts);
  Array<Space, Size> sizes(begins.back()), my_sizes(my_begins.back());
  sizes_of(space, rows.offsets.data(), begins.back(), sizes.data());
  group.all_to_all_v(sizes.data(), counts, my_sizes.data(), my_counts, label);
  Entries<Id, Space> mine;
  mine.offsets.resize(my_begins.back() + 1);
  sum_sizes(space, my_sizes.data(), my_begins.back(), mine.offsets.data());
  const auto sent = counts_between(read_at(space, rows.offsets.data(), begins)),
             received = counts_between(read_at(space, mine.offsets.data(), my_begins));
  mine.ids.resize(std::accumulate(received.begin(), received.end(), std::int64_t{0}));
  auto pending = group.begin_all_to_all_v(rows.ids.data(), sent, mine.ids.data(), received, label);
  if (values) {
    mine.values.resize(mine.ids.size());
    group.all_to_all_v(rows.values.data(), sent, mine.values.data(), received, label);
  }
  pending.finish();
  return mine;
}

/// The rows of A that a rank looks at: in its own block, or fetched. Of a matrix that is cut pieces
/// are asked of all holders of a row, and joined.
template <class Index, class Space>
class FetchedRows {
 public:
  /// The different ones of list [count]. Local.
  template <class Id>
  FetchedRows(const Space& space, const Id* list, std::int64_t count, const DistCsr<Index, Space>& a,
              std::string label)
      : a_(a),
        label_(std::move(label)),
        wanted_(a.cut ? find_pieces<Id, Index>(space, list, count, a.rows(), a.cut_view.holders, a.parts(),
                                               a.part)
                      : find_distinct<Id, Index>(space, list, count, a.owners, a.part)),
        begins_(begins_of(wanted_.groups.counts)),
        list_size_(count),
        views_(wanted_.groups.ids.size()) {
    a.grid->traffic().count(MemoryStep::kFindDistinct, {.rows = count, .entries = wanted_.groups.size()});
    view_rows(space, wanted_.groups.ids.data() + begins_.back(), wanted_.groups.size() - begins_.back(),
              a.local, a.row_of(space), views_.data() + begins_.back());
    serve(space, views_.data() + begins_.back(), wanted_.groups.size() - begins_.back());
  }

  /// Asks the ranks first .. last-1 of the process column for the wanted rows of their blocks (but
  /// my own). Collective over the column. Books under label/ids and label/rows.
  void fetch(const Space& space, int first, int last) {
    const auto& column = a_.grid->column_comm();
    std::vector<std::int64_t> counts(wanted_.groups.counts.size(), 0);
    for (int part = first; part < last; ++part) counts[part] = wanted_.groups.counts[part];
    const auto asked_counts = column.host().exchange_counts(counts, label_ + "/ids");
    const auto asked = begins_of(asked_counts).back();
    Array<Space, Index> ids(asked);
    column.all_to_all_v(wanted_.groups.ids.data() + begins_[first], counts, ids.data(), asked_counts,
                        label_ + "/ids");
    Array<Space, RowView<Index>> rows(asked);
    view_rows(space, ids.data(), asked, a_.local, a_.row_of(space), rows.data());
    serve(space, rows.data(), asked);
    const auto reply = copy_rows(space, rows.data(), asked, a_.has_values);
    a_.grid->traffic().count(MemoryStep::kReply, {.rows = asked, .bytes = reply.bytes()});
    keep(space, first,
         send_entries<Index>(space, column, reply, asked_counts, counts, a_.has_values, label_ + "/rows"));
  }

  /// The block row of rank `stage` goes to all of the column; wanted rows are kept. Collective.
  void receive_block(const Space& space, int stage) {
    const auto& column = a_.grid->column_comm();
    const auto rows = a_.ownership.size(stage);
    const auto back = label_ + "/rows";
    Csr<Index, Space> block;
    const bool mine = stage == a_.part;
    Array<Space, Index> sizes(rows);
    if (mine) sizes_of(space, a_.local.indptr.data(), rows, sizes.data());
    column.broadcast(sizes.data(), rows, stage, back);
    block.indptr.resize(rows + 1);
    sum_sizes(space, sizes.data(), rows, block.indptr.data());
    const auto entries = read_at(space, block.indptr.data(), {&rows, 1})[0];
    if (!mine) block.indices.resize(entries);
    if (!mine && a_.has_values) block.values.resize(entries);
    block.weighted = a_.has_values;
    // The root's own arrays are only read.
    const auto* const from = mine ? &a_.local : &block;
    column.broadcast(const_cast<Index*>(from->indices.data()), entries, stage, back);
    if (a_.has_values) column.broadcast(const_cast<float*>(from->values.data()), entries, stage, back);

    const auto shape = shape_of(a_);
    const double bytes = static_cast<double>(rows) * shape.index_bytes +
                         static_cast<double>(entries) * (shape.index_bytes + shape.value_bytes);
    a_.grid->traffic().predict(back, crossing(column.size()) * (a_.has_values ? 3 : 2),
                               crossing(column.size()) * bytes);
    if (mine) return;
    const auto count = wanted_.groups.counts[stage];
    Array<Space, RowView<Index>> wanted(count);
    const auto places = a_.owners.places(space, stage);
    view_rows(space, wanted_.groups.ids.data() + begins_[stage], count, block, places.view, wanted.data());
    keep(space, stage, copy_rows(space, wanted.data(), count, a_.has_values));
  }

  /// One view for each id of the list. All wanted rows must be here. They stay as long as this.
  Array<Space, RowView<Index>> views(const Space& space) {
    Array<Space, RowView<Index>> rows(list_size_);
    const auto* distinct = views_.data();
    if (a_.cut) {
      joined_ = join_rows<Index>(space, std::span<const RowView<Index>>(views_.data(), views_.size()),
                                 wanted_.groups.order.data(), wanted_.rows, a_.has_values);
      distinct = joined_.rows.data();
    }
    take(space, distinct, wanted_.place_of.data(), list_size_, rows.data());
    a_.grid->traffic().count(MemoryStep::kTakeViews, {.rows = list_size_});
    return rows;
  }

  /// Books what is expected of fetching these rows from `asked` block rows in so many exchanges.
  void predict(const Space& space, int asked, int exchanges) const {
    const auto shape = shape_of(a_);
    const auto distinct = wanted_.groups.size();
    const auto entries = count_entries(space, views_.data(), distinct);
    const auto cost = fetch_cost(shape.parts, asked, exchanges, static_cast<double>(distinct),
                                 static_cast<double>(entries), shape);
    espalier::predict(a_.grid->traffic(), label_ + "/ids", cost.ids);
    espalier::predict(a_.grid->traffic(), label_ + "/rows", cost.rows);
  }

 private:
  void serve(const Space& space, const RowView<Index>* rows, std::int64_t count) const {
    if constexpr (std::is_same_v<Space, Cpu>)
      a_.grid->traffic().serve(label_, {.rows = count, .entries = count_entries(space, rows, count)});
  }
  void keep(const Space& space, int first, Entries<Index, Space> rows) {
    view_entries(space, rows, a_.has_values, nullptr, views_.data() + begins_[first]);
    fetched_.push_back(std::move(rows));
  }

  const DistCsr<Index, Space>& a_;
  std::string label_;
  DistinctIds<Index, Space> wanted_;  // my own last
  std::vector<std::int64_t> begins_;  // [parts + 1] of the wanted ids of each owner, and my own
  std::int64_t list_size_;
  Array<Space, RowView<Index>> views_;          // [wanted]
  std::vector<Entries<Index, Space>> fetched_;  // what they refer to
  PiecedRows<Index, Space> joined_;             // of a cut matrix, whole rows
};

}  // namespace espalier
