#include "pair_reader.hpp"

#include <charconv>
#include <vector>

#include "espalier/base/text.hpp"

namespace espalier {

namespace {

bool is_blank(char letter) {
  return letter == ' ' || letter == '\t' || letter == '\r';
}

const char* pass_blanks(const char* at, const char* end) {
  while (at < end && is_blank(*at)) ++at;
  return at;
}

// Behind what stands between two fields; null where there is nothing between them.
const char* pass_separator(const char* at, const char* end) {
  const auto* behind = pass_blanks(at, end);
  if (behind < end && *behind == ',') behind = pass_blanks(behind + 1, end);
  return behind == at ? nullptr : behind;
}

// Reads a number; null where there is none.
template <class Number>
const char* read_number(const char* at, const char* end, Number& number) {
  const auto [behind, error] = std::from_chars(at, end, number);
  return error == std::errc() ? behind : nullptr;
}

std::vector<std::string_view> fields_of(std::string_view text) {
  std::vector<std::string_view> fields;
  const auto* end = text.data() + text.size();
  const auto* at = pass_blanks(text.data(), end);
  while (at != nullptr) {
    const auto* begin = at;
    while (at < end && !is_blank(*at) && *at != ',') ++at;
    fields.emplace_back(begin, at - begin);
    if (pass_blanks(at, end) == end) break;
    at = pass_separator(at, end);
  }
  return fields;
}

template <class Number>
void check_field(const LineReader& lines, std::string_view text, const char* what, const std::string& hint) {
  Number number{};
  const auto* end = text.data() + text.size();
  const auto [behind, error] = std::from_chars(text.data(), end, number);
  if (behind == end && error == std::errc::result_out_of_range)
    lines.fail("'{}' is out of range", in_short(text));
  if (behind != end || error != std::errc()) lines.fail("{}{}", why_no_number(text, what), hint);
}

}  // namespace

bool PairReader::next() {
  while (lines_.next()) {
    const auto text = lines_.text();
    const auto* end = text.data() + text.size();
    const auto* at = pass_blanks(text.data(), end);
    if (at == end || form_.comments.find(*at) != std::string::npos) continue;
    if (!read(at, end)) refuse();
    return true;
  }
  return false;
}

bool PairReader::read(const char* at, const char* end) {
  const auto read_field = [&](PairField field) {
    if (field == PairField::kValue) return read_number(at, end, value_);
    return read_number(at, end,
                       field == PairField::kFirst    ? first_
                       : field == PairField::kSecond ? second_
                                                     : time_);
  };
  at = read_field(form_.fields[0]);
  for (std::size_t k = 1; k < form_.fields.size() && at != nullptr; ++k) {
    at = pass_separator(at, end);
    if (at != nullptr) at = read_field(form_.fields[k]);
  }
  return at != nullptr && pass_blanks(at, end) == end;
}

void PairReader::refuse() const {
  const auto fields = fields_of(lines_.text());
  const auto wanted = std::ssize(form_.fields);
  for (std::ptrdiff_t k = 0; k < std::ssize(fields) && k < wanted; ++k)
    form_.fields[k] == PairField::kValue
        ? check_field<double>(lines_, fields[k], "a number", form_.no_number_hint)
        : check_field<std::int64_t>(lines_, fields[k], "a whole number", form_.no_number_hint);
  lines_.fail("has {}, expected {}: {}{}", counted(std::ssize(fields), "field"), wanted, form_.names,
              std::ssize(fields) > wanted ? form_.hint : "");
}

}  // namespace espalier
