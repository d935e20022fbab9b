// The form of rows: what a row of numbers is in memory, on disk and on the wire. Who keeps, moves,
// caches or spills rows moves their bytes; what a row stands for is asked of its form alone.
//
//     float32  --write-->  bytes of a row  --moved as they are-->  --gather-->  float32
//
// Forms are lines of a table (kind_asked): float32 and float16, as graph files have them, bfloat16,
// pairs of sparse features, and codes of few bits (quantised_rows.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "espalier/base/config.hpp"
#include "espalier/base/device_array.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/half.hpp"
#include "espalier/comm/grid.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

struct RowKind;
template <class Space>
struct QuantisationOn;

/// Calls what it is given with all rows of this rank, some at a time, every time that it is called.
using RowsInParts = std::function<void(const std::function<void(const Matrix<float>&)>&)>;

/// Of rows of one width.
template <class Space>
struct RowFormOn {
  const RowKind* kind = nullptr;
  std::int64_t width = 0;                                ///< numbers of a row, once it is gathered
  std::shared_ptr<const QuantisationOn<Space>> codes{};  ///< what codes stand for; else null

  std::int64_t row_bytes() const;
};
using RowForm = RowFormOn<Cpu>;

/// What numbers have become in a form, found while rows are written.
class RowLoss {
 public:
  virtual ~RowLoss() = default;
  /// Some of this rank's rows, and what they were written as.
  virtual void add(ConstMatrixView<float> rows, const std::byte* written) = 0;
  /// Collective over the grid, when all were: warns, or throws UserError(kUsage). `file`: its path;
  /// `type`: " of papers" where a graph has types.
  virtual void judge(const Grid& grid, const std::string& file, const std::string& type) const = 0;
};

/// How a GPU gathers rows: as numbers that lie one behind the other, or by their codes.
enum class RowElements { kFloat, kHalf, kBFloat16, kCodes };

struct RowTraits {
  std::string_view asked = {};  ///< graph.feature_bits; empty: never asked for
  std::string_view name = {};   ///< float32
  std::string_view words = {};  ///< "rows are written in .."
  std::string_view most = {};   ///< its largest number, where that is less than float32's
  RowElements elements = RowElements::kCodes;
  std::int64_t first = 0, step = 1;  ///< numbers that graph.feature_norm is of: first,
                                     ///< first + step, ..
  bool of_columns = false;           ///< does it hang on the columns? Then types share no table
  bool narrows = false;              ///< may a GPU keep bfloat16 instead
                                     ///< (train.precision = "bf16")?
};

/// What a form is for every width: a line of the table. Immutable.
struct RowKind : RowTraits {
  explicit RowKind(RowTraits of) : RowTraits(of) {}
  virtual ~RowKind() = default;

  virtual std::int64_t row_bytes(std::int64_t width) const = 0;
  /// One row, on the CPU: its numbers to `to` [width], and back.
  virtual void read(const RowForm& form, const std::byte* row, float* to) const = 0;
  virtual void write(const RowForm& form, const float* row, std::byte* to) const = 0;
  /// Collective over `comm`, whose ranks have all rows together: the form in which to write them.
  virtual RowForm measure(const RowsInParts& pieces, std::int64_t width, const Communicator& comm) const;
  virtual std::unique_ptr<RowLoss> loss(const RowForm& form) const;
};

template <class Space>
std::int64_t RowFormOn<Space>::row_bytes() const {
  return kind->row_bytes(width);
}

/// That of numbers of a type, one behind the other.
const RowKind& row_kind_of(float);
const RowKind& row_kind_of(Half);
const RowKind& row_kind_of(BFloat16);
/// Of `half` or float32 numbers, or of pairs of them (dense/paired_rows.hpp): as a graph
/// file has them.
const RowKind& kind_in_file(bool half, bool pairs = false);
/// That which graph.feature_bits asks for; null: rows are kept as the file has them.
const RowKind* kind_asked(const NumberOrWord& bits);

/// Calls use(T()) with the numbers that rows in a file are of: float or Half.
template <class Use>
auto with_numbers_of(const RowKind& in_file, Use use) {
  return &in_file == &row_kind_of(Half()) ? use(Half()) : use(float());
}

/// Rows of a form one behind the other, and the memory that they lie in, which copies share.
template <class Space>
struct StoredRows {
  RowFormOn<Space> form;
  std::int64_t rows = 0;
  std::byte* data = nullptr;       ///< [rows, form.row_bytes()], memory of the space
  std::shared_ptr<void> memory{};  ///< that they lie in

  StoredRows() = default;
  /// In memory of the space, which is kept.
  template <class Memory>
  StoredRows(RowFormOn<Space> of, std::int64_t count, std::shared_ptr<Memory> lie_in)
      : form(std::move(of)),
        rows(count),
        data(reinterpret_cast<std::byte*>(lie_in->data())),
        memory(std::move(lie_in)) {}
  /// Not initialised.
  StoredRows(const RowFormOn<Space>& of, std::int64_t count)
      : StoredRows(of, count, std::make_shared<Array<Space, std::byte>>(count * of.row_bytes())) {}
  /// The numbers of a matrix, or pairs of them, as they lie.
  template <class T>
  StoredRows(Matrix<T, Space> matrix, const RowKind& kind = row_kind_of(T()))
      : StoredRows({&kind, matrix.columns}, matrix.rows,
                   std::make_shared<Array<Space, T>>(std::move(matrix.data))) {}

  std::byte* row(std::int64_t k) const { return data + k * form.row_bytes(); }
  std::int64_t bytes() const { return rows * form.row_bytes(); }
  /// Rows that are float32, where they lie.
  MatrixView<float, Space> floats() const {
    ESPALIER_CHECK(form.kind == &row_kind_of(float()), "{} rows that change are not float32", rows);
    return {rows, form.width, reinterpret_cast<float*>(data)};
  }
};

/// Calls use(rows) with some after another, as float32; `written`: and writes them back.
void each_numbers(const StoredRows<Cpu>& rows, bool written, const std::function<void(Matrix<float>&)>& use);
/// Writes rows to `to` [rows.rows, form.row_bytes()].
void write_rows(const RowForm& form, ConstMatrixView<float> rows, std::byte* to, int threads = 1);
/// The share of `count` rows, from row `first` on, in a digest of all: content_digest of words.
std::uint64_t digest_rows(const RowForm& form, const std::byte* rows, std::int64_t count, std::int64_t first);

/// to[k] = row source[k] of `from`, or ~source[k] of `own` where that is negative, as float32.
/// source [to.rows], memory of the space as all.
void gather_rows(const Cpu&, const RowForm& form, const std::byte* from, const std::byte* own,
                 const std::int64_t* source, MatrixView<float> to);
void gather_rows(const Cuda&, const RowFormOn<Cuda>& form, const std::byte* from, const std::byte* own,
                 const std::int64_t* source, MatrixView<float, Cuda> to);

/// The rows for the GPU, where `placement` says. `narrow`: as bfloat16, if their form narrows.
StoredRows<Cuda> to_device(const Cuda& cuda, const StoredRows<Cpu>& rows, Placement placement,
                           bool narrow = false);

}  // namespace espalier
