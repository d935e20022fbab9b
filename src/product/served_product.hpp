// A product whose rows are served by other ranks of a group: what `push` and `staged` share.
//
// The server has a view of every row it is asked for. Sums and column selections are computed there and only
// they travel; what travels for `apply` is each schedule's own.
#pragma once

#include <vector>

#include "inquiry.hpp"
#include "local_rows.hpp"

namespace espalier {

template <class Index>
class ServedProduct : public Product<Index> {
 public:
  /// `label_back`: what the answers to rows are booked under. Collective over `group`.
  ServedProduct(const Communicator& group, const StackedFrontier& q,
                const std::function<int(std::int64_t)>& server_of, const DistCsr<Index>& a,
                const ProductShape& shape, const std::string& label, const std::string& label_back)
      : a_(a), inquiry_(group, q, server_of, shape, label), label_back_(label_back) {}

  void sum(const Cpu& cpu, const EntryWeight& weight, const SumVisitor<Index>& visit) final {
    const auto segments = inquiry_.segments();
    std::vector<SparseSum<Index>> partial(segments.size() - 1);
    sum_segments<Index>(cpu, served_, segments, a_.local.columns, weight,
                        [&](std::int64_t segment, const SparseSum<Index>& sum) {
                          partial[static_cast<std::size_t>(segment)] = sum;
                        });
    inquiry_.reduce(cpu, partial, a_.local.columns, visit);
  }

  RowEntries<std::int32_t> columns(const Cpu& cpu, std::span<const std::span<const Index>> columns) final {
    Buffer<Index> storage;
    const auto wanted = inquiry_.send_picks(columns, storage);
    const auto met = select_columns<Index>(cpu, served_, inquiry_.segments(), wanted);
    return in_order(cpu, inquiry_.send_back(met, a_.has_values, label_back_), inquiry_.place_of());
  }

 protected:
  const DistCsr<Index>& a_;
  Inquiry<Index> inquiry_;
  std::vector<RowView<Index>> served_;  // [rows asked of me], set by the schedule
  std::string label_back_;
};

}  // namespace espalier
