#include "espalier/file/line_reader.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace espalier {

namespace {

constexpr std::size_t kChunk = std::size_t{1} << 20;
constexpr std::size_t kLongestLine = std::size_t{64} << 20;

// A number, but written in a way that only a reader of numbers takes: 5.0, 1e3.
bool is_number(std::string_view text) {
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

}  // namespace

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

std::string in_short(std::string_view text) {
  constexpr std::size_t kMost = 60;
  std::string out(text.substr(0, kMost));
  for (auto& letter : out)
    if (static_cast<unsigned char>(letter) < ' ' || letter == '\x7f') letter = '?';
  return out + (text.size() > kMost ? "..." : "");
}

std::string why_no_number(std::string_view text, const char* what) {
  if (text.empty()) return fmt::format("an empty field, where {} is expected", what);
  if (text.find('\0') != std::string_view::npos)
    return fmt::format("'{}' has a zero byte in it: the file is damaged, or no text", in_short(text));
  if (text.front() == '+' && is_number(text.substr(1)))
    return fmt::format("'{}' is not {}: leave out the plus sign", in_short(text), what);
  if (is_number(text)) return fmt::format("'{}' is not {} in plain digits, as 1000", in_short(text), what);
  return fmt::format("'{}' is not {}", in_short(text), what);
}

LineReader::LineReader(const std::string& path) : path_(path), file_(path), buffer_(kChunk) {
  pass_over_mark();
}

// A line that began before is not theirs; to see whether one begins at the first byte, they look at
// the one in front of it.
LineReader::LineReader(const std::string& path, std::int64_t begin, std::int64_t end)
    : path_(path),
      file_(path, std::max<std::int64_t>(begin - 1, 0)),
      buffer_(kChunk),
      passed_(std::max<std::int64_t>(begin - 1, 0)),
      end_of_part_(end) {
  if (begin == 0)
    pass_over_mark();
  else
    next();
}

// Some editors write a mark of the encoding in front of the text.
void LineReader::pass_over_mark() {
  while (end_ < 3 && fill()) continue;
  const std::string_view start(buffer_.data(), end_);
  if (start.starts_with("\xef\xbb\xbf")) passed_ = begin_ = 3;
  if (start.starts_with("\xff\xfe") || start.starts_with("\xfe\xff"))
    input_error("{}:1: the file is text in UTF-16; save it as plain text (UTF-8)", path_);
}

// Reads more behind what is unread; false at the end of the file.
bool LineReader::fill() {
  if (at_end_) return false;
  std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_),
            buffer_.begin() + static_cast<std::ptrdiff_t>(end_), buffer_.begin());
  end_ -= begin_;
  begin_ = 0;
  if (end_ > kLongestLine)
    input_error("{}:{}: the line is longer than 64 MiB; is this a table of numbers?", path_, line_ + 1);
  if (end_ == buffer_.size()) buffer_.resize(2 * buffer_.size());
  try {
    const auto got = file_.read(buffer_.data() + end_, static_cast<std::int64_t>(buffer_.size() - end_));
    at_end_ = got == 0;
    end_ += static_cast<std::size_t>(got);
  } catch (const DamagedPacking& reason) {
    input_error("{}: after line {}: the compressed file is damaged or cut off ({}); fetch it again", path_,
                line_, reason.what());
  }
  return !at_end_;
}

bool LineReader::next() {
  if (passed_ >= end_of_part_) return false;
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
  const auto passed = std::min(length + 1, end_ - begin_);
  begin_ += passed;
  passed_ += static_cast<std::int64_t>(passed);
  ++line_;
  return true;
}

}  // namespace espalier
