#include "espalier/file/csv.hpp"

#include <algorithm>
#include <charconv>

namespace espalier {

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

// Moves to the next line, empty or not.
bool CsvReader::take_line() {
  at_ = 0;
  more_ = true;
  return lines_.next();
}

bool CsvReader::next_line() {
  if (!take_line()) return false;
  const auto is_empty = [&] { return without_blanks(lines_.text()).empty(); };
  if (!is_empty()) return true;
  const auto empty_line = line();
  while (take_line())
    if (!is_empty()) input_error("{}:{}: is empty, but the file goes on after it", path(), empty_line);
  return false;
}

std::string_view CsvReader::field() {
  if (!more_) fail("has only {} fields, too few", count_fields());
  const auto text = lines_.text();
  const auto end = std::min(text.find(separator_, at_), text.size());
  const auto found = text.substr(at_, end - at_);
  at_ = end + 1;
  more_ = end < text.size();
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
  fail("{}", why_no_number(text, what));
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
  return 1 + std::ranges::count(lines_.text(), separator_);
}

}  // namespace espalier
