// Schedules `staged` and `staged-oblivious`: Algorithm 2 of Tripathy et al. 2024 on the p/c x c grid.
//
// Process row P(i,:) computes P_i = sum over k of Q_ik A_k for the batches that its c ranks keep. Process column
// j takes the block rows k of its stages, a contiguous share of the p/c blocks that differs by at most one
// between columns (p/c^2 where c^2 divides p; columns beyond p/c have none and only take part in the
// reduction):
//
//     1.  Q_ik goes to the column whose stages hold block k, along the row
//     2.  for each stage k of column j: P(i,j) gathers NnzCols(Q_ik) to P(k,j), which sends those rows of A_k
//         (oblivious: P(k,j) broadcasts A_k down the column)
//     3.  partial results of the rows of these blocks
//     4.  a reduce-scatter along the row: partial results go to the one rank that keeps the batch, directly, so
//         any c is right and no draw is made twice
//
// Step 4 moves whole rows of P for `apply` (each row of a selection comes from one column, so the sum is a
// concatenation), merged partial sums for `sum`, and the entries that meet the picks for `columns`, for which
// the rows fetched in step 2 are used again.
#include "cost_model.hpp"
#include "espalier/base/work.hpp"
#include "fetch_rows.hpp"
#include "schedules.hpp"
#include "served_product.hpp"

namespace espalier {

namespace {

template <class Index>
class StagedProduct final : public ServedProduct<Index> {
 public:
  StagedProduct(const Cpu& cpu, const StackedFrontier& q, const DistCsr<Index>& a, bool oblivious,
                const std::string& label)
      : StagedProduct(cpu, q, a, oblivious, label,
                      block_partition(a.partition.parts(), a.grid->replication())) {}

  RowEntries<Index> apply(const Cpu& cpu, const RowOperation<Index>& operation) override {
    const auto& inquiry = this->inquiry_;
    const auto whole = collect_rows<Index>(
        cpu, std::ssize(this->served_), [&](std::int64_t first, std::int64_t last, RowEntries<Index>& out) {
          for (auto r = first; r < last; ++r) {
            const auto& row = this->served_[static_cast<std::size_t>(r)];
            out.indices.insert(out.indices.end(), row.indices, row.indices + row.size);
            if (row.values != nullptr) out.values.insert(out.values.end(), row.values, row.values + row.size);
            out.end_row();
          }
        });
    charge(
        Work{.gathers = static_cast<double>(whole.rows()), .bytes = 2 * entry_bytes(whole), .launches = 3});
    const auto mine = inquiry.send_back(whole, this->a_.has_values, this->label_back_);
    std::vector<RowView<Index>> rows;
    for (const auto place : inquiry.place_of())
      rows.push_back({mine.indices.data() + mine.begin(place),
                      mine.values.empty() ? nullptr : mine.values.data() + mine.begin(place),
                      mine.size(place)});
    const auto keys = keys_of(q_);
    return apply_to_rows<Index>(cpu, rows, keys, operation);
  }

 private:
  // `stages`: the blocks [stages.begin(j), stages.end(j)) are those of process column j.
  StagedProduct(const Cpu& cpu, const StackedFrontier& q, const DistCsr<Index>& a, bool oblivious,
                const std::string& label, const RowPartition& stages)
      : ServedProduct<Index>(
            a.grid->row_comm(), q, [&](std::int64_t v) { return stages.owner(a.partition.owner(v)); }, a,
            shape_of(a), label, label + "/reduction"),
        q_(q) {
    const auto& asked = this->inquiry_.asked();
    const Buffer<std::int64_t> ids(asked.begin(), asked.end());
    const DistinctIds<Index> wanted(ids, a.partition);
    const int first = stages.begin(a.grid->column()), last = stages.end(a.grid->column());
    for (int stage = first; stage < last; ++stage)
      if (oblivious)
        receive_block(wanted, stage, label);
      else
        fetch_rows(cpu, wanted, stage, stage + 1, a, label, fetched_);
    const auto views = view_rows(wanted, fetched_, a);
    if (!oblivious && last > first)
      predict_fetch(std::span<const RowView<Index>>(views), last - first, last - first, a, label);
    for (const auto place : wanted.place_of) this->served_.push_back(views[static_cast<std::size_t>(place)]);
    const auto served = static_cast<double>(this->served_.size());
    charge(Work{.gathers = served, .bytes = 32 * served});
  }

  // The stage's whole block row goes down the column; the wanted rows are kept.
  void receive_block(const DistinctIds<Index>& wanted, int stage, const std::string& label) {
    const auto& a = this->a_;
    const auto& column = a.grid->column_comm();
    const auto back = label + "/rows";
    const bool mine = stage == a.part;
    Csr<Index> block;
    Buffer<Index> sizes(static_cast<std::size_t>(a.partition.size(stage)));
    if (mine)
      for (std::int64_t row = 0; row < a.local.rows; ++row)
        sizes[static_cast<std::size_t>(row)] = static_cast<Index>(a.local.row_size(row));
    column.broadcast(std::span<Index>(sizes), stage, back);
    for (const auto size : sizes) block.indptr.push_back(block.indptr.back() + size);
    block.rows = std::ssize(sizes);
    const auto entries = static_cast<std::size_t>(block.indptr.back());
    if (mine) {
      block.indices = a.local.indices;
      block.values = a.local.values;
    }
    block.indices.resize(entries);
    if (a.has_values) block.values.resize(entries);
    column.broadcast(std::span<Index>(block.indices), stage, back);
    if (a.has_values) column.broadcast(std::span<float>(block.values), stage, back);

    const auto shape = shape_of(a);
    const double bytes = static_cast<double>(block.rows) * shape.index_bytes +
                         static_cast<double>(entries) * (shape.index_bytes + shape.value_bytes);
    a.grid->traffic().predict(back, crossing(column.size()) * (a.has_values ? 3 : 2),
                              crossing(column.size()) * bytes);
    if (mine) return;
    for (auto place = wanted.begin[static_cast<std::size_t>(stage)];
         place < wanted.begin[static_cast<std::size_t>(stage) + 1]; ++place) {
      const auto row =
          row_view(block, wanted.ids[static_cast<std::size_t>(place)] - a.partition.begin(stage));
      fetched_.indices.insert(fetched_.indices.end(), row.indices, row.indices + row.size);
      if (row.values != nullptr)
        fetched_.values.insert(fetched_.values.end(), row.values, row.values + row.size);
      fetched_.indptr.push_back(std::ssize(fetched_.indices));
      ++fetched_.rows;
    }
  }

  const StackedFrontier& q_;
  Csr<Index> fetched_;
};

}  // namespace

template <class Index>
std::unique_ptr<Product<Index>> staged(const Cpu& cpu, const StackedFrontier& q, const DistCsr<Index>& a,
                                       bool oblivious, const std::string& label) {
  return std::make_unique<StagedProduct<Index>>(cpu, q, a, oblivious, label);
}

template std::unique_ptr<Product<std::int32_t>> staged(const Cpu&, const StackedFrontier&,
                                                       const DistCsr<std::int32_t>&, bool,
                                                       const std::string&);
template std::unique_ptr<Product<std::int64_t>> staged(const Cpu&, const StackedFrontier&,
                                                       const DistCsr<std::int64_t>&, bool,
                                                       const std::string&);

}  // namespace espalier
