// Text that people write and read: their paths and names where only some bytes may stand (in TOML,
// in JSON, on a terminal), their small files, their numbers.
#pragma once

#include <fmt/core.h>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace espalier {

/// Is `text` UTF-8 by RFC 3629: shortest forms, no surrogates, nothing beyond U+10FFFF?
bool is_utf8(std::string_view text);

/// `text` in quotes, as a string of TOML and of JSON alike. Control characters (U+0000 to U+001F,
/// U+007F to U+009F) are escaped, so a terminal may show the result too; a byte that is no part of
/// a UTF-8 character becomes U+FFFD, as neither format can hold it. Both read every other text back
/// as it was.
std::string quoted(const std::string& text);

/// `text` for a terminal: control characters, but for the newlines and tabs of tables, and bytes
/// that are no part of a UTF-8 character stand as \xNN.
std::string printable(std::string_view text);

/// The same on one line (newlines and tabs as \xNN too), and without its middle where it is longer
/// than `most` bytes: "begin ... (50000000 bytes) ... end".
std::string excerpt(std::string_view text, std::size_t most = 2000);

// Numbers of things in words: "1 rank", "2 ranks", "1 batch", "3 copies".

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

// Numbers in texts that people write: options, lists, names.

/// What all of `text` says; none where it is no number of the type.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  return result.ec == std::errc() && result.ptr == end ? std::optional(number) : std::nullopt;
}

// A small text that a person wrote for the program: a config, a machine file.

/// The bytes of the file, at most 1 MiB; /dev/null is an empty one. `what` names its kind in
/// messages ("config file"). Not collective. Throws UserError(kUsage), at once, with a sentence of
/// its own for each thing that a path can be instead: nothing, a folder, a pipe, a device, a file
/// that may not be read, that is too large, or that is no text.
std::string read_input_text(const std::string& path, const std::string& what);

}  // namespace espalier
