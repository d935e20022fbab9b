// Rows of a hidden layer that this rank has, in a file instead of memory: written piece by piece,
// then read as other rows on disk (disk_rows.hpp). The file has no name and goes with the process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "espalier/base/ranged_file.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/feature/disk_rows.hpp"

namespace espalier {

class SpilledRows {
 public:
  /// Of `rows` rows of `width` numbers, in a file of this folder. Local, as all of this is. Throws
  /// UserError(kUsage) where there cannot be one.
  SpilledRows(std::string folder, std::int64_t rows, std::int64_t width);

  /// The rows at places first, first + 1, ..; each is to be written once. Throws UserError(kUsage).
  void write(std::int64_t first, ConstMatrixView<float> rows);
  /// Those that were written.
  void read(std::int64_t first, MatrixView<float> rows) const;

  /// All of them, once they were written, by their places.
  std::shared_ptr<const DiskRows> release();

 private:
  std::string folder_;
  std::int64_t rows_, width_, chunk_rows_;
  RangedFile file_;
  std::vector<std::uint64_t> digests_;  // [chunks]
};

}  // namespace espalier
