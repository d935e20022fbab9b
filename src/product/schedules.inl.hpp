// The schedules behind open_product, for every space: product.cpp and dist_csr.cu instantiate them.
#pragma once

#include "row_request.inl.hpp"

namespace espalier {

/// Schedule `pull`: every rank asks the owners in its process column for the distinct rows that its
/// batches need and does the rest by itself. With one block row nothing is asked.
template <class Index, class Space>
class PulledProduct final : public Product<Index, Space> {
 public:
  PulledProduct(const Space& space, const FrontierOn<Space>& q, const DistCsr<Index, Space>& a,
                const std::string& label)
      : q_(q), rows_{{}, q.offsets, a.local.columns, a.has_values} {
    if (a.parts() == 1) {
      rows_.rows.resize(q.rows());
      view_rows(space, q.vertices.data(), q.rows(), a.local, a.row_of(space), rows_.rows.data());
      return;
    }
    fetched_.emplace(space, q.vertices.data(), q.rows(), a, label);
    fetched_->fetch(space, 0, a.parts());
    fetched_->predict(space, a.parts(), 1);
    rows_.rows = fetched_->views(space);
  }

  Entries<Index, Space> apply(const Space& space, const RowOperation<Index, Space>& operation) override {
    const auto keys = make_keys(space, q_.vertices.data(), q_.offsets, q_.numbers);
    Entries<Index, Space> out;
    operation.apply(space, rows_.rows.data(), keys.data(), q_.rows(), out);
    return out;
  }

  void sum(const Space& space, const EntryWeight& weight, const SumVisitor<Index, Space>& visit,
           const EarlierSums<Index>* earlier) override {
    if constexpr (std::is_same_v<Space, Cpu>)
      sum_segments(space, rows_, weight, visit, earlier);
    else
      sum_segments(space, rows_, weight, visit);
  }

  bool uses_earlier_sums() const override { return std::is_same_v<Space, Cpu>; }

  Entries<std::int32_t, Space> columns(const Space& space, const Index* columns,
                                       const SharedList<std::int64_t, Space>& offsets) override {
    return select_columns(space, rows_, columns, offsets);
  }

 private:
  const FrontierOn<Space>& q_;
  SegmentedRows<Index, Space> rows_;  // of Q
  std::optional<FetchedRows<Index, Space>> fetched_;
};

/// What `push` and `staged` share: rows are served by other ranks of a group. Sums and column
/// selections are computed there; what travels for `apply` is each schedule's own.
template <class Index, class Space>
class ServedProduct : public Product<Index, Space> {
 public:
  /// `servers`: of the vertices. `label_back`: of the answers to rows. Collective over `group`.
  ServedProduct(const Space& space, const CommunicatorOn<Space>& group, const FrontierOn<Space>& q,
                const OwnersOn<Space>& servers, const DistCsr<Index, Space>& a, const std::string& label,
                const std::string& label_back)
      : a_(a),
        q_(q),
        request_(space, group, q, servers, a.cut.get(), shape_of(a), label),
        served_{{}, request_.segments(), a.local.columns, a.has_values},
        label_(label),
        label_back_(label_back) {}

  void sum(const Space& space, const EntryWeight& weight, const SumVisitor<Index, Space>& visit,
           const EarlierSums<Index>*) final {
    request_.reduce(space, stack_sums(space, served_, weight), a_.local.columns, visit);
  }

  Entries<std::int32_t, Space> columns(const Space& space, const Index* columns,
                                       const SharedList<std::int64_t, Space>& offsets) final {
    const auto picks = request_.send_picks(space, columns, offsets);
    const auto met = select_columns(space, served_, picks.ids.data(), picks.offsets);
    a_.grid->traffic().serve(label_, {.picks = met.entries()});
    return in_order(space, request_.send_back(space, met, a_.has_values, label_back_), a_.has_values);
  }

 protected:
  std::int64_t served_rows() const { return static_cast<std::int64_t>(served_.rows.size()); }

  /// Answers, in the order of the request, put into the order of Q's rows.
  template <class Id>
  Entries<Id, Space> in_order(const Space& space, const Entries<Id, Space>& answers, bool values) const {
    const auto ordered = in_order_of_q(space, answers, values);
    a_.grid->traffic().count(MemoryStep::kInOrder, {.rows = q_.rows(), .bytes = answers.bytes()});
    return copy_rows(space, ordered.rows.data(), q_.rows(), values);
  }
  /// Views of answers, and what pieces were joined to.
  template <class Id>
  struct OrderedRows {
    Array<Space, RowView<Id>> rows;
    ForSpace<Space, Entries<Id>, std::monostate> joined = {};
  };
  template <class Id>
  OrderedRows<Id> in_order_of_q(const Space& space, const Entries<Id, Space>& answers, bool values) const {
    if constexpr (std::is_same_v<Space, Cpu>)
      if (a_.cut) {
        Buffer<RowView<Id>> pieces(answers.rows());
        view_entries(space, answers, values, nullptr, pieces.data());
        auto whole =
            join_rows<Id>(space, std::span<const RowView<Id>>(pieces), request_.order(), q_.rows(), values);
        return {std::move(whole.rows), std::move(whole.joined)};
      }
    OrderedRows<Id> ordered = {Array<Space, RowView<Id>>(q_.rows())};
    view_entries(space, answers, values, request_.order(), ordered.rows.data());
    return ordered;
  }
  /// The operation where the batches are kept, on whole rows that come from who serves them.
  Entries<Index, Space> apply_at_owner_rank(const Space& space,
                                            const RowOperation<Index, Space>& operation) const {
    const auto whole = copy_rows(space, served_.rows.data(), served_rows(), a_.has_values);
    a_.grid->traffic().count(MemoryStep::kWholeRows, {.rows = served_rows(), .bytes = whole.bytes()});
    const auto mine = request_.send_back(space, whole, a_.has_values, label_back_);
    const auto ordered = in_order_of_q(space, mine, a_.has_values);
    const auto keys = make_keys(space, q_.vertices.data(), q_.offsets, q_.numbers);
    Entries<Index, Space> out;
    operation.apply(space, ordered.rows.data(), keys.data(), q_.rows(), out);
    return out;
  }

  const DistCsr<Index, Space>& a_;
  const FrontierOn<Space>& q_;
  RowRequest<Index, Space> request_;
  SegmentedRows<Index, Space> served_;  // the rows asked of me, set by the schedule
  std::string label_, label_back_;
};

/// Schedule `push`: ids travel to the owners of the rows, in the process column; they draw, sum and
/// select, and send back only what remains. A draw depends on its key alone (design, 4.1). Of rows
/// that are cut ids travel to all holders: sums of pieces add up, selections of columns are joined,
/// draws as they say (JoinPieces).
template <class Index, class Space>
class PushedProduct final : public ServedProduct<Index, Space> {
 public:
  PushedProduct(const Space& space, const FrontierOn<Space>& q, const DistCsr<Index, Space>& a,
                const std::string& label)
      : ServedProduct<Index, Space>(space, a.grid->column_comm(), q, a.owners, a, label, label + "/rows") {
    const auto& asked = this->request_.asked();
    this->served_.rows.resize(asked.size());
    view_rows(space, asked.data(), this->served_rows(), a.local, a.row_of(space), this->served_.rows.data());
    a.grid->traffic().count(MemoryStep::kViewRows, {.rows = this->served_rows()});
    if constexpr (std::is_same_v<Space, Cpu>)
      a.grid->traffic().serve(
          label, {.rows = this->served_rows(),
                  .entries = count_entries(space, this->served_.rows.data(), this->served_rows())});
  }

  Entries<Index, Space> apply(const Space& space, const RowOperation<Index, Space>& operation) override {
    const bool cut = this->a_.cut != nullptr;
    if (cut && (operation.join() == JoinPieces::kNever || !this->a_.cut->whole))
      return this->apply_at_owner_rank(space, operation);
    const auto keys = this->request_.keys(space);
    Entries<Index, Space> results;
    if constexpr (std::is_same_v<Space, Cpu>) {
      if (cut)
        operation.apply_to_pieces(space, this->served_.rows.data(),
                                  {this->a_.cut->whole.get(), this->a_.row_of(space)}, keys.data(),
                                  this->served_rows(), results);
    }
    if (!cut) operation.apply(space, this->served_.rows.data(), keys.data(), this->served_rows(), results);
    const bool values = operation.has_values();
    this->a_.grid->traffic().serve(this->label_, {.picks = results.entries()});
    auto mine = this->request_.send_back(space, results, values, this->label_back_);
    if constexpr (std::is_same_v<Space, Cpu>)
      if (cut && operation.join() == JoinPieces::kMerge) return merge(space, operation, mine);
    return this->in_order(space, mine, values);
  }

 private:
  // The results of candidates. The first holder of a row that has several sends its support.
  Entries<Index> merge(const Cpu& cpu, const RowOperation<Index>& operation,
                       const Entries<Index>& candidates) const {
    const auto holders = this->a_.cut->holders->of();
    const auto sends = [&](std::int64_t vertex, int holder) {
      const auto set = holders(vertex);
      return std::popcount(set) > 1 && std::countr_zero(set) == holder;
    };
    const HeldWholeRows whole = {this->a_.cut->whole.get(), this->a_.row_of(cpu)};
    Buffer<RowSupport> sent, supports(this->q_.rows(), RowSupport());
    for (const auto vertex : this->request_.asked())
      if (sends(vertex, this->a_.part)) sent.push_back(*whole(vertex, 0).support);
    this->request_.send_back_some(sent, sends, this->label_back_, supports);
    const bool values = operation.has_values();
    const auto ordered = this->in_order_of_q(cpu, candidates, values);
    const auto keys = make_keys(cpu, this->q_.vertices.data(), this->q_.offsets, this->q_.numbers);
    Entries<Index> results;
    operation.merge(cpu, ordered.rows.data(), supports.data(), keys.data(), this->q_.rows(), results);
    return results;
  }
};

/// Schedules `staged` and `staged-oblivious`: Algorithm 2 of Tripathy et al. 2024.
///
/// Process row P(i,:) computes P_i = sum over k of Q_ik A_k for the batches that its c ranks keep.
/// Process column j takes the block rows k of its stages, a contiguous share of the p/c blocks that
/// differs by at most one between columns (p/c^2 where c^2 divides p; columns beyond p/c have none
/// and only take part in the reduction):
///
///     1.  Q_ik goes to the column whose stages hold block k, along the row
///     2.  for each stage k of column j: P(i,j) gathers NnzCols(Q_ik) to P(k,j), which sends those
///         rows of A_k (oblivious: P(k,j) broadcasts A_k down the column)
///     3.  partial results of the rows of these blocks
///     4.  a reduce-scatter along the row: partial results go to the one rank that keeps the batch,
///         directly, so any c is right and no draw is made twice
///
/// Step 4 moves whole rows of P for `apply` (each row of a selection comes from one column, so the
/// sum is a concatenation), merged partial sums for `sum`, and the entries that meet the picks for
/// `columns`, for which the rows fetched in step 2 are used again.
template <class Index, class Space>
class StagedProduct final : public ServedProduct<Index, Space> {
 public:
  /// `stages`: the blocks [stages.begin(j), stages.end(j)) are those of process column j.
  StagedProduct(const Space& space, const FrontierOn<Space>& q, const DistCsr<Index, Space>& a,
                bool oblivious, const std::string& label, const RowPartition& stages)
      : ServedProduct<Index, Space>(space, a.grid->row_comm(), q, a.owners.grouped(space, stages), a, label,
                                    label + "/reduction"),
        fetched_(space, this->request_.asked().data(), std::ssize(this->request_.asked()), a, label) {
    const int first = stages.begin(a.grid->column()), last = stages.end(a.grid->column());
    for (int stage = first; stage < last; ++stage)
      oblivious ? fetched_.receive_block(space, stage) : fetched_.fetch(space, stage, stage + 1);
    if (!oblivious && last > first) fetched_.predict(space, last - first, last - first);
    this->served_.rows = fetched_.views(space);
  }

  Entries<Index, Space> apply(const Space& space, const RowOperation<Index, Space>& operation) override {
    return this->apply_at_owner_rank(space, operation);
  }

 private:
  FetchedRows<Index, Space> fetched_;
};

template <class Index, class Space>
std::unique_ptr<Product<Index, Space>> open_product(const Space& space, const FrontierOn<Space>& q,
                                                    const DistCsr<Index, Space>& a, Schedule schedule,
                                                    std::string_view label) {
  const std::string name(label);
  if (a.parts() == 1 || schedule == Schedule::kPull)
    return std::make_unique<PulledProduct<Index, Space>>(space, q, a, name);
  ESPALIER_CHECK(schedule != Schedule::kAuto, "a product needs a schedule, not {}", name_of(schedule));
  ESPALIER_CHECK(!a.cut || takes_pieces(schedule, std::is_same_v<Space, Cuda>),
                 "rows that are cut are not served by schedule {}", name_of(schedule));
  if (schedule == Schedule::kPush) return std::make_unique<PushedProduct<Index, Space>>(space, q, a, name);
  return std::make_unique<StagedProduct<Index, Space>>(space, q, a, schedule == Schedule::kStagedOblivious,
                                                       name,
                                                       block_partition(a.parts(), a.grid->replication()));
}

#define ESPALIER_INSTANTIATE_PRODUCT(Index, Space)              \
  template std::unique_ptr<Product<Index, Space>> open_product( \
      const Space&, const FrontierOn<Space>&, const DistCsr<Index, Space>&, Schedule, std::string_view);

}  // namespace espalier
