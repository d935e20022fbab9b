// Lines of two whole numbers and perhaps a value and a time, in any order, apart by blanks, tabs or
// a comma: edge lists and the entries of Matrix Market files. Lines that begin with a comment's
// letter, and empty ones, are passed over.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/file/line_reader.hpp"

namespace espalier {

/// What a field of a line is: a whole number, but for the value.
enum class PairField { kFirst, kSecond, kValue, kTime };

/// What stands on a line.
struct PairForm {
  std::string comments = "#%";              ///< letters that a comment begins with
  std::string names = "source and target";  ///< of the fields, for messages
  std::vector<PairField> fields = {PairField::kFirst, PairField::kSecond};
  std::string hint = {};            ///< where a line has too many fields: what may help
  std::string no_number_hint = {};  ///< where a field is no number
};

class PairReader {
 public:
  /// Goes on with the next line of `lines`, which must outlive it.
  PairReader(LineReader& lines, PairForm form) : lines_(lines), form_(std::move(form)) {}

  /// Moves to the next pair; false at the end of the file. Throws UserError(kInput) with file and
  /// line where a line is something else.
  bool next();
  std::int64_t first() const { return first_; }
  std::int64_t second() const { return second_; }
  /// "nan" and "inf" are numbers here, the caller decides.
  double value() const { return value_; }
  std::int64_t time() const { return time_; }

  const LineReader& lines() const { return lines_; }

 private:
  bool read(const char* at, const char* end);
  [[noreturn]] void refuse() const;

  LineReader& lines_;
  PairForm form_;
  std::int64_t first_ = 0, second_ = 0, time_ = 0;
  double value_ = 1;
};

}  // namespace espalier
