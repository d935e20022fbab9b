// One table binds every key to its place in the struct, its type, its range or choices and its meaning;
// reading, checking, writing and documenting all walk that table.
#include "espalier/base/config.hpp"

#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "config_keys.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/escape.hpp"
#include "espalier/base/nearest.hpp"

namespace espalier {

namespace {

// Assigns a TOML value to a key's target, checking type, choices and range. `where` ends every message.
class Assigner {
 public:
  Assigner(const Key& key, const toml::node& node, const std::string& where)
      : key_(key), node_(node), where_(where) {}

  void operator()(std::string* target) const {
    const auto value = node_.value_exact<std::string>();
    if (!value) wrong_type("a word in quotes");
    if (!key_.choices.empty() &&
        std::find(key_.choices.begin(), key_.choices.end(), *value) == key_.choices.end())
      usage_error("{}: {} = {}: not one of {}; did you mean \"{}\"?", where_, key_.name, quoted(*value),
                  choice_list(), nearest(*value, key_.choices));
    if (value->find('\0') != std::string::npos)
      usage_error("{}: {} = {}: a path cannot hold the character U+0000", where_, key_.name, quoted(*value));
    *target = *value;
  }
  void operator()(std::int64_t* target) const { *target = integer(node_); }
  void operator()(double* target) const { *target = number(); }
  void operator()(bool* target) const {
    const auto value = node_.value_exact<bool>();
    if (!value) wrong_type("true or false");
    *target = *value;
  }
  void operator()(std::vector<std::int64_t>* target) const {
    const auto* array = node_.as_array();
    if (array == nullptr || array->empty()) wrong_type("a list of whole numbers such as [15, 10, 5]");
    std::vector<std::int64_t> values;
    for (const auto& item : *array) values.push_back(integer(item));
    *target = values;
  }
  void operator()(AutoInt* target) const {
    target->value = is_auto() ? std::nullopt : std::optional<std::int64_t>(integer(node_));
  }
  void operator()(AutoNumber* target) const {
    target->value = is_auto() ? std::nullopt : std::optional<double>(number());
  }

 private:
  bool is_auto() const { return node_.value_exact<std::string>() == std::string("auto"); }

  [[noreturn]] void wrong_type(const std::string& wanted) const {
    const bool may_be_auto =
        std::holds_alternative<AutoInt*>(key_.target) || std::holds_alternative<AutoNumber*>(key_.target);
    std::ostringstream got;
    got << toml::node_view<const toml::node>(&node_);
    usage_error("{}: {} must be {}{}, but is {}", where_, key_.name, wanted,
                may_be_auto ? " or \"auto\"" : "", got.str());
  }
  std::int64_t integer(const toml::node& node) const {
    const auto value = node.value_exact<std::int64_t>();
    if (!value) wrong_type("a whole number");
    check_range(static_cast<double>(*value));
    return *value;
  }
  double number() const {
    const auto value = node_.value<double>();
    if (!value || !node_.is_number() || !std::isfinite(*value)) wrong_type("a number");
    check_range(*value);
    return *value;
  }
  void check_range(double value) const {
    if (value < key_.lowest)
      usage_error("{}: {} = {} is below its least value, {}", where_, key_.name, value, key_.lowest);
    if (value > key_.highest)
      usage_error("{}: {} = {} is above its greatest value, {}", where_, key_.name, value, key_.highest);
  }
  std::string choice_list() const {
    std::string out;
    for (const auto& choice : key_.choices) out += (out.empty() ? "" : " | ") + choice;
    return out;
  }

  const Key& key_;
  const toml::node& node_;
  const std::string& where_;
};

const Key& find_key(const std::vector<Key>& keys, const std::string& name, const std::string& where) {
  for (const auto& key : keys)
    if (key.name == name) return key;
  std::vector<std::string> names;
  for (const auto& key : keys) names.push_back(key.name);
  usage_error("{}: unknown key {}; did you mean {}?", where, name, nearest(name, names));
}

void assign(const std::vector<Key>& keys, const std::string& name, const toml::node& node,
            const std::string& where) {
  const auto& key = find_key(keys, name, where);
  std::visit(Assigner(key, node, where), key.target);
}

std::string line_of(const std::string& source, const toml::node& node) {
  return fmt::format("{}:{}", source, node.source().begin.line);
}

void assign_table(const std::vector<Key>& keys, const toml::table& table, const std::string& source) {
  for (const auto& [section, node] : table) {
    const auto* inner = node.as_table();
    const std::string section_name(section.str());
    if (inner == nullptr) {
      find_key(keys, section_name, line_of(source, node));
      continue;
    }
    for (const auto& [name, value] : *inner)
      assign(keys, section_name + "." + std::string(name.str()), value, line_of(source, value));
    if (inner->empty()) continue;
  }
}

// "section.key=value": the value is TOML; a bare word counts as a quoted one.
void assign_override(const std::vector<Key>& keys, const std::string& text) {
  const auto equals = text.find('=');
  const std::string where = "command line";
  if (equals == std::string::npos || equals == 0)
    usage_error("{}: '{}' is not of the form section.key=value", where, text);
  if (!is_utf8(text))
    usage_error(
        "{}: {}: is not UTF-8, so config.toml, report.json and checkpoints could not hold it; use a name "
        "that is, a symbolic link for example",
        where, text);
  const auto name = text.substr(0, equals);
  const auto value = text.substr(equals + 1);
  const auto& key = find_key(keys, name, where);
  const bool takes_word = std::holds_alternative<std::string*>(key.target);
  const bool is_quoted = !value.empty() && (value.front() == '"' || value.front() == '\'');
  const bool bare = takes_word ? !is_quoted : value == "auto";
  try {
    const auto table = toml::parse("v = " + (bare ? quoted(value) : value));
    assign(keys, name, *table.get("v"), where);
  } catch (const toml::parse_error&) {
    usage_error("{}: {}: cannot read the value '{}'; a list is written [15,10,5]", where, name, value);
  }
}

void check_together(const Config& c) {
  for (const auto fanout : c.sampler.fanout)
    if (fanout == 0)
      usage_error("sampler.fanout holds a 0; every layer needs at least 1 pick, or -1 for all");
  if (static_cast<std::int64_t>(c.sampler.fanout.size()) != c.model.layers)
    usage_error("sampler.fanout has {} entries but model.layers = {}; give one fanout per layer",
                c.sampler.fanout.size(), c.model.layers);
  if (c.run.memory_limit != "auto") parse_bytes(c.run.memory_limit, "run.memory_limit");
}

}  // namespace

Config parse_config(const std::string& text, const std::string& source,
                    const std::vector<std::string>& overrides) {
  Config config;
  const auto keys = bind_keys(config);
  try {
    assign_table(keys, toml::parse(text, source), source);
  } catch (const toml::parse_error& error) {
    usage_error("{}:{}: {}", source, error.source().begin.line, error.description());
  }
  for (const auto& text_override : overrides) assign_override(keys, text_override);
  check_together(config);
  return config;
}

Config load_config(const std::string& path, const std::vector<std::string>& overrides) {
  std::ifstream file(path);
  std::stringstream text;
  if (!file || !(text << file.rdbuf())) usage_error("cannot read the config file {}", path);
  return parse_config(text.str(), path, overrides);
}

std::int64_t parse_bytes(const std::string& text, const std::string& key) {
  double number = 0;
  std::size_t used = 0;
  try {
    number = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  const auto unit = text.substr(used);
  const std::vector<std::pair<std::string, double>> units = {
      {"", 1},      {"B", 1},          {"KB", 1e3},       {"MB", 1e6},       {"GB", 1e9},
      {"TB", 1e12}, {"KiB", 0x1.0p10}, {"MiB", 0x1.0p20}, {"GiB", 0x1.0p30}, {"TiB", 0x1.0p40}};
  for (const auto& [name, factor] : units)
    if (used > 0 && unit == name && number * factor >= 1 && number * factor < 9e18)
      return static_cast<std::int64_t>(number * factor);
  usage_error("{} = \"{}\" is not a size; write 500MB, 8GiB or a number of bytes", key, text);
}

}  // namespace espalier
