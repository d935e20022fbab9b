// Reads number tables in CSV, plain, gzip or zstd, as a stream: memory for one line, whatever the
// size of the file.
//
//     CsvReader csv("raw/edge.csv.gz");
//     while (csv.next_line()) {
//       const auto u = csv.integer(), v = csv.integer();
//       csv.end_line();
//     }
//
// Every error is a UserError(kInput) that starts with FILE:LINE; it quotes at most 60 characters of
// a field. A field is what stands between commas; blanks around it and a carriage return at the end
// of a line are ignored, and so are empty lines at the end of the file and the mark of UTF-8 at its
// start. Whole numbers are plain digits, with or without a minus.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/file/line_reader.hpp"

namespace espalier {

/// What stands between separators: one part more than there are of them.
std::vector<std::string> split_text(const std::string& text, char separator);

/// `text` as a field of CSV (RFC 4180): in quotes where it has commas, quotes or ends of lines.
std::string csv_field(const std::string& text);

class CsvReader {
 public:
  /// Throws UserError(kInput) when there is no such file, or a pipe, a device or a folder has its
  /// name.
  explicit CsvReader(const std::string& path) : lines_(path) {}

  /// Fields stand between these from here on, not between commas.
  void separate_by(char separator) { separator_ = separator; }
  /// Has the current line this letter?
  bool contains(char letter) const { return lines_.text().find(letter) != std::string_view::npos; }

  /// Moves to the next line; false at the end of the file.
  bool next_line();
  /// Has the current line another field?
  bool has_field() const { return more_; }
  /// The next field as a whole number.
  std::int64_t integer();
  /// The next field as a number; "nan" and "inf" are numbers here, the caller decides.
  double number();
  /// The next field as it stands, without the blanks around it; valid until the next line.
  std::string_view text() { return field(); }
  /// Passes over the next field.
  void skip_field() { field(); }
  /// The current line must have been read to its end.
  void end_line() const;
  /// Number of fields of the current line, from its start.
  std::int64_t count_fields() const;

  const std::string& path() const { return lines_.path(); }
  std::int64_t line() const { return lines_.line(); }

  /// Throws UserError(kInput): "PATH:LINE: message".
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    lines_.fail(format, std::forward<Args>(args)...);
  }

 private:
  bool take_line();
  std::string_view field();
  template <class Number>
  Number parse(const char* what);

  LineReader lines_;
  char separator_ = ',';
  std::size_t at_ = 0;  // the next field within the line
  bool more_ = false;
};

}  // namespace espalier
