// The hidden layers of an `infer` that were computed, in files of a folder (--resume), so that the
// same command goes on after the last of them, on any number of ranks.
//
// One run at a time has a folder.
//
//     FOLDER/layer-1.h5    as infer/row_file.hpp has it, whole or not there: /embeddings of all
//                          vertices; attributes made_of: everything that they depend on, and
//                          rows_digest: of the numbers
//
// They are removed when the command has written what it was asked for.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "espalier/feature/row_store.hpp"
#include "espalier/infer/row_file.hpp"
#include "espalier/job/job.hpp"

namespace espalier {

class KeptLayers {
 public:
  /// Collective. `made_of`: what the rows depend on; `hidden`: how many layers may be kept. Throws
  /// UserError(kUsage) where the folder cannot be one, or has layers of something else.
  KeptLayers(const Job& job, std::string folder, const std::string& made_of, int hidden);

  /// The last that is whole; 0: none.
  int done() const { return done_; }
  /// Collective. Its rows, of the block row of each rank. Throws UserError(kInput) where the file
  /// does not hold what it held.
  RowStore read(std::int64_t width) const;

  /// Collective. The rows of a layer will come, for each vertex once.
  void begin(int layer, std::int64_t width);
  /// Local: of these vertices of this rank.
  void take(std::int64_t first, const Matrix<float>& rows);
  /// Collective. Throws UserError(kUsage) on every rank when a write has failed on any.
  void check();
  /// Collective. All have come: the file is there.
  void end();

  /// Collective. They are of no use any more.
  void remove();

 private:
  std::string path(int layer) const;

  const Job& job_;
  std::string folder_, made_of_;
  int hidden_, done_ = 0, open_ = 0;
  std::unique_ptr<RowFile> file_;
  std::uint64_t digest_ = 0;
  std::int64_t width_ = 0;
};

}  // namespace espalier
