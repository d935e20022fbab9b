// One table binds every key to its place in the struct, its type, its range or choices and its
// meaning; reading, checking, writing and documenting all walk that table.
#include "espalier/base/config.hpp"

#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <sstream>

#include "config_keys.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/named.hpp"
#include "espalier/base/text.hpp"

namespace espalier {

namespace {

constexpr auto kLeastInteger = std::numeric_limits<std::int64_t>::min(),
               kLargestInteger = std::numeric_limits<std::int64_t>::max();

// "a whole number" or, where the key takes the word as well, "a whole number or "auto"".
std::string one_of(const Key& key, const std::string& kind) {
  const bool may_be_auto =
      std::holds_alternative<AutoInt*>(key.target) || std::holds_alternative<AutoNumber*>(key.target);
  const bool may_be_word = std::holds_alternative<NumberOrWord*>(key.target) &&
                           std::ranges::any_of(key.choices, NumberOrWord::is_word);
  return kind + (may_be_auto ? " or \"auto\"" : may_be_word ? " or a word in quotes" : "");
}

// What a key takes, in words.
std::string takes(const Key& key) {
  // In the order of Target.
  constexpr std::array kKinds = {"a word in quotes",
                                 "a whole number",
                                 "a number",
                                 "true or false",
                                 "a list of whole numbers such as [15, 10, 5]",
                                 "a list of words in quotes such as [\"writes=25,10\"]",
                                 "a whole number",
                                 "a number",
                                 "a whole number"};
  static_assert(kKinds.size() == std::variant_size_v<Target>);
  return one_of(key, kKinds[key.target.index()]);
}

bool is_empty_by_default(const Key& key) {
  Config defaults;
  const auto keys = bind_keys(defaults);
  return std::get<std::string*>(std::ranges::find(keys, key.name, &Key::name)->target)->empty();
}

// Assigns a TOML value to a key's target, checking type, choices and range. `where` ends
// every message.
class Assigner {
 public:
  Assigner(const Key& key, const toml::node& node, const std::string& where)
      : key_(key), node_(node), where_(where) {}

  void operator()(std::string* target) const {
    const auto value = node_.value_exact<std::string>();
    if (!value) wrong_type(takes(key_));
    if (value->empty() && !is_empty_by_default(key_))
      usage_error("{}: {} is empty; leave it out to have its default", where_, key_.name);
    if (const auto* removed = removed_value(key_.name, *value))
      usage_error("{}: {} = {} was removed; {}", where_, key_.name, quoted(*value), removed->instead);
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
    if (!value) wrong_type(takes(key_));
    *target = *value;
  }
  void operator()(std::vector<std::int64_t>* target) const {
    const auto* array = node_.as_array();
    if (array == nullptr) wrong_type(takes(key_));
    std::vector<std::int64_t> values;
    for (const auto& item : *array) values.push_back(integer(item));
    *target = values;
  }
  void operator()(std::vector<std::string>* target) const {
    const auto* array = node_.as_array();
    if (array == nullptr) wrong_type(takes(key_));
    std::vector<std::string> values;
    for (const auto& item : *array) {
      const auto value = item.value_exact<std::string>();
      if (!value) wrong_type(takes(key_));
      values.push_back(*value);
    }
    *target = values;
  }
  void operator()(NumberOrWord* target) const {
    const auto word = node_.value_exact<std::string>();
    if (!word || std::ranges::none_of(key_.choices, NumberOrWord::is_word)) {
      *target = integer(node_);
      return;
    }
    if (!NumberOrWord::is_word(*word) || std::ranges::find(key_.choices, *word) == key_.choices.end())
      usage_error("{}: {} = {}: not one of {}", where_, key_.name, quoted(*word), choice_list());
    *target = *word;
  }
  template <class T>
  void operator()(Auto<T>* target) const {
    target->value.reset();
    if (node_.value_exact<std::string>() != std::string("auto")) (*this)(&target->value.emplace());
  }

 private:
  [[noreturn]] void wrong_type(const std::string& wanted) const {
    std::ostringstream got;
    got << toml::node_view<const toml::node>(&node_);
    const auto number = node_.value_exact<double>();
    const bool is_whole = number && std::abs(*number) < 1e15 && *number == std::trunc(*number);
    usage_error("{}: {} must be {}, but is {}{}", where_, key_.name, wanted, got.str(),
                is_whole ? fmt::format("; write {:.0f}", *number) : "");
  }
  std::int64_t integer(const toml::node& node) const {
    const auto value = node.value_exact<std::int64_t>();
    if (!value) wrong_type(one_of(key_, "a whole number"));
    check_range(*value);
    if (!key_.choices.empty() &&
        std::ranges::find(key_.choices, std::to_string(*value)) == key_.choices.end())
      usage_error("{}: {} = {}: not one of {}", where_, key_.name, *value, choice_list());
    return *value;
  }
  double number() const {
    const auto value = node_.value<double>();
    if (!value || !node_.is_number()) wrong_type(takes(key_));
    if (!std::isfinite(*value)) wrong_type(one_of(key_, "a finite number"));
    check_range(*value);
    return *value;
  }
  template <class Number>
  void check_range(Number value) const {
    if (static_cast<double>(value) < key_.lowest)
      usage_error("{}: {} = {} is below its least value, {}", where_, key_.name, value, key_.lowest);
    if (static_cast<double>(value) > key_.highest)
      usage_error("{}: {} = {} is above its greatest value, {}", where_, key_.name, value, key_.highest);
  }
  std::string choice_list() const { return fmt::format("{}", fmt::join(key_.choices, " | ")); }

  const Key& key_;
  const toml::node& node_;
  const std::string& where_;
};

const Key& find_key(const std::vector<Key>& keys, const std::string& name, const std::string& where) {
  for (const auto& key : keys)
    if (key.name == name) return key;
  if (const auto* removed = removed_key(name))
    usage_error("{}: {} was removed; {}", where, name, removed->instead);
  std::vector<std::string> names;
  for (const auto& key : keys) names.push_back(key.name);
  const auto meant = meaning_elsewhere(name, names);
  if (meant.find(' ') != std::string::npos) usage_error("{}: unknown key {}; {}", where, name, meant);
  usage_error("{}: unknown key {}; did you mean {}?", where, name,
              meant.empty() ? nearest(name, names) : meant);
}

// Reads values into the keys of a config, and remembers where each was given.
class Reader {
 public:
  /// `saved`: of a checkpoint, where keys that were removed may stand.
  explicit Reader(Config& config, bool saved = false)
      : config_(config), keys_(bind_keys(config)), saved_(saved) {}

  void read(const toml::table& table, const std::string& source);
  void override_with(const std::string& text);
  void refuse_what_is_ignored() const;

  /// As SavedConfig::removed.
  const std::string& removed() const { return removed_; }

 private:
  void assign(const std::string& name, const toml::node& node, const std::string& where) {
    if (saved_ && passes_removed_key(name, node)) return;
    const auto& key = find_key(keys_, name, where);
    if (saved_ && takes_removed_value(key, node)) return;
    std::visit(Assigner(key, node, where), key.target);
    places_[name] = where;
  }
  // A value that is read as no other stays as it is.
  bool takes_removed_value(const Key& key, const toml::node& node) {
    const auto value = node.value_exact<std::string>();
    const auto* const removed = value ? removed_value(key.name, *value) : nullptr;
    if (removed == nullptr) return false;
    const bool is_done = *removed->done != '\0';
    *std::get<std::string*>(key.target) = is_done ? removed->done : *value;
    if (!is_done) removed_ = fmt::format("{} = {}", key.name, quoted(*value));
    return true;
  }
  bool passes_removed_key(const std::string& name, const toml::node& node) {
    const auto* const removed = removed_key(name);
    if (removed == nullptr) return false;
    std::ostringstream value;
    value << toml::node_view<const toml::node>(&node);
    if (*removed->done != '\0' && value.str() != removed->done)
      removed_ = fmt::format("{} = {}", name, value.str());
    return true;
  }

  Config& config_;
  std::vector<Key> keys_;
  bool saved_;
  std::string removed_;
  std::map<std::string, std::string> places_;
};

std::string line_of(const std::string& source, const toml::node& node) {
  return fmt::format("{}:{}", source, node.source().begin.line);
}

void Reader::read(const toml::table& table, const std::string& source) {
  for (const auto& [section, node] : table) {
    const auto* inner = node.as_table();
    const std::string section_name(section.str());
    if (inner == nullptr) {
      find_key(keys_, section_name, line_of(source, node));
      continue;
    }
    for (const auto& [name, value] : *inner)
      assign(section_name + "." + std::string(name.str()), value, line_of(source, value));
  }
}

constexpr const char* kCommandLine = "command line";

// For a value that is no TOML.
[[noreturn]] void refuse_value(const Key& key, const std::string& value) {
  if (value.find_first_not_of(" \t") == std::string::npos)
    usage_error("{}: {} has no value; it takes {}", kCommandLine, key.name, takes(key));
  const bool is_number = std::holds_alternative<std::int64_t*>(key.target) ||
                         std::holds_alternative<AutoInt*>(key.target) ||
                         std::holds_alternative<NumberOrWord*>(key.target);
  const auto digits = value.find_first_not_of("+-");
  if (is_number && digits <= 1 && value.find_first_not_of("0123456789", digits) == std::string::npos)
    usage_error("{}: {} = {} is beyond {}", kCommandLine, key.name, value,
                value[0] == '-' ? fmt::format("{}, the least whole number", kLeastInteger)
                                : fmt::format("{}, the largest whole number", kLargestInteger));
  const bool lacks_zero = value[0] == '.' || value.starts_with("-.");
  usage_error("{}: {} must be {}, but is '{}'{}", kCommandLine, key.name, takes(key), value,
              lacks_zero
                  ? "; write " + std::string(value[0] == '-' ? "-0" : "0") + value.substr(value.find('.'))
                  : "");
}

// "section.key=value": the value is TOML; a bare word counts as a quoted one.
void Reader::override_with(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    usage_error("{}: '{}' is not of the form section.key=value", kCommandLine, text);
  if (!is_utf8(text))
    usage_error(
        "{}: {}: is not UTF-8, so config.toml, report.json and checkpoints could not hold it; use a name "
        "that is, a symbolic link for example",
        kCommandLine, text);
  const auto name = text.substr(0, equals);
  const auto value = text.substr(equals + 1);
  const auto& key = find_key(keys_, name, kCommandLine);
  const bool takes_word = std::holds_alternative<std::string*>(key.target);
  const bool is_quoted = !value.empty() && (value.front() == '"' || value.front() == '\'');
  const bool is_choice = std::holds_alternative<NumberOrWord*>(key.target) && NumberOrWord::is_word(value) &&
                         std::ranges::find(key.choices, value) != key.choices.end();
  const bool bare = takes_word ? !is_quoted : value == "auto" || is_choice;
  toml::table table;
  try {
    table = toml::parse("v = " + (bare ? quoted(value) : value));
  } catch (const toml::parse_error&) {
    refuse_value(key, value);
  }
  if (table.size() != 1) refuse_value(key, value);
  assign(name, *table.get("v"), kCommandLine);
}

// A key that others have taken the meaning from may stand there with its default, as in the config
// that a run writes.
void Reader::refuse_what_is_ignored() const {
  Config defaults;
  const auto by_default = bind_keys(defaults);
  for (std::size_t k = 0; k < keys_.size(); ++k) {
    const auto& key = keys_[k];
    const auto* needs = unmet(key, config_);
    const auto value = value_text(key.target), default_value = value_text(by_default[k].target);
    if (needs == nullptr || value == default_value) continue;
    const auto& other = *std::ranges::find(keys_, needs->key, &Key::name);
    usage_error("{}: {} = {} has no meaning with {} = {}; leave it out (its default is {}), or set {} to {}",
                places_.at(key.name), key.name, value, other.name, value_text(other.target), default_value,
                other.name, needs->value);
  }
}

toml::table parse_toml(const std::string& text, const std::string& source) {
  try {
    return toml::parse(text, source);
  } catch (const toml::parse_error& error) {
    usage_error("{}:{}: {}", source, error.source().begin.line, error.description());
  }
}

void check_together(Config& c) {
  // The default is of 3 layers.
  if (c.model.layers == 0 && c.sampler.fanout == SamplerConfig().fanout) c.sampler.fanout.clear();
  for (const auto fanout : c.sampler.fanout)
    if (fanout == 0)
      usage_error("sampler.fanout holds a 0; every layer needs at least 1 pick, or -1 for all");
  if (static_cast<std::int64_t>(c.sampler.fanout.size()) != c.model.layers)
    usage_error("sampler.fanout has {} entries but model.layers = {}; give one fanout per layer",
                c.sampler.fanout.size(), c.model.layers);
  if (c.run.memory_limit != "auto") parse_bytes(c.run.memory_limit, "run.memory_limit");
  cache_memory(c.run);
}

}  // namespace

Config parse_config(const std::string& text, const std::string& source,
                    const std::vector<std::string>& overrides) {
  Config config;
  Reader reader(config);
  reader.read(parse_toml(text, source), source);
  for (const auto& text_override : overrides) reader.override_with(text_override);
  reader.refuse_what_is_ignored();
  check_together(config);
  return config;
}

SavedConfig parse_saved_config(const std::string& text, const std::string& source) {
  SavedConfig saved;
  const auto table = parse_toml(text, source);
  Reader reader(saved.config, true);
  reader.read(table, source);
  saved.removed = reader.removed();
  // Earlier versions saved a number of groups for uniform batches, too.
  if (table["sampler"]["batches"].value_or(std::string()) == "uniform") saved.config.sampler.groups = 0;
  check_together(saved.config);
  return saved;
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
  constexpr double kMostBytes = 9e18;
  for (const auto& [name, factor] : units) {
    if (used == 0 || unit != name || !std::isfinite(number)) continue;
    if (number * factor >= 1 && number * factor < kMostBytes)
      return static_cast<std::int64_t>(number * factor);
    usage_error("{} = \"{}\" is not a size from 1 byte to {} bytes", key, text, kMostBytes);
  }
  usage_error("{} = \"{}\" is not a size; write 500MB, 8GiB or a number of bytes", key, text);
}

std::int64_t cache_memory(const RunConfig& run) {
  return run.cache_memory == "0" ? 0 : parse_bytes(run.cache_memory, "run.cache_memory");
}

}  // namespace espalier
