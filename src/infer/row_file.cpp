#include "espalier/infer/row_file.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "espalier/comm/communicator.hpp"

namespace espalier {

namespace {

constexpr ArchiveFormat kFormat = {"espalier-rows", "rows"};
constexpr const char *kPredictions = "/predictions", *kIds = "/ids";

template <class T, class Convert>
Buffer<T> converted(const ConstMatrixView<float>& rows, Convert convert) {
  Buffer<T> values(static_cast<std::size_t>(rows.rows * rows.columns));
  std::transform(rows.data, rows.data + rows.rows * rows.columns, values.begin(), convert);
  return values;
}

// Rows that a table takes, and the first's place in it.
struct Part {
  std::int64_t place = 0;
  ConstMatrixView<float> rows = {};
};

// Of `rows`, of the vertices from `first` on, those of a table: where they lie, or, of chosen ones,
// in `picked`.
Part part_of(const RowTable& table, std::int64_t first, const Matrix<float>& rows, Matrix<float>& picked) {
  const auto from = std::max(first, table.vertices.begin),
             to = std::min(first + rows.rows, table.vertices.end);
  if (from >= to) return {};
  const ConstMatrixView<float> all(to - from, rows.columns, rows.row(from - first));
  const auto begin = from - table.vertices.begin;
  if (!table.chosen) return {begin, all};
  const auto& ids = *table.chosen;
  const auto place = std::ranges::lower_bound(ids, begin) - ids.begin(),
             end = std::ranges::lower_bound(ids, begin + all.rows) - ids.begin();
  picked.resize(end - place, rows.columns);
  for (std::int64_t k = 0; k < picked.rows; ++k)
    std::copy_n(all.row(ids[place + k] - begin), rows.columns, picked.row(k));
  return {place, picked};
}

}  // namespace

std::string RowFileShape::in_words() const {
  std::string words;
  for (const auto& table : tables) {
    words += fmt::format("{}{} {} [{}, {}]", words.empty() ? "" : ", ", table.path(rows),
                         half ? "float16" : "float32", table.rows(), width);
    if (table.predictions) words += ", " + table.path(kPredictions);
    if (table.chosen) words += ", " + table.path(kIds);
  }
  return words;
}

RowFile::RowFile(const Communicator& comm, const OutputFile& output, RowFileShape shape)
    : output_(comm, output), shape_(std::move(shape)) {
  for (const auto& table : shape_.tables) datasets_.push_back(create(table));
}

RowFile::Datasets RowFile::create(const RowTable& table) {
  const auto make = [&](const char* name, hid_t type, const std::vector<std::int64_t>& shape) {
    auto dataset = hdf5::create_dataset(output_.file(), table.path(name), type, shape);
    output_.require(dataset.exists(), table.path(name));
    return dataset;
  };
  const auto count = table.rows();
  Datasets made;
  made.rows = make(shape_.rows.c_str(), shape_.half ? hdf5::file_type<Half>() : hdf5::file_type<float>(),
                   {count, shape_.width});
  if (table.predictions)
    made.predictions = shape_.labels > 0
                           ? make(kPredictions, hdf5::file_type<std::uint8_t>(), {count, shape_.labels})
                           : make(kPredictions, hdf5::file_type<std::int32_t>(), {count});
  if (!table.chosen) return made;
  const auto ids = make(kIds, hdf5::file_type<std::int64_t>(), {count});
  const auto mine = even_range(count, output_.comm().size(), output_.comm().rank());
  output_.require(hdf5::write_slab(ids, hdf5::memory_type<std::int64_t>(), {mine.begin, mine.end, 1},
                                   table.chosen->data() + mine.begin),
                  table.path(kIds));
  return made;
}

// What is not finite itself is another's to refuse (layerwise_pass.hpp).
Buffer<Half> RowFile::halves_of(const RowTable& table, std::int64_t place,
                                const ConstMatrixView<float>& rows) {
  auto halves = converted<Half>(rows, to_half);
  for (std::size_t k = 0; k < halves.size() && too_large_.empty(); ++k)
    if (!std::isfinite(to_float(halves[k])) && std::isfinite(rows.data[k]))
      too_large_ =
          fmt::format("row {} of {}: column {} is {}", place + static_cast<std::int64_t>(k) / rows.columns,
                      table.path(shape_.rows), static_cast<std::int64_t>(k) % rows.columns, rows.data[k]);
  return halves;
}

void RowFile::write_rows(std::int64_t first, const Matrix<float>& rows) {
  Matrix<float> picked;
  for (std::size_t t = 0; t < datasets_.size() && good_; ++t) {  // check() says what failed
    const auto [place, values] = part_of(shape_.tables[t], first, rows, picked);
    const hdf5::Slab slab{place, place + values.rows, values.columns};
    const auto& to = datasets_[t].rows;
    good_ = shape_.half ? hdf5::write_slab(to, hdf5::memory_type<Half>(), slab,
                                           halves_of(shape_.tables[t], place, values).data())
                        : hdf5::write_slab(to, hdf5::memory_type<float>(), slab, values.data);
  }
}

void RowFile::write_predictions(std::int64_t first, const Matrix<float>& logits) {
  Matrix<float> picked;
  for (std::size_t t = 0; t < datasets_.size() && good_; ++t) {
    if (!shape_.tables[t].predictions) continue;
    const auto [place, chosen] = part_of(shape_.tables[t], first, logits, picked);
    write_predictions(datasets_[t], place, chosen);
  }
}

void RowFile::write_predictions(const Datasets& to, std::int64_t place,
                                const ConstMatrixView<float>& logits) {
  const auto write = [&]<class T>(const Buffer<T>& predicted, std::int64_t columns) {
    good_ = hdf5::write_slab(to.predictions, hdf5::memory_type<T>(), {place, place + logits.rows, columns},
                             predicted.data());
  };
  if (shape_.labels > 0)
    return write(converted<std::uint8_t>(logits, [](float logit) -> std::uint8_t { return logit > 0; }),
                 shape_.labels);
  Buffer<std::int32_t> classes(static_cast<std::size_t>(logits.rows));
  for (std::int64_t k = 0; k < logits.rows; ++k) {
    const auto* row = logits.row(k);
    classes[k] = static_cast<std::int32_t>(std::max_element(row, row + logits.columns) - row);
  }
  write(classes, 1);
}

void RowFile::check() {
  output_.require(good_, shape_.rows);
  if (!shape_.half) return;
  agree(output_.comm(), [&] {
    if (!too_large_.empty())
      usage_error("{}, too large for float16, which ends at 65504; leave --half out", too_large_);
  });
}

void RowFile::commit(const std::function<void(ArchiveWriter&)>& describe) {
  check();
  datasets_.clear();
  ArchiveWriter archive(output_.file(), kFormat);
  for (const auto& table : shape_.tables) {
    if (table.type.empty()) continue;
    const auto group = hdf5::open_group(output_.file(), table.path(""));
    ArchiveWriter of_type(group);
    of_type("type", table.type);
    of_type("first", table.vertices.begin);
    of_type("vertices", table.vertices.size());
    of_type("trained", table.trained);
    archive.note(of_type.good());
  }
  describe(archive);
  output_.require(archive.good(), "an attribute");
  output_.commit();
}

}  // namespace espalier
