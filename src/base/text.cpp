// UTF-8 and control characters; then reading a small file with a sentence for all that it may be.
#include "espalier/base/text.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "espalier/base/error.hpp"

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

// First what the path is, then what the bytes are: opening a pipe would wait for its writer, and
// reading a folder or a graph file would end in a message of the parser.

namespace {

constexpr std::uintmax_t kMostBytes = std::uintmax_t{1} << 20;

// Before its size is judged: a graph file is large.
void check_is_no_graph(const std::string& path, const std::string& what, const std::string& name) {
  std::string begin(1 << 16, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(file.gcount()));
  if (!begin.starts_with("\x89HDF")) return;
  const bool graph = begin.find("espalier-graph") != std::string::npos;
  usage_error("{}: is {}, not text{}", name, graph ? "a graph file" : "an HDF5 file, a graph perhaps",
              what == "config file"
                  ? fmt::format("; write a text file with the lines `[graph]` and `file = {}`, and give that",
                                quoted(path))
                  : "");
}

void check_place(const std::string& path, const std::string& what, const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code error, ignored;
  const auto status = fs::status(path, error);
  switch (status.type()) {
    case fs::file_type::regular:
      break;
    case fs::file_type::not_found:
      usage_error("{}: no such file (seen from {})", name, fs::current_path(ignored).string());
    case fs::file_type::directory:
      usage_error("{}: is a folder; give the path of a file", name);
    case fs::file_type::fifo:
      usage_error("{}: is a pipe; give the path of a file, which can be read again", name);
    case fs::file_type::none:
      usage_error("{}: cannot be opened: {}", name, error.message());
    default:
      usage_error("{}: is a device; give the path of a file", name);
  }
  check_is_no_graph(path, what, name);
  const auto size = fs::file_size(path, error);
  if (error) usage_error("{}: cannot be opened: {}", name, error.message());
  if (size > kMostBytes) usage_error("{}: has {} bytes; at most {} are read", name, size, kMostBytes);
}

void check_is_text(const std::string& bytes, const std::string& name) {
  const auto is_text = [](char byte) {
    const auto code = static_cast<unsigned char>(byte);
    return code >= 0x20 || byte == '\n' || byte == '\r' || byte == '\t';
  };
  const auto bad = std::find_if_not(bytes.begin(), bytes.end(), is_text);
  if (bad != bytes.end())
    usage_error("{}: is not text: byte {} is 0x{:02x}", name, bad - bytes.begin(),
                static_cast<unsigned char>(*bad));
}

}  // namespace

std::string read_input_text(const std::string& path, const std::string& what) {
  if (path.empty()) usage_error("the path of the {} is empty", what);
  std::error_code error;
  if (std::filesystem::weakly_canonical(path, error) == "/dev/null") return {};
  const auto name = what + " " + path;
  check_place(path, what, name);
  std::ifstream file(path, std::ios::binary);
  if (!file) usage_error("{}: cannot be opened: {}", name, std::strerror(errno));
  std::string bytes(kMostBytes + 1, '\0');  // one more than allowed: the file may have grown
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (file.bad()) usage_error("{}: cannot be read: {}", name, std::strerror(errno));
  bytes.resize(file.gcount());
  if (bytes.size() > kMostBytes) usage_error("{}: has more than {} bytes", name, kMostBytes);
  check_is_text(bytes, name);
  return bytes;
}

}  // namespace espalier
