#include "import_tables.hpp"

#include <algorithm>
#include <numeric>

#include "fetch_rows.hpp"
#include "first_rank.hpp"

namespace espalier {

namespace {

// Collective. Calls write(T(), columns), with the type that features are stored in, where rank 0
// has some, of so many things. Returns how many columns they have.
template <class Write>
std::int64_t write_stored(const Communicator& comm, FeatureRows* rows, std::int64_t count, bool half,
                          Write write) {
  on_first_rank(comm, [&] {
    // A file without a line has no column either.
    if (rows != nullptr && rows->columns() == 0 && count > 0) rows->next({});
  });
  const auto columns = agreed(comm, rows != nullptr ? rows->columns() : 0);
  if (columns == 0) return 0;
  if (agreed(comm, half || (rows != nullptr && rows->half()) ? 1 : 0) != 0)
    write(Half(), columns);
  else
    write(float(), columns);
  return columns;
}

}  // namespace

// ---- vertices ----

std::int64_t import_features(const Communicator& comm, std::unique_ptr<FeatureRows> rows, std::int64_t count,
                             bool half, GraphWriter& writer, int type) {
  return write_stored(comm, rows.get(), count, half, [&]<class T>(T, std::int64_t columns) {
    writer.write_pieces<T>(Column::kFeatures, type, count, columns, [&](std::int64_t, Matrix<T>& piece) {
      if (piece.rows > 0) read_rows(*rows, piece);
    });
    on_first_rank(comm, [&] { rows->finish(); });
  });
}

void import_labels(const Communicator& comm, const OgbLabels& labels, GraphWriter& writer, int type) {
  const auto columns = agreed(comm, labels.columns);
  if (columns == 1) writer.write_labels(labels.classes, type);
  if (columns > 1) writer.write_rows(Column::kLabels, type, labels.multi);
}

// ---- edges ----

namespace {

template <class T>
Matrix<T> read_edge_rows(GivenFeatures& from) {
  Matrix<T> rows(from.edges, from.rows->columns());
  read_rows(*from.rows, rows);
  from.rows->finish();
  if (!from.standing.empty())
    add_up_rows(rows, from.standing, from.mean, [](std::int64_t edge, std::int64_t column, double value) {
      input_error(
          "column {} of the features of edge {} (from 0) and of those that repeat it adds up to {}, "
          "too large for {}; give --duplicate-features mean, first or last",
          column, edge, value, std::is_same_v<T, Half> ? "float16" : "float32");
    });
  return rows;
}

}  // namespace

std::int64_t import_edge_features(const Communicator& comm, GivenFeatures from, bool half,
                                  const std::vector<EntriesOfEdges>& into, GraphWriter& writer) {
  return write_stored(comm, from.rows.get(), from.edges, half, [&]<class T>(T, std::int64_t columns) {
    Matrix<T> kept;
    on_first_rank(comm, [&] { kept = read_edge_rows<T>(from); });
    for (const auto& entries : into) {
      Matrix<std::int64_t> origins;
      origins.data = entries.origins();
      origins.rows = std::ssize(origins.data);
      origins.columns = 1;
      const auto starts = stretches(comm, origins.rows);
      writer.write_pieces<T>(Column::kEdgeFeatures, entries.relation, starts.back(), columns,
                             [&](std::int64_t begin, Matrix<T>& piece) {
                               Buffer<std::int64_t> wanted(static_cast<std::size_t>(piece.rows));
                               std::iota(wanted.begin(), wanted.end(), begin);
                               const auto found = fetch_rows(comm, starts, origins, wanted);
                               for (std::int64_t k = 0; k < piece.rows; ++k)
                                 std::copy_n(kept.row(entries.edge_of(found.data[k])), columns, piece.row(k));
                             });
    }
  });
}

}  // namespace espalier
