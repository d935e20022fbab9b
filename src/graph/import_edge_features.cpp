#include "import_edge_features.hpp"

#include <algorithm>

#include "first_rank.hpp"

namespace espalier {

namespace {

// All rows but those of dropped edges.
template <class T>
Matrix<T> read_kept(GivenFeatures& from) {
  Matrix<T> kept(from.edges - std::ssize(from.dropped), from.rows->columns());
  std::vector<double> row(static_cast<std::size_t>(kept.columns));
  auto dropped = from.dropped.begin();
  std::int64_t place = 0;
  for (std::int64_t e = 0; e < from.edges; ++e) {
    from.rows->next(row);
    if (dropped != from.dropped.end() && *dropped == e) {
      ++dropped;
      continue;
    }
    for (std::int64_t k = 0; k < kept.columns; ++k) kept(place, k) = stored_feature<T>(*from.rows, row[k], k);
    ++place;
  }
  from.rows->finish();
  return kept;
}

template <class T>
void write_edge_rows(const Communicator& comm, GivenFeatures& from, std::int64_t columns,
                     const std::vector<EntriesOfEdges>& into, GraphWriter& writer) {
  Matrix<T> kept;
  on_first_rank(comm, [&] { kept = read_kept<T>(from); });
  for (const auto& entries : into) {
    Buffer<std::int64_t> places;
    on_first_rank(comm, [&] { places = entries.places(); });
    const auto rows = comm.all_reduce(std::ssize(places), Reduction::kMax, "import");
    std::int64_t next = 0;
    writer.write_edge_features<T>(
        rows, columns,
        [&](Matrix<T>& piece) {
          for (std::int64_t k = 0; k < piece.rows; ++k)
            std::copy_n(kept.row(places[next++]), columns, piece.row(k));
        },
        entries.relation);
  }
}

}  // namespace

std::int64_t import_edge_features(const Communicator& comm, GivenFeatures from, bool half,
                                  const std::vector<EntriesOfEdges>& into, GraphWriter& writer) {
  on_first_rank(comm, [&] {
    // A file without a line has no column either.
    if (from.rows && from.rows->columns() == 0 && from.edges > 0) from.rows->next({});
  });
  const auto agreed = [&](std::int64_t mine) { return comm.all_reduce(mine, Reduction::kMax, "import"); };
  const auto columns = agreed(from.rows ? from.rows->columns() : 0);
  if (columns == 0) return 0;
  if (agreed(half || (from.rows && from.rows->half()) ? 1 : 0) != 0)
    write_edge_rows<Half>(comm, from, columns, into, writer);
  else
    write_edge_rows<float>(comm, from, columns, into, writer);
  return columns;
}

namespace {

class WithoutColumn : public FeatureRows {
 public:
  WithoutColumn(std::unique_ptr<FeatureRows> rows, std::int64_t column)
      : rows_(std::move(rows)), column_(column), row_(static_cast<std::size_t>(rows_->columns())) {}
  std::int64_t columns() const override { return rows_->columns() - 1; }
  bool half() const override { return rows_->half(); }
  void next(std::span<double> row) override {
    rows_->next(row_);
    const auto left = row_.begin() + column_;
    std::copy(left + 1, row_.end(), std::copy(row_.begin(), left, row.begin()));
  }
  void finish() override { rows_->finish(); }
  std::string place() const override { return rows_->place(); }

 private:
  std::unique_ptr<FeatureRows> rows_;
  std::int64_t column_;
  std::vector<double> row_;
};

}  // namespace

std::unique_ptr<FeatureRows> without_column(std::unique_ptr<FeatureRows> rows, std::int64_t column) {
  if (!rows || rows->columns() <= 1) return nullptr;
  return std::make_unique<WithoutColumn>(std::move(rows), column);
}

}  // namespace espalier
