#include "espalier/infer/row_file.hpp"

#include <algorithm>
#include <utility>

#include "espalier/base/half.hpp"

namespace espalier {

namespace {

constexpr const char* kPredictions = "/predictions";

template <class T, class Convert>
Buffer<T> converted(const Matrix<float>& rows, Convert convert) {
  Buffer<T> values(rows.data.size());
  std::ranges::transform(rows.data, values.begin(), convert);
  return values;
}

}  // namespace

RowFile::RowFile(const Communicator& comm, const OutputFile& output, RowFileShape shape)
    : output_(comm, output), shape_(std::move(shape)) {
  const auto count = shape_.chosen ? std::ssize(*shape_.chosen) : shape_.vertices;
  const auto& file = output_.file();
  rows_ = hdf5::create_dataset(file, shape_.rows,
                               shape_.half ? hdf5::file_type<Half>() : hdf5::file_type<float>(),
                               {count, shape_.width});
  output_.require(rows_.exists(), shape_.rows);
  if (shape_.predictions) {
    predictions_ = shape_.labels > 0
                       ? hdf5::create_dataset(file, kPredictions, hdf5::file_type<std::uint8_t>(),
                                              {count, shape_.labels})
                       : hdf5::create_dataset(file, kPredictions, hdf5::file_type<std::int32_t>(), {count});
    output_.require(predictions_.exists(), kPredictions);
  }
  if (shape_.chosen) write_ids();
}

// Every rank its part of the list.
void RowFile::write_ids() {
  const auto& ids = *shape_.chosen;
  const auto dataset =
      hdf5::create_dataset(output_.file(), "/ids", hdf5::file_type<std::int64_t>(), {std::ssize(ids)});
  const auto& comm = output_.comm();
  const auto begin = std::ssize(ids) * comm.rank() / comm.size(),
             end = std::ssize(ids) * (comm.rank() + 1) / comm.size();
  output_.require(dataset.exists() && hdf5::write_slab(dataset, hdf5::memory_type<std::int64_t>(),
                                                       {begin, end, 1}, ids.data() + begin),
                  "/ids");
}

RowFile::Place RowFile::place_of(std::int64_t first, std::int64_t count) const {
  if (!shape_.chosen) return {first, count};
  const auto& ids = *shape_.chosen;
  const auto from = std::ranges::lower_bound(ids, first), to = std::ranges::lower_bound(ids, first + count);
  return {from - ids.begin(), to - from};
}

// Of `rows`, of the vertices from `first` on, those that were chosen, which `place` counts.
const Matrix<float>& RowFile::pick(const Place& place, std::int64_t first, const Matrix<float>& rows,
                                   Matrix<float>& picked) const {
  if (place.count == rows.rows) return rows;
  picked.resize(place.count, rows.columns);
  for (std::int64_t k = 0; k < place.count; ++k)
    std::copy_n(rows.row((*shape_.chosen)[place.row + k] - first), rows.columns, picked.row(k));
  return picked;
}

void RowFile::write_rows(std::int64_t first, const Matrix<float>& rows) {
  if (!good_) return;  // it says so in check()
  const auto place = place_of(first, rows.rows);
  Matrix<float> picked;
  const auto& values = pick(place, first, rows, picked);
  const hdf5::Slab slab{place.row, place.row + place.count, rows.columns};
  good_ = shape_.half ? hdf5::write_slab(rows_, hdf5::memory_type<Half>(), slab,
                                         converted<Half>(values, to_half).data())
                      : hdf5::write_slab(rows_, hdf5::memory_type<float>(), slab, values.data.data());
}

void RowFile::write_predictions(std::int64_t first, const Matrix<float>& logits) {
  if (!good_) return;
  const auto place = place_of(first, logits.rows);
  Matrix<float> picked;
  const auto& chosen = pick(place, first, logits, picked);
  const auto write = [&]<class T>(const Buffer<T>& predicted, std::int64_t columns) {
    good_ = hdf5::write_slab(predictions_, hdf5::memory_type<T>(),
                             {place.row, place.row + place.count, columns}, predicted.data());
  };
  if (shape_.labels > 0)
    return write(converted<std::uint8_t>(chosen, [](float logit) -> std::uint8_t { return logit > 0; }),
                 shape_.labels);
  Buffer<std::int32_t> classes(place.count);
  for (std::int64_t k = 0; k < place.count; ++k) {
    const auto* row = chosen.row(k);
    classes[k] = static_cast<std::int32_t>(std::max_element(row, row + chosen.columns) - row);
  }
  write(classes, 1);
}

void RowFile::check() {
  output_.require(good_, shape_.rows);
}

void RowFile::commit(const std::function<bool(const hdf5::Handle& root)>& describe) {
  check();
  rows_ = {};
  predictions_ = {};
  const auto& file = output_.file();
  bool good = hdf5::write_text_attribute(file, "format", "espalier-rows");
  good = hdf5::write_integer_attribute(file, "version", 1) && good;
  output_.require(describe(file) && good, "an attribute");
  output_.commit();
}

}  // namespace espalier
