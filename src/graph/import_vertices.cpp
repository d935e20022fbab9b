#include "import_vertices.hpp"

#include "first_rank.hpp"

namespace espalier {

namespace {

template <class T>
void write_features(const Communicator& comm, FeatureRows* rows, std::int64_t count, std::int64_t columns,
                    GraphWriter& writer, int type) {
  writer.write_features<T>(
      count, columns, [&](Matrix<T>& piece) { read_rows(*rows, piece); }, type);
  on_first_rank(comm, [&] { rows->finish(); });
}

}  // namespace

std::int64_t import_features(const Communicator& comm, std::unique_ptr<FeatureRows> rows, std::int64_t count,
                             bool half, GraphWriter& writer, int type) {
  on_first_rank(comm, [&] {
    // A file without a line has no column either.
    if (rows && rows->columns() == 0 && count > 0) rows->next({});
  });
  const auto agreed = [&](std::int64_t mine) { return comm.all_reduce(mine, Reduction::kMax, "import"); };
  const auto columns = agreed(rows ? rows->columns() : 0);
  if (columns == 0) return 0;
  if (agreed(half || (rows && rows->half()) ? 1 : 0) != 0)
    write_features<Half>(comm, rows.get(), count, columns, writer, type);
  else
    write_features<float>(comm, rows.get(), count, columns, writer, type);
  return columns;
}

void import_labels(const Communicator& comm, const OgbLabels& labels, GraphWriter& writer, int type) {
  const auto columns = comm.all_reduce(labels.columns, Reduction::kMax, "import");
  if (columns == 1) writer.write_labels(labels.classes, type);
  if (columns > 1) writer.write_multi_labels(labels.multi, type);
}

void import_splits(const Splits& splits, GraphWriter& writer, int type, const std::string& name) {
  for (const auto split : {Split::kTrain, Split::kValid, Split::kTest})
    writer.write_split(split, splits[static_cast<std::size_t>(split)], type, name);
}

}  // namespace espalier
