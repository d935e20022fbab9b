// Schedule `push`: ids travel to the owners of the rows, in the process column; they draw, sum and select, and
// send back only what remains.
//
// A draw is possible there because it depends on its key alone (design, 4.1).
#include "espalier/base/work.hpp"
#include "fetch_rows.hpp"
#include "schedules.hpp"
#include "served_product.hpp"

namespace espalier {

namespace {

template <class Index>
class PushedProduct final : public ServedProduct<Index> {
 public:
  PushedProduct(const StackedFrontier& q, const DistCsr<Index>& a, const std::string& label)
      : ServedProduct<Index>(
            a.grid->column_comm(), q, [&](std::int64_t v) { return a.partition.owner(v); }, a, shape_of(a),
            label, label + "/rows") {
    for (const auto id : this->inquiry_.asked())
      this->served_.push_back(row_view(a.local, id - a.first_row()));
    const auto served = static_cast<double>(this->served_.size());
    charge(Work{.gathers = served, .bytes = 24 * served});
  }

  RowEntries<Index> apply(const Cpu& cpu, const RowOperation<Index>& operation) override {
    const auto& inquiry = this->inquiry_;
    const auto results = apply_to_rows<Index>(cpu, this->served_, inquiry.keys(), operation);
    return in_order(cpu, inquiry.send_back(results, operation.has_values(), this->label_back_),
                    inquiry.place_of());
  }
};

}  // namespace

template <class Index>
std::unique_ptr<Product<Index>> push(const Cpu&, const StackedFrontier& q, const DistCsr<Index>& a,
                                     const std::string& label) {
  return std::make_unique<PushedProduct<Index>>(q, a, label);
}

template std::unique_ptr<Product<std::int32_t>> push(const Cpu&, const StackedFrontier&,
                                                     const DistCsr<std::int32_t>&, const std::string&);
template std::unique_ptr<Product<std::int64_t>> push(const Cpu&, const StackedFrontier&,
                                                     const DistCsr<std::int64_t>&, const std::string&);

}  // namespace espalier
