// The lines of a text, plain or packed (packed_file.hpp), as a stream: memory for one line,
// whatever the size of the file.
//
// Every error is a UserError(kInput) that starts with FILE:LINE. The mark of UTF-8 at the start is
// passed over. A line has at most 64 MiB: a damaged file may have no ends of lines.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/base/error.hpp"
#include "espalier/file/packed_file.hpp"

namespace espalier {

class LineReader {
 public:
  /// Throws as PackedFile does.
  explicit LineReader(const std::string& path);
  /// The lines that begin in bytes [begin, end) of a text that is not packed, whose numbers nobody
  /// knows.
  LineReader(const std::string& path, std::int64_t begin, std::int64_t end);

  /// Moves to the next line, empty or not; false at the end of the file.
  bool next();
  /// The current line, without the newline at its end; valid until the next.
  std::string_view text() const { return text_; }
  const std::string& path() const { return path_; }
  /// The number of the current line, from 1.
  std::int64_t line() const { return line_; }
  /// How many bytes of the text are before the next line.
  std::int64_t passed() const { return passed_; }

  /// Throws UserError(kInput): "PATH:LINE: message".
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    input_error("{}:{}: {}", path_, line(), fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  bool fill();
  void pass_over_mark();

  std::string path_;
  PackedFile file_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // what is unread of the buffer
  bool at_end_ = false;
  std::string_view text_;
  std::int64_t line_ = 0;
  std::int64_t passed_ = 0;
  std::int64_t end_of_part_ = std::numeric_limits<std::int64_t>::max();  // no line begins there
};

/// A text without the blanks around it, and without a carriage return at its end.
std::string_view without_blanks(std::string_view text);

/// For a message: the first 60 characters, on one line of any terminal.
std::string in_short(std::string_view text);

/// Why a text is not `what` ("a whole number"), where a reader could think that it is one.
std::string why_no_number(std::string_view text, const char* what);

}  // namespace espalier
