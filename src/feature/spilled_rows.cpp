#include "espalier/feature/spilled_rows.hpp"

#include <algorithm>
#include <utility>

#include "espalier/base/error.hpp"
#include "espalier/graph/content_digest.hpp"

namespace espalier {

namespace {

// Runs `work` on the file; its errors say which folder it was and what helps.
template <class Work>
auto in_folder(const std::string& folder, Work work) {
  try {
    return work();
  } catch (const UserError& error) {
    usage_error(
        "run.spill = {}: rows of hidden layers cannot be written there: {}; name another folder and give the "
        "command again: training goes on from its newest checkpoint, if it has one",
        folder, error.what());
  }
}

}  // namespace

SpilledRows::SpilledRows(std::string folder, std::int64_t rows, std::int64_t width)
    : folder_(std::move(folder)),
      rows_(rows),
      width_(width),
      chunk_rows_(DiskRows::rows_of_chunk(rows, 4 * width)),
      file_(in_folder(folder_, [&] { return RangedFile::unnamed(folder_); })),
      digests_(static_cast<std::size_t>((rows + chunk_rows_ - 1) / chunk_rows_), 0) {}

void SpilledRows::write(std::int64_t first, ConstMatrixView<float> rows) {
  ESPALIER_CHECK(rows.columns == width_ && first + rows.rows <= rows_, "rows {} + {} of {}", first, rows.rows,
                 rows_);
  in_folder(folder_, [&] { file_.write(4 * first * width_, rows.data, 4 * rows.rows * width_); });
  const auto end = first + rows.rows;
  for (auto from = first, to = first; from < end; from = to) {
    const auto chunk = from / chunk_rows_;
    to = std::min(end, (chunk + 1) * chunk_rows_);
    digests_[chunk] += content_digest(
        std::span(rows.row(from - first), static_cast<std::size_t>((to - from) * width_)), from * width_);
  }
}

void SpilledRows::read(std::int64_t first, MatrixView<float> rows) const {
  const auto bytes = 4 * rows.rows * width_;
  if (file_.read(4 * first * width_, rows.data, bytes) != bytes)
    input_error("run.spill = {}: a hidden layer ends too early", folder_);
}

std::shared_ptr<const DiskRows> SpilledRows::release() {
  return std::make_shared<const DiskRows>(std::move(file_), "run.spill = " + folder_, rows_, width_,
                                          std::move(digests_));
}

}  // namespace espalier
