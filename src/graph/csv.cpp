#include "espalier/graph/csv.hpp"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "espalier/base/output_file.hpp"
#include "espalier/base/progress.hpp"

namespace espalier {

namespace {

constexpr std::size_t kChunk = std::size_t{1} << 20;
constexpr std::size_t kLongestLine = std::size_t{64} << 20;

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

// For a message: the first 60 characters, on one line of any terminal.
std::string in_short(std::string_view text) {
  constexpr std::size_t kMost = 60;
  std::string out(text.substr(0, kMost));
  for (auto& letter : out)
    if (static_cast<unsigned char>(letter) < ' ' || letter == '\x7f') letter = '?';
  return out + (text.size() > kMost ? "..." : "");
}

// A number, but written in a way that only a reader of numbers takes: 5.0, 1e3.
bool is_number(std::string_view text) {
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

}  // namespace

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string field = "\"";
  for (const char letter : text) field += letter == '"' ? std::string("\"\"") : std::string(1, letter);
  return field + "\"";
}

std::vector<std::string> split_text(const std::string& text, char separator) {
  std::vector<std::string> parts = {""};
  for (const char letter : text)
    if (letter == separator)
      parts.emplace_back();
    else
      parts.back() += letter;
  return parts;
}

CsvReader::CsvReader(const std::string& path) : path_(path), buffer_(kChunk) {
  // Opening a pipe could wait for ever.
  if (const auto other = other_than_file(path); !other.empty())
    input_error("{} is a {}, not a file; put a file there", path, other);
  stream_ = gzopen(path.c_str(), "rb");  // reads plain text as it is
  if (stream_ == nullptr) input_error("cannot open {}: {}", path, std::strerror(errno));
  gzbuffer(static_cast<gzFile>(stream_), 1u << 18);
  try {
    pass_over_mark();
  } catch (...) {
    gzclose(static_cast<gzFile>(stream_));
    throw;
  }
}

CsvReader::~CsvReader() {
  gzclose(static_cast<gzFile>(stream_));
}

// Some editors write a mark of the encoding in front of the text.
void CsvReader::pass_over_mark() {
  fill();
  const std::string_view start(buffer_.data(), end_);
  if (start.starts_with("\xef\xbb\xbf")) begin_ = 3;
  if (start.starts_with("\xff\xfe") || start.starts_with("\xfe\xff"))
    input_error("{}:1: the file is text in UTF-16; save it as plain text (UTF-8)", path_);
}

// Reads more behind what is unread; false at the end of the file.
bool CsvReader::fill() {
  if (at_end_) return false;
  std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_),
            buffer_.begin() + static_cast<std::ptrdiff_t>(end_), buffer_.begin());
  end_ -= begin_;
  begin_ = 0;
  if (end_ > kLongestLine)
    input_error("{}:{}: the line is longer than 64 MiB; is this a table of numbers?", path_, line_ + 1);
  if (end_ == buffer_.size()) buffer_.resize(2 * buffer_.size());
  auto* stream = static_cast<gzFile>(stream_);
  const int got = gzread(stream, buffer_.data() + end_, static_cast<unsigned>(buffer_.size() - end_));
  int code = Z_OK;
  const std::string reason = gzerror(stream, &code);
  if (got < 0 || code == Z_BUF_ERROR)
    input_error("{}: after line {}: the compressed file is damaged or cut off ({}); fetch it again", path_,
                line_, reason);
  note_movement();
  at_end_ = got == 0;
  end_ += static_cast<std::size_t>(got);
  return got > 0;
}

// Moves to the next line, empty or not.
bool CsvReader::take_line() {
  std::size_t searched = 0;
  const char* newline = nullptr;
  do {
    const char* from = buffer_.data() + begin_;
    newline = static_cast<const char*>(std::memchr(from + searched, '\n', end_ - begin_ - searched));
    searched = end_ - begin_;
  } while (newline == nullptr && fill());
  if (begin_ == end_) return false;
  const char* start = buffer_.data() + begin_;
  const auto length = newline != nullptr ? static_cast<std::size_t>(newline - start) : end_ - begin_;
  text_ = std::string_view(start, length);
  begin_ += std::min(length + 1, end_ - begin_);
  ++line_;
  at_ = 0;
  more_ = true;
  return true;
}

bool CsvReader::next_line() {
  if (!take_line()) return false;
  if (!without_blanks(text_).empty()) return true;
  const auto empty_line = line_;
  while (take_line()) {
    if (without_blanks(text_).empty()) continue;
    line_ = empty_line;
    fail("is empty, but the file goes on after it");
  }
  return false;
}

std::string_view CsvReader::field() {
  if (!more_) fail("has only {} fields, too few", count_fields());
  const auto end = std::min(text_.find(separator_, at_), text_.size());
  const auto found = text_.substr(at_, end - at_);
  at_ = end + 1;
  more_ = end < text_.size();
  return without_blanks(found);
}

template <class Number>
Number CsvReader::parse(const char* what) {
  const auto text = field();
  Number value{};
  const auto* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec == std::errc() && result.ptr == end) return value;
  if (result.ec == std::errc::result_out_of_range && result.ptr == end)
    fail("'{}' is out of range", in_short(text));
  refuse(text, what);
}

// Why a field is no number, where a reader could think that it is one.
void CsvReader::refuse(std::string_view text, const char* what) const {
  if (text.empty()) fail("an empty field, where {} is expected", what);
  if (text.find('\0') != std::string_view::npos)
    fail("'{}' has a zero byte in it: the file is damaged, or no text", in_short(text));
  if (text.front() == '+' && is_number(text.substr(1)))
    fail("'{}' is not {}: leave out the plus sign", in_short(text), what);
  if (is_number(text)) fail("'{}' is not {} in plain digits, as 1000", in_short(text), what);
  fail("'{}' is not {}", in_short(text), what);
}

std::int64_t CsvReader::integer() {
  return parse<std::int64_t>("a whole number");
}
double CsvReader::number() {
  return parse<double>("a number");
}

void CsvReader::end_line() const {
  if (more_) fail("has {} fields, too many", count_fields());
}

std::int64_t CsvReader::count_fields() const {
  return 1 + std::count(text_.begin(), text_.end(), separator_);
}

}  // namespace espalier
