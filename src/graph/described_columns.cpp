// Columns of a description, tables or arrays: rows of features and labels, whole numbers, ids of
// vertices, and weights and times beside edges.
#include "graph_source.hpp"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "array_tables.hpp"
#include "edge_text.hpp"
#include "espalier/base/text.hpp"
#include "espalier/file/line_reader.hpp"
#include "ogb_tables.hpp"
#include "open_graph_file.hpp"

namespace espalier {

std::unique_ptr<NpyArray> open_array(const DescribedFile& file, bool texts) {
  try {
    return file.member.empty() ? open_npy(file.path, texts) : NpzFile(file.path).open(file.member, texts);
  } catch (const UserError& error) {
    if (file.by.empty()) throw;
    throw UserError(error.code(), fmt::format("{}: {}", file.by, error.what()));
  }
}

std::int64_t count_rows(const DescribedFile& file, bool texts) {
  if (file.is_array()) return open_array(file, texts)->shape()[0];
  LineReader lines(file.path);
  std::int64_t rows = 0, read = 0;
  while (lines.next()) {
    ++read;
    if (!without_blanks(lines.text()).empty()) rows = read;  // but for empty ones at the end
  }
  return rows;
}

namespace {

// Features without one column, a weight.
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

std::unique_ptr<FeatureRows> open_rows(const DescribedFile& file, std::int64_t count,
                                       const std::string& things) {
  auto rows = file.is_array() ? open_feature_array(open_array(file), count, things)
                              : open_feature_table(file.path, count, things);
  if (!file.without) return rows;
  if (!rows || rows->columns() <= 1) return nullptr;  // it is the only one
  return std::make_unique<WithoutColumn>(std::move(rows), *file.without);
}

namespace {

Matrix<std::int64_t> whole_numbers_of(NpyArray& array) {
  Matrix<std::int64_t> found(array.shape()[0], array.columns());
  array.read(std::span<std::int64_t>(found.data));
  if (!array.by_columns() || found.columns == 1) return found;
  Matrix<std::int64_t> rows(found.rows, found.columns);
  for (std::int64_t r = 0; r < rows.rows; ++r)
    for (std::int64_t k = 0; k < rows.columns; ++k) rows(r, k) = found.data[k * rows.rows + r];
  return rows;
}

}  // namespace

Matrix<std::int64_t> read_whole_numbers(const DescribedFile& file) {
  if (file.is_array()) return whole_numbers_of(*open_array(file));
  CsvReader csv(file.path);
  Matrix<std::int64_t> found;
  while (csv.next_line()) {
    if (found.rows++ == 0) found.columns = csv.count_fields();
    for (std::int64_t k = 0; k < found.columns; ++k) found.data.push_back(csv.integer());
    csv.end_line();
  }
  return found;
}

// ---- ids ----

namespace {

// Where two are alike: their places.
template <class Ids>
std::optional<std::pair<std::size_t, std::size_t>> find_repeated(const Ids& ids) {
  std::unordered_map<std::decay_t<decltype(ids[0])>, std::size_t> places;
  places.reserve(ids.size());
  for (std::size_t k = 0; k < ids.size(); ++k)
    if (const auto [found, is_new] = places.emplace(ids[k], k); !is_new) return std::pair(found->second, k);
  return std::nullopt;
}

void check_text_id(const std::string& text, const std::string& place) {
  if (text.empty()) input_error("{}: is empty; give each vertex an id", place);
  if (text.size() > kMostNameLetters)
    input_error("{}: has {} letters, expected {} at most", place, text.size(), kMostNameLetters);
  if (!is_utf8(text) || text.find('\0') != std::string::npos) input_error("{}: is not text in UTF-8", place);
}

// Are all texts whole numbers, as these are printed? Then they become these; 007 is a text.
bool become_numbers(VertexIds& ids) {
  Buffer<std::int64_t> numbers;
  for (const auto& text : ids.of_texts) {
    std::int64_t number = 0;
    const auto* end = text.data() + text.size();
    const auto [behind, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || behind != end || std::to_string(number) != text) return false;
    numbers.push_back(number);
  }
  ids.of_numbers = std::move(numbers);
  ids.of_texts.clear();
  return true;
}

}  // namespace

VertexIds read_vertex_ids(const DescribedFile& file, std::int64_t count, const std::string& things) {
  VertexIds ids{true};
  const char* what = "entry";
  std::int64_t first = 0;
  if (file.is_array()) {
    const auto array = open_array(file, true);
    if (array->columns() != 1 || array->shape()[0] != count)
      input_error("{}: is {} x {}, but there are {} {}, and each has one", file.name(), array->shape()[0],
                  array->columns(), count, things);
    ids.numbers = !array->is_text();
    ids.of_numbers.resize(ids.numbers ? count : 0);
    ids.of_texts.resize(static_cast<std::size_t>(ids.numbers ? 0 : count));
    if (ids.numbers)
      array->read(std::span<std::int64_t>(ids.of_numbers));
    else
      array->read(std::span<std::string>(ids.of_texts));
  } else {
    what = "line";
    first = 1;
    LineReader lines(file.path);
    while (lines.next()) ids.of_texts.emplace_back(without_blanks(lines.text()));
    while (!ids.of_texts.empty() && ids.of_texts.back().empty()) ids.of_texts.pop_back();
    if (std::ssize(ids.of_texts) != count)
      input_error("{}: has {} lines, but there are {} {}", file.name(), ids.of_texts.size(), count, things);
    ids.numbers = become_numbers(ids);
  }
  const auto place = [&](std::size_t k) {
    return fmt::format("{}: {} {}", file.name(), what, static_cast<std::int64_t>(k) + first);
  };
  for (std::size_t k = 0; k < ids.of_texts.size(); ++k) check_text_id(ids.of_texts[k], place(k));
  const auto repeated = ids.numbers ? find_repeated(ids.of_numbers) : find_repeated(ids.of_texts);
  if (repeated)
    input_error("{}: the id is that of {} {}; ids name one vertex each", place(repeated->second), what,
                static_cast<std::int64_t>(repeated->first) + first);
  return ids;
}

// ---- of edges ----

EdgeColumn::EdgeColumn(const DescribedFile& file) : file_(file) {
  if (!file.given()) return;
  if (!file.is_array()) {
    csv_.emplace(file.path);
    return;
  }
  array_ = open_array(file);
  row_.resize(static_cast<std::size_t>(array_->columns()));
  if (file.column ? *file.column >= array_->columns() : array_->columns() != 1)
    input_error("{}: {} has {} columns; an edge has one number there", file.by, file.name(),
                array_->columns());
}

bool EdgeColumn::has_next() {
  return array_ ? read_ < array_->shape()[0] : csv_->next_line();
}

std::string EdgeColumn::place() const {
  return array_ ? fmt::format("{}: row {}", file_.name(), read_)
                : fmt::format("{}:{}", file_.path, csv_->line());
}

template <class T, class Read>
void EdgeColumn::fill(std::vector<T>& values, std::size_t count, Read read) {
  values.clear();
  for (; values.size() < count && has_next(); ++read_) {
    if (csv_ && read_ == 0) columns_ = file_.column ? csv_->count_fields() : 1;
    for (std::int64_t k = 0; csv_ && k < file_.column.value_or(0); ++k) csv_->skip_field();
    values.push_back(read());
    if (csv_ && csv_->count_fields() != columns_)
      csv_->fail("has {} fields, the first line has {}", csv_->count_fields(), columns_);
  }
}

const std::vector<float>& EdgeColumn::next_weights(std::size_t count, std::int64_t& vanished) {
  const auto fail = [&](const std::string& words) { input_error("{}: {}", place(), words); };
  fill(weights_, count, [&] {
    if (array_) array_->read_row(row_);
    const auto value = array_ ? row_[static_cast<std::size_t>(file_.column.value_or(0))] : csv_->number();
    return stored_weight(value, fail, vanished);
  });
  return weights_;
}

const std::vector<std::int64_t>& EdgeColumn::next_times(std::size_t count) {
  fill(times_, count, [&] {
    std::int64_t value = 0;
    if (array_)
      array_->read(std::span(&value, 1));
    else
      value = csv_->integer();
    return value;
  });
  return times_;
}

void EdgeColumn::finish(std::int64_t edges, const std::string& by) {
  if (!file_.given()) return;
  while (csv_ && csv_->next_line()) ++read_;
  if (csv_ && file_.by.empty()) return check_lines(*csv_, read_, edges, "edges");
  const auto rows = csv_ ? read_ : array_->shape()[0];
  if (rows != edges)
    input_error("{}: {} has {} numbers, but {} has {} edges; each has one", file_.by, file_.name(), rows, by,
                edges);
}

}  // namespace espalier
