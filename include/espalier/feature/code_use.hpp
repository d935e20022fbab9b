// What codes (quantised_rows.hpp) leave of the numbers of a column. One number that is far from all
// others takes the range for itself: of 200 others 199 may get one code, and are one number then.
#pragma once

#include <cstdint>
#include <vector>

#include "espalier/feature/quantised_rows.hpp"

namespace espalier {

/// A column whose numbers became few: its codes are 2, or at most an eighth of all that there are,
/// and it has at least 8 times as many numbers.
struct PoorColumn {
  std::int64_t column = 0;
  std::int64_t codes = 0;    ///< that stand in it
  std::int64_t numbers = 0;  ///< that it has, apart; more than CodeUse::kMostNumbers are
                             ///< not counted
  bool operator==(const PoorColumn&) const = default;
};

class CodeUse {
 public:
  static constexpr std::int64_t kMostNumbers = 256;

  explicit CodeUse(const Quantisation& packing);
  /// Some of this rank's rows, and what quantise_rows() made of them.
  void add(ConstMatrixView<float> rows, ConstMatrixView<QuantisedWord> packed);
  /// Collective over `comm`, whose ranks have all rows together. Ascending; of one bit none.
  std::vector<PoorColumn> poor_columns(const Communicator& comm) const;

 private:
  std::int64_t columns_;
  int bits_;
  std::vector<std::int32_t> seen_;           // [columns, codes] 1: it stands there
  std::vector<std::vector<float>> numbers_;  // [columns] ascending, kMostNumbers + 1 at most
};

}  // namespace espalier
