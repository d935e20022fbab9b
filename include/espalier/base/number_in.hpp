// Numbers in texts that people write: options, lists, names.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace espalier {

/// What all of `text` says; none where it is no number of the type.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  return result.ec == std::errc() && result.ptr == end ? std::optional(number) : std::nullopt;
}

}  // namespace espalier
