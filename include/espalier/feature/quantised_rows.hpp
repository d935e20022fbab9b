// Rows of features in fewer bits than a file has: graph.feature_bits = 8, 4, 2 or 1. Rows
// are packed once, when they are read, and lie, are kept and travel so; what a minibatch
// gets is float32.
//
// Of column j let a be the least and b the largest number of all vertices (of a type), as float32,
// after graph.feature_norm, and L = 2^bits - 1. In float64, every operation rounded by itself:
//
//     step   = (b - a) / L
//     code   = (x - a) / step, rounded to a whole number, halves to even; 0 where step is 0
//     number = float32(a + code step)            off by no more than step / 2 and a rounding
//
// so on every grid a number becomes the same, and a column of one number stays what it is. NumPy's
// np.rint(..) and .astype(np.float32) give the same bits.
//
// A row is its codes, one behind the other, the first in the lowest bits of the first byte, as
// np.packbits(.., bitorder="little") has them, then zeros up to a whole number of words of 2 bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/base/host_device.hpp"
#include "espalier/feature/row_form.hpp"

namespace espalier {

/// What codes stand for.
template <class Space>
struct QuantisationOn {
  std::int64_t columns = 0;
  int bits = 8;                ///< 1, 2, 4 or 8
  Array<Space, double> least;  ///< [columns] a
  Array<Space, double> step;   ///< [columns]
};
using Quantisation = QuantisationOn<Cpu>;

/// What code j of a row is, and what it stands for.
ESPALIER_HD inline std::uint32_t quantised_code(const std::uint8_t* row, std::int64_t j, int bits) {
  const auto bit = j * bits;
  return (row[bit / 8] >> (bit % 8)) & ((1u << bits) - 1);
}
ESPALIER_HD inline float quantised_number(std::uint32_t code, double least, double step) {
  return static_cast<float>(least + code * step);
}

/// Collective over `comm`, whose ranks have all rows together: the packing of rows of so many
/// columns. Exact, so it does not depend on who has which.
Quantisation measure_packing(const RowsInParts& pieces, std::int64_t columns, int bits,
                             const Communicator& comm);

/// The form of them: 1, 2, 4 or 8 bits.
const RowKind& codes_of(int bits);

/// A column whose numbers became few: its codes are 2, or at most an eighth of all that there are,
/// and it has at least 8 times as many numbers. One number that is far from all others takes the
/// range for itself: of 200 others 199 may get one code, and are one number then.
struct PoorColumn {
  std::int64_t column = 0;
  std::int64_t codes = 0;    ///< that stand in it
  std::int64_t numbers = 0;  ///< that it has, apart; more than CodeUse::kMostNumbers are
                             ///< not counted
  bool operator==(const PoorColumn&) const = default;
};

/// Columns of which codes leave little: they are named, for nothing else says so.
class CodeUse final : public RowLoss {
 public:
  static constexpr std::int64_t kMostNumbers = 256;

  explicit CodeUse(const RowForm& form);
  void add(ConstMatrixView<float> rows, const std::byte* written) override;
  void judge(const Grid& grid, const std::string& file, const std::string& type) const override;
  /// Collective over `comm`, whose ranks have all rows together. Ascending; of one bit none.
  std::vector<PoorColumn> poor_columns(const Communicator& comm) const;

 private:
  RowForm form_;
  std::int64_t columns_;
  int bits_;
  std::vector<std::int32_t> seen_;           // [columns, codes] 1: it stands there
  std::vector<std::vector<float>> numbers_;  // [columns] ascending, kMostNumbers + 1 at most
};

}  // namespace espalier
