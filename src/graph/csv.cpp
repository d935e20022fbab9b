#include "espalier/graph/csv.hpp"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "espalier/base/whereabouts.hpp"

namespace espalier {

namespace {

constexpr std::size_t kChunk = std::size_t{1} << 20;

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

}  // namespace

CsvReader::CsvReader(const std::string& path) : path_(path), buffer_(kChunk) {
  stream_ = gzopen(path.c_str(), "rb");  // reads plain text as it is
  if (stream_ == nullptr) input_error("cannot open {}: {}", path, std::strerror(errno));
  gzbuffer(static_cast<gzFile>(stream_), 1u << 18);
}

CsvReader::~CsvReader() {
  gzclose(static_cast<gzFile>(stream_));
}

// Reads more behind what is unread; false at the end of the file.
bool CsvReader::fill() {
  if (at_end_) return false;
  std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_),
            buffer_.begin() + static_cast<std::ptrdiff_t>(end_), buffer_.begin());
  end_ -= begin_;
  begin_ = 0;
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

bool CsvReader::next_line() {
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
  if (!without_blanks(text_).empty()) return true;
  const auto empty_line = line_;
  if (!next_line()) return false;
  line_ = empty_line;
  fail("is empty, but the file goes on after it");
}

std::string_view CsvReader::field() {
  if (!more_) fail("has only {} fields, too few", count_fields());
  const auto comma = std::min(text_.find(',', at_), text_.size());
  const auto found = text_.substr(at_, comma - at_);
  at_ = comma + 1;
  more_ = comma < text_.size();
  return without_blanks(found);
}

template <class Number>
Number CsvReader::parse(const char* what) {
  const auto text = field();
  Number value{};
  const auto* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec == std::errc() && result.ptr == end) return value;
  if (result.ec == std::errc::result_out_of_range && result.ptr == end) fail("'{}' is out of range", text);
  fail("'{}' is not {}", text, what);
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
  return 1 + std::count(text_.begin(), text_.end(), ',');
}

}  // namespace espalier
