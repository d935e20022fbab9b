// Takes the rows of a hidden layer into a file (feature/spilled_rows.hpp), and gives the block row
// of this rank, of which the c ranks of a process row have a share each.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "espalier/base/error.hpp"
#include "espalier/comm/grid.hpp"
#include "espalier/feature/spilled_rows.hpp"
#include "espalier/infer/row_sink.hpp"
#include "espalier/partition/ownership.hpp"

namespace espalier {

class SpillSink final : public RowSink {
 public:
  /// Collective over the grid. `shares`: LayerwisePassOn::shares. `also`: another that is given the
  /// rows, or null. All must outlive it. Throws UserError(kUsage) where there can be no file.
  SpillSink(const Grid& grid, const Ownership& ownership, const Ownership& shares, const std::string& folder,
            std::int64_t width, RowSink* also);

  void take(const Cpu& cpu, std::int64_t first, Matrix<float>& rows) override;

  /// Collective over the grid. The rows of the block row, once all shares were given. Throws
  /// UserError(kUsage), on every rank, where some could not be written.
  std::shared_ptr<const DiskRows> gathered(const std::string& label);

 private:
  template <class Work>
  void attempt(Work work);
  void exchange_shares(const std::string& label);

  const Grid& grid_;
  const Ownership& shares_;
  std::int64_t width_, begin_ = 0;  // where my share begins in the block row
  RowSink* also_;
  std::optional<SpilledRows> rows_;
  std::optional<UserError> wrong_;  // what this rank met first
};

}  // namespace espalier
