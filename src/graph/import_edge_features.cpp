#include "import_edge_features.hpp"

#include <algorithm>
#include <map>

#include "first_rank.hpp"

namespace espalier {

namespace {

template <class T>
double widened(T value) {
  if constexpr (std::is_same_v<T, Half>)
    return to_float(value);
  else
    return value;
}

template <class T>
T narrowed(double value) {
  if constexpr (std::is_same_v<T, Half>)
    return to_half(static_cast<float>(value));
  else
    return static_cast<float>(value);
}

struct RowSum {
  std::int64_t edges = 0;
  std::vector<double> values;

  template <class T>
  void add(const T* row, std::int64_t columns) {
    values.resize(static_cast<std::size_t>(columns));
    for (std::int64_t k = 0; k < columns; ++k) values[k] += widened(row[k]);
    ++edges;
  }
};

// In the order of the edges; edges that met no other are not there.
template <class T>
std::map<std::int64_t, RowSum> sums_of_rows(const Matrix<T>& rows, const Buffer<std::int64_t>& standing) {
  std::map<std::int64_t, RowSum> sums;
  for (std::int64_t e = 0; e < rows.rows; ++e) {
    const auto first = standing[e];
    if (first < 0 || first == e) continue;
    auto& sum = sums[first];
    if (sum.edges == 0) sum.add(rows.row(first), rows.columns);
    sum.add(rows.row(e), rows.columns);
  }
  return sums;
}

// The row of the first of edges that met becomes that of all of them.
template <class T>
void add_up_rows(Matrix<T>& rows, const Buffer<std::int64_t>& standing, bool mean) {
  for (const auto& [first, sum] : sums_of_rows(rows, standing))
    for (std::int64_t k = 0; k < rows.columns; ++k) {
      const auto value = mean ? sum.values[k] / static_cast<double>(sum.edges) : sum.values[k];
      rows(first, k) = narrowed<T>(value);
      if (!std::isfinite(widened(rows(first, k))))
        input_error(
            "column {} of the features of edge {} (from 0) and of those that repeat it adds up to {}, too "
            "large for {}; give --duplicate-features mean, first or last",
            k, first, value, std::is_same_v<T, Half> ? "float16" : "float32");
    }
}

template <class T>
Matrix<T> read_edge_rows(GivenFeatures& from) {
  Matrix<T> rows(from.edges, from.rows->columns());
  read_rows(*from.rows, rows);
  from.rows->finish();
  if (!from.standing.empty()) add_up_rows(rows, from.standing, from.mean);
  return rows;
}

template <class T>
void write_edge_rows(const Communicator& comm, GivenFeatures& from, std::int64_t columns,
                     const std::vector<EntriesOfEdges>& into, GraphWriter& writer) {
  Matrix<T> kept;
  on_first_rank(comm, [&] { kept = read_edge_rows<T>(from); });
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
