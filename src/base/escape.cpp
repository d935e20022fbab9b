#include "espalier/base/escape.hpp"

#include <fmt/core.h>

#include <cstdint>

namespace espalier {

namespace {

// A character of UTF-8 and its bytes; no bytes where there is none.
struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;
};

// The least code that so many bytes are for.
constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};

std::size_t bytes_by_first(unsigned char first) {
  if (first < 0x80) return 1;
  if (first < 0xC0) return 0;
  return first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF8 ? 4 : 0;
}

Character character_at(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  const auto bytes = bytes_by_first(first);
  if (bytes == 1) return {first, 1};
  if (bytes == 0 || at + bytes > text.size()) return {};
  std::uint32_t code = first & (0x7Fu >> bytes);
  for (std::size_t k = 1; k < bytes; ++k) {
    const auto next = static_cast<unsigned char>(text[at + k]);
    if ((next & 0xC0) != 0x80) return {};
    code = code << 6 | (next & 0x3F);
  }
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kLeast[bytes] || code > 0x10FFFF || surrogate) return {};
  return {code, bytes};
}

bool is_control(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0);
}

// visit(character, its bytes) for each; a byte that is no part of one comes alone, with bytes = 0.
template <class Visit>
void each_character(std::string_view text, Visit visit) {
  for (std::size_t at = 0; at < text.size();) {
    const auto character = character_at(text, at);
    const auto bytes = text.substr(at, character.bytes == 0 ? 1 : character.bytes);
    visit(character, bytes);
    at += bytes.size();
  }
}

void append_hex(std::string& out, std::string_view bytes) {
  for (const char byte : bytes)
    out += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(byte)));
}

// `kept`: control characters that stay.
std::string without_controls(std::string_view text, std::string_view kept) {
  std::string out;
  each_character(text, [&](const Character& character, std::string_view bytes) {
    const bool stays = character.bytes != 0 &&
                       (!is_control(character.code) || kept.find(bytes[0]) != std::string_view::npos);
    if (stays)
      out += bytes;
    else
      append_hex(out, bytes);
  });
  return out;
}

bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

}  // namespace

bool is_utf8(std::string_view text) {
  bool good = true;
  each_character(text,
                 [&](const Character& character, std::string_view) { good = good && character.bytes != 0; });
  return good;
}

std::string quoted(const std::string& text) {
  constexpr std::string_view kPlain = "\"\\\b\t\n\f\r", kEscapes = "\"\\btnfr";
  std::string out = "\"";
  each_character(text, [&](const Character& character, std::string_view bytes) {
    const auto place = character.bytes == 1 ? kPlain.find(bytes[0]) : std::string_view::npos;
    if (character.bytes == 0)
      out += "\xEF\xBF\xBD";
    else if (place != std::string_view::npos)
      (out += '\\') += kEscapes[place];
    else if (is_control(character.code))
      out += fmt::format("\\u{:04X}", character.code);
    else
      out += bytes;
  });
  return out + '"';
}

std::string printable(std::string_view text) {
  return without_controls(text, "\n\t");
}

std::string excerpt(std::string_view text, std::size_t most) {
  if (text.size() <= most) return without_controls(text, "");
  // Whole characters: a begin ends, and an end begins, before a first byte.
  std::size_t begin = most - most / 4, end = text.size() - most / 4;
  for (int k = 0; k < 3 && begin > 0 && continues_character(text[begin]); ++k) --begin;
  for (int k = 0; k < 3 && end < text.size() && continues_character(text[end]); ++k) ++end;
  return fmt::format("{} ... ({} bytes) ... {}", without_controls(text.substr(0, begin), ""), text.size(),
                     without_controls(text.substr(end), ""));
}

}  // namespace espalier
