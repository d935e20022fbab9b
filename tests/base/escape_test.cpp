// Laws: TOML and JSON read every text back from its quotes, but for bytes that are no UTF-8, which
// become U+FFFD; what goes to a terminal has no control byte of the user and is UTF-8; it is never
// longer than a bound, and keeps its begin and its end. The oracles are toml++, nlohmann::json, and
// a decoder by ranges.
#include "espalier/base/text.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <random>

#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include "espalier/base/config.hpp"
#include "espalier/base/error.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

std::string by_toml(const std::string& quotes) {
  return toml::parse("v = " + quotes)["v"].value_exact<std::string>().value_or("no string");
}

std::string by_json(const std::string& quotes) {
  return nlohmann::json::parse(quotes).get<std::string>();
}

// nlohmann::json's own replacement of what is no UTF-8.
std::string replaced(const std::string& text) {
  return by_json(nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::string encoded(std::uint32_t code) {
  const auto byte = [](std::uint32_t value) { return std::string(1, static_cast<char>(value)); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) return byte(0xC0 | code >> 6) + byte(0x80 | (code & 63));
  if (code < 0x10000)
    return byte(0xE0 | code >> 12) + byte(0x80 | (code >> 6 & 63)) + byte(0x80 | (code & 63));
  return byte(0xF0 | code >> 18) + byte(0x80 | (code >> 12 & 63)) + byte(0x80 | (code >> 6 & 63)) +
         byte(0x80 | (code & 63));
}

std::string random_characters(std::mt19937_64& random) {
  std::string text;
  const auto length = random() % 20;
  constexpr std::uint32_t kBelow[] = {0x20, 0x80, 0xA0, 0x800, 0x10000, 0x110000};
  while (text.size() < length) {
    const auto code = static_cast<std::uint32_t>(random() % kBelow[random() % 6]);
    if (code < 0xD800 || code > 0xDFFF) text += encoded(code);
  }
  return text;
}

std::string random_bytes(std::mt19937_64& random) {
  std::string text = random_characters(random);
  for (auto k = random() % 5; k > 0; --k)
    text.insert(random() % (text.size() + 1), 1, static_cast<char>(random() % 256));
  if (random() % 3 == 0) text.resize(random() % (text.size() + 1));
  return text;
}

bool has_control(const std::string& text, const char* but) {
  for (const char ch : text)
    if ((static_cast<unsigned char>(ch) < 0x20 || ch == 0x7f) && std::strchr(but, ch) == nullptr) return true;
  for (std::size_t k = 0; k + 1 < text.size(); ++k)
    if (text[k] == '\xC2' && static_cast<unsigned char>(text[k + 1]) < 0xA0) return true;
  return text.find('\0') != std::string::npos;
}

TEST(Quoted, EveryCharacterIsReadBackByTomlAndJson) {
  for (std::uint32_t code = 0; code < 0x110000; code += code < 0x3000 ? 1 : 257) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    const auto text = "a" + encoded(code) + "b";
    ASSERT_TRUE(is_utf8(text)) << code;
    ASSERT_EQ(by_toml(quoted(text)), text) << code;
    ASSERT_EQ(by_json(quoted(text)), text) << code;
    ASSERT_FALSE(has_control(quoted(text), "")) << code;
  }
}

TEST(Quoted, AnyBytesAreReadBackButForThoseOfNoCharacter) {
  const auto seed = test_seed(5);
  SCOPED_TRACE(fmt::format("ESPALIER_TEST_SEED={}", seed));
  std::mt19937_64 random(seed);
  for (int k = 0; k < 20000; ++k) {
    const auto text = k % 2 == 0 ? random_characters(random) : random_bytes(random);
    const auto quotes = quoted(text);
    ASSERT_TRUE(is_utf8(quotes));
    ASSERT_EQ(by_toml(quotes), by_json(quotes));
    if (k % 2 == 0) {
      ASSERT_TRUE(is_utf8(text));
    }
    if (is_utf8(text)) {
      ASSERT_EQ(by_json(quotes), text);
    } else {
      ASSERT_NE(by_json(quotes).find("\xEF\xBF\xBD"), std::string::npos);
    }
    ASSERT_EQ(is_utf8(text), replaced(text) == text) << quotes;
  }
}

TEST(Quoted, AConfigWithAnyStringReadsBackToItself) {
  const auto seed = test_seed(5);
  SCOPED_TRACE(fmt::format("ESPALIER_TEST_SEED={}", seed));
  std::mt19937_64 random(seed);
  for (int k = 0; k < 200; ++k) {
    Config config;
    config.output.dir = "r1\tx" + random_characters(random);
    std::erase(config.output.dir, '\0');
    config.graph.file = "\x1b[31m\x7f\r\n\"\\\b\f" + std::to_string(k);
    const auto back = parse_config(to_toml(config), "config.toml", {});
    ASSERT_EQ(back.output.dir, config.output.dir);
    ASSERT_EQ(back.graph.file, config.graph.file);
    const auto json = nlohmann::json::parse(to_json(config));
    ASSERT_EQ(json.at("output").at("dir"), config.output.dir);
    ASSERT_EQ(json.at("graph").at("file"), config.graph.file);
  }
}

TEST(Printable, ATerminalGetsNoControlByteOfAUser) {
  EXPECT_EQ(printable("a\x1b[2Jb\tc\nd\xff\x7f\r"), "a\\x1b[2Jb\tc\nd\\xff\\x7f\\x0d");
  EXPECT_EQ(printable("caf\xC3\xA9 \xE2\x82\xAC \xC2\x9B"), "caf\xC3\xA9 \xE2\x82\xAC \\xc2\\x9b");
  EXPECT_EQ(excerpt("a\tb\nespalier: error: forged"), "a\\x09b\\x0aespalier: error: forged");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  const auto seed = test_seed(5);
  SCOPED_TRACE(fmt::format("ESPALIER_TEST_SEED={}", seed));
  std::mt19937_64 random(seed);
  for (int k = 0; k < 20000; ++k) {
    const auto text = random_bytes(random);
    ASSERT_TRUE(is_utf8(printable(text)));
    ASSERT_TRUE(is_utf8(excerpt(text, 8)));
    ASSERT_FALSE(has_control(printable(text), "\n\t"));
    ASSERT_FALSE(has_control(excerpt(text), ""));
    ASSERT_LE(excerpt(text, 8).size(), 4 * 8 + 30);
    if (is_utf8(text) && !has_control(text, "")) {
      ASSERT_EQ(printable(text), text);
    }
  }
}

TEST(Excerpt, KeepsBeginAndEndOfWhatIsTooLong) {
  const auto text = "edge.csv: line 7: '" + std::string(50'000'000, 'x') + "' is not a number";
  const auto shown = excerpt(text);
  EXPECT_LT(shown.size(), 2100);
  EXPECT_TRUE(shown.starts_with("edge.csv: line 7: 'xxx"));
  EXPECT_TRUE(shown.ends_with("xxx' is not a number"));
  EXPECT_NE(shown.find("x ... (50000036 bytes) ... x"), std::string::npos) << shown;
  EXPECT_EQ(excerpt(std::string(2000, 'x')), std::string(2000, 'x'));
  std::string euros;
  for (int k = 0; k < 2000; ++k) euros += "\xE2\x82\xAC";
  for (std::size_t most = 100; most < 110; ++most)
    EXPECT_EQ(excerpt(euros, most).find("\\x"), std::string::npos) << "cuts no character";
}

}  // namespace
}  // namespace espalier
