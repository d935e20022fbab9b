// Schedule `pull`: every rank asks the owners in its process column for the distinct rows that its batches
// need and does the rest by itself. With one block row (replicated, or c = p) nothing is asked.
//
//   keeper                             owner (same process column)
//   distinct remote ids, by owner  ──► ids
//   row sizes, then rows           ◄── those rows, one after another
#include <numeric>

#include "espalier/base/work.hpp"
#include "fetch_rows.hpp"
#include "local_rows.hpp"
#include "schedules.hpp"

namespace espalier {

namespace {

template <class Index>
class PulledProduct final : public Product<Index> {
 public:
  PulledProduct(const Cpu& cpu, const StackedFrontier& q, const DistCsr<Index>& a, const std::string& label)
      : q_(q), a_(a), rows_(q.vertices.size()) {
    if (a.partition.parts() == 1) {
      for (std::size_t k = 0; k < rows_.size(); ++k) rows_[k] = row_view(a.local, q.vertices[k]);
      return;
    }
    const DistinctIds<Index> wanted(q.vertices, a.partition);
    fetch_rows(cpu, wanted, 0, a.partition.parts(), a, label, fetched_);
    const auto views = view_rows(wanted, fetched_, a);
    predict_fetch(std::span<const RowView<Index>>(views), a.partition.parts(), 1, a, label);
    for (std::size_t k = 0; k < rows_.size(); ++k)
      rows_[k] = views[static_cast<std::size_t>(wanted.place_of[k])];
    charge(Work{.gathers = static_cast<double>(rows_.size()),
                .bytes = 32.0 * static_cast<double>(rows_.size())});
  }

  RowEntries<Index> apply(const Cpu& cpu, const RowOperation<Index>& operation) override {
    const auto keys = keys_of(q_);
    return apply_to_rows(cpu, std::span<const RowView<Index>>(rows_), std::span<const RowKey>(keys),
                         operation);
  }

  void sum(const Cpu& cpu, const EntryWeight& weight, const SumVisitor<Index>& visit) override {
    sum_segments(cpu, std::span<const RowView<Index>>(rows_), q_.offsets, a_.local.columns, weight, visit);
  }

  RowEntries<std::int32_t> columns(const Cpu& cpu, std::span<const std::span<const Index>> columns) override {
    return select_columns(cpu, std::span<const RowView<Index>>(rows_), q_.offsets, columns);
  }

 private:
  const StackedFrontier& q_;
  const DistCsr<Index>& a_;
  std::vector<RowView<Index>> rows_;  // [rows of Q]
  Csr<Index> fetched_;
};

}  // namespace

std::vector<RowKey> keys_of(const StackedFrontier& q) {
  std::vector<RowKey> keys(q.vertices.size());
  for (std::int64_t b = 0; b < q.batches(); ++b)
    for (auto r = q.begin(b); r < q.end(b); ++r)
      keys[static_cast<std::size_t>(r)] = {q.vertices[static_cast<std::size_t>(r)],
                                           q.numbers[static_cast<std::size_t>(b)]};
  return keys;
}

template <class Index>
std::unique_ptr<Product<Index>> pull(const Cpu& cpu, const StackedFrontier& q, const DistCsr<Index>& a,
                                     const std::string& label) {
  return std::make_unique<PulledProduct<Index>>(cpu, q, a, label);
}

template std::unique_ptr<Product<std::int32_t>> pull(const Cpu&, const StackedFrontier&,
                                                     const DistCsr<std::int32_t>&, const std::string&);
template std::unique_ptr<Product<std::int64_t>> pull(const Cpu&, const StackedFrontier&,
                                                     const DistCsr<std::int64_t>&, const std::string&);

}  // namespace espalier
