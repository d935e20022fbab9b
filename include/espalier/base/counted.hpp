// Numbers of things in words: "1 rank", "2 ranks", "1 batch", "3 copies".
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace espalier {

inline std::string counted(std::int64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

/// The plural of a noun: of "vertex", "copy", "class" and "batch", too.
inline std::string plural_of(std::string_view noun) {
  const std::string word(noun);
  if (noun.ends_with("ex")) return word.substr(0, word.size() - 2) + "ices";
  if (noun.ends_with("py") || noun.ends_with("ry")) return word.substr(0, word.size() - 1) + "ies";
  return word + (noun.ends_with("s") || (noun.ends_with("ch") && noun != "epoch") ? "es" : "s");
}

inline std::string counted(std::int64_t count, std::string_view noun) {
  return counted(count, noun, plural_of(noun));
}

}  // namespace espalier
