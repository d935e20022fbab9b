#include "espalier/feature/spilled_rows.hpp"

#include <algorithm>
#include <utility>

#include "espalier/base/error.hpp"
#include "espalier/file/content_digest.hpp"

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

SpilledRows::SpilledRows(std::string folder, std::int64_t rows, StoredRows<Cpu> form, std::string name)
    : folder_(std::move(folder)),
      name_(std::move(name)),
      rows_(rows),
      form_(std::move(form)),
      file_(in_folder(folder_, [&] { return RangedFile::unnamed(folder_); })) {
  std::visit(
      [&]<class T>(const Matrix<T>& none) {
        width_ = none.columns;
        chunk_rows_ = DiskRows::rows_of_chunk(rows_, std::int64_t{sizeof(T)} * width_);
      },
      form_);
  digests_.assign(static_cast<std::size_t>((rows_ + chunk_rows_ - 1) / chunk_rows_), 0);
}

template <class T>
void SpilledRows::write(std::int64_t first, std::type_identity_t<ConstMatrixView<T>> rows) {
  constexpr std::int64_t kBytes = sizeof(T);
  ESPALIER_CHECK(rows.columns == width_ && first + rows.rows <= rows_, "rows {} + {} of {}", first, rows.rows,
                 rows_);
  in_folder(folder_, [&] { file_.write(kBytes * first * width_, rows.data, kBytes * rows.rows * width_); });
  const auto end = first + rows.rows;
  for (auto from = first, to = first; from < end; from = to) {
    const auto chunk = from / chunk_rows_;
    to = std::min(end, (chunk + 1) * chunk_rows_);
    digests_[chunk] += content_digest(
        std::span(rows.row(from - first), static_cast<std::size_t>((to - from) * width_)), from * width_);
  }
}

template void SpilledRows::write<float>(std::int64_t, ConstMatrixView<float>);
template void SpilledRows::write<Half>(std::int64_t, ConstMatrixView<Half>);
template void SpilledRows::write<QuantisedWord>(std::int64_t, ConstMatrixView<QuantisedWord>);

void SpilledRows::read(std::int64_t first, MatrixView<float> rows) const {
  const auto bytes = 4 * rows.rows * width_;
  if (file_.read(4 * first * width_, rows.data, bytes) != bytes)
    input_error("run.spill = {}: {} ends too early", folder_, name_);
}

std::shared_ptr<const DiskRows> SpilledRows::release(std::optional<Ownership> owners, int part) {
  return std::make_shared<const DiskRows>(DiskRows::OwnFile{std::move(file_), "run.spill = " + folder_, name_,
                                                            rows_, std::move(form_), std::move(digests_)},
                                          std::move(owners), part);
}

}  // namespace espalier
