// Rows that this rank has, of a hidden layer or features in fewer bits, in a file instead of
// memory: written piece by piece, then read as other rows on disk (disk_rows.hpp). The file has no
// name and goes with the process.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "espalier/base/ranged_file.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/feature/disk_rows.hpp"
#include "espalier/feature/row_storage.hpp"
#include "espalier/partition/ownership.hpp"

namespace espalier {

class SpilledRows {
 public:
  /// So many rows of a hidden layer, of `width` numbers, in a file of this folder. Local, as all of
  /// this is. Throws UserError(kUsage) where there cannot be one.
  SpilledRows(std::string folder, std::int64_t rows, std::int64_t width)
      : SpilledRows(std::move(folder), rows, {&row_kind_of(float()), width}, "a hidden layer") {}
  /// So many rows of a form; `name`: what they are, for messages.
  SpilledRows(std::string folder, std::int64_t rows, RowForm form, std::string name);

  /// The rows at places first, first + 1, .., as they are stored, or float32 where they are stored
  /// so; each is to be written once. Throws UserError(kUsage).
  void write(std::int64_t first, std::int64_t count, const std::byte* rows);
  void write(std::int64_t first, ConstMatrixView<float> rows);
  /// Those of a hidden layer that were written.
  void read(std::int64_t first, MatrixView<float> rows) const;

  /// All of them, once they were written: by their places, or, as those that a part owns, by the
  /// owners' ids.
  std::shared_ptr<const DiskRows> release(std::optional<Ownership> owners = {}, int part = 0);

 private:
  std::string folder_, name_;
  std::int64_t rows_, chunk_rows_;
  RowForm form_;
  RangedFile file_;
  std::vector<std::uint64_t> digests_;  // [chunks]
};

}  // namespace espalier
