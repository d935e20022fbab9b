#include "espalier/feature/spilled_rows.hpp"

#include <algorithm>
#include <utility>

#include "espalier/base/error.hpp"

namespace espalier {

namespace {

// Runs `work` on the file; its errors say which folder it was and what helps.
template <class Work>
auto in_folder(const std::string& folder, Work work) {
  try {
    return work();
  } catch (const UserError& error) {
    usage_error(
        "run.spill = {}: rows cannot be written there: {}; name another folder and give the command again (a "
        "training goes on from its newest checkpoint, if it has one)",
        folder, error.what());
  }
}

}  // namespace

SpilledRows::SpilledRows(std::string folder, std::int64_t rows, RowForm form, std::string name)
    : folder_(std::move(folder)),
      name_(std::move(name)),
      rows_(rows),
      chunk_rows_(DiskRows::rows_of_chunk(rows, form.row_bytes())),
      form_(std::move(form)),
      file_(in_folder(folder_, [&] { return RangedFile::unnamed(folder_); })) {
  digests_.assign(static_cast<std::size_t>((rows_ + chunk_rows_ - 1) / chunk_rows_), 0);
}

void SpilledRows::write(std::int64_t first, std::int64_t count, const std::byte* rows) {
  const auto row_bytes = form_.row_bytes(), end = first + count;
  ESPALIER_CHECK(end <= rows_, "rows {} + {} of {}", first, count, rows_);
  in_folder(folder_, [&] { file_.write(row_bytes * first, rows, row_bytes * count); });
  for (auto from = first, to = first; from < end; from = to) {
    const auto chunk = from / chunk_rows_;
    to = std::min(end, (chunk + 1) * chunk_rows_);
    digests_[chunk] += digest_rows(form_, rows + (from - first) * row_bytes, to - from, from);
  }
}

void SpilledRows::write(std::int64_t first, ConstMatrixView<float> rows) {
  ESPALIER_CHECK(form_.kind == &row_kind_of(float()) && rows.columns == form_.width, "{} columns of {}",
                 rows.columns, form_.width);
  write(first, rows.rows, reinterpret_cast<const std::byte*>(rows.data));
}

void SpilledRows::read(std::int64_t first, MatrixView<float> rows) const {
  const auto row_bytes = form_.row_bytes(), bytes = rows.rows * row_bytes;
  if (file_.read(first * row_bytes, rows.data, bytes) != bytes)
    input_error("run.spill = {}: {} ends too early", folder_, name_);
}

std::shared_ptr<const DiskRows> SpilledRows::release(std::optional<Ownership> owners, int part) {
  return std::make_shared<const DiskRows>(DiskRows::OwnFile{std::move(file_), "run.spill = " + folder_, name_,
                                                            rows_, std::move(form_), std::move(digests_)},
                                          std::move(owners), part);
}

}  // namespace espalier
