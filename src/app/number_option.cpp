// Options that are numbers, within a range.
#include "commands.hpp"

#include <CLI/CLI.hpp>

#include "espalier/base/error.hpp"
#include "espalier/base/text.hpp"

namespace espalier {

namespace {

// Enough of what was given to recognise it.
std::string in_short(const std::string& text) {
  constexpr std::size_t kMost = 40;
  if (text.empty()) return "is empty";
  return text.size() > kMost ? text.substr(0, kMost) + "..." : text;
}

template <class Number>
Number parse(const char* name, const std::string& text, Range<Number> range) {
  const auto value = number_in<Number>(text);
  // Written so that it is false for nan.
  const bool good = value && *value >= range.least && *value <= range.most;
  if (!good)
    usage_error("{} {}: give a {} from {} to {}", name, in_short(text),
                std::is_integral_v<Number> ? "whole number" : "number", range.least, range.most);
  return *value;
}

template <class Number>
CLI::Option* add(CLI::App* app, const char* name, Number& value, Range<Number> range, const char* about) {
  auto* option = app->add_option(name, value, about);
  if (value >= range.least) option->capture_default_str();
  return option->transform(CLI::Validator(
      [name, range](std::string& text) {
        // One way to write it: no octal, no rounding.
        text = fmt::format("{}", parse(name, text, range));
        return std::string();
      },
      ""));
}

}  // namespace

CLI::Option* add_whole_number(CLI::App* app, const char* name, std::int64_t& value, Range<std::int64_t> range,
                              const char* about) {
  return add(app, name, value, range, about);
}

CLI::Option* add_number(CLI::App* app, const char* name, double& value, Range<double> range,
                        const char* about) {
  return add(app, name, value, range, about);
}

}  // namespace espalier
