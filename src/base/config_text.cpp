// The config as text: TOML, JSON, and the list of keys for people.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>

#include "config_keys.hpp"
#include "espalier/base/text.hpp"

namespace espalier {

namespace {

std::string number_text(double x) {
  const auto text = fmt::format("{}", x);  // shortest text that reads back to the same double
  return text.find_first_of(".einf") == std::string::npos ? text + ".0" : text;
}

}  // namespace

std::string value_text(const Target& target) {
  struct Writer {
    std::string operator()(const std::string* v) const { return quoted(*v); }
    std::string operator()(const std::int64_t* v) const { return std::to_string(*v); }
    std::string operator()(const double* v) const { return number_text(*v); }
    std::string operator()(const bool* v) const { return *v ? "true" : "false"; }
    std::string operator()(const std::vector<std::int64_t>* v) const {
      return fmt::format("[{}]", fmt::join(*v, ", "));
    }
    std::string operator()(const std::vector<std::string>* v) const {
      std::string out;
      for (const auto& item : *v) out += (out.empty() ? "" : ", ") + quoted(item);
      return fmt::format("[{}]", out);
    }
    std::string operator()(const AutoInt* v) const { return v->value ? (*this)(&*v->value) : "\"auto\""; }
    std::string operator()(const NumberOrWord* v) const {
      return NumberOrWord::is_word(v->text) ? quoted(v->text) : v->text;
    }
    std::string operator()(const AutoNumber* v) const { return v->value ? (*this)(&*v->value) : "\"auto\""; }
  };
  return std::visit(Writer{}, target);
}

std::string to_toml(const Config& config) {
  return to_toml(config, config);
}

std::string to_toml(const Config& asked, const Config& resolved) {
  Config a = asked, r = resolved;
  const auto keys = bind_keys(a), of_resolved = bind_keys(r);
  std::string out, section;
  for (std::size_t k = 0; k < keys.size(); ++k) {
    const auto dot = keys[k].name.find('.');
    if (keys[k].name.substr(0, dot) != section) {
      out += (section.empty() ? "[" : "\n[") + keys[k].name.substr(0, dot) + "]\n";
      section = keys[k].name.substr(0, dot);
    }
    const auto value = value_text(keys[k].target), became = value_text(of_resolved[k].target);
    out += keys[k].name.substr(dot + 1) + " = " + value + (became == value ? "" : "  # " + became) + "\n";
  }
  return out;
}

std::string to_json(const Config& config) {
  Config copy = config;
  std::string out = "{", section;
  for (const auto& key : bind_keys(copy)) {
    const auto dot = key.name.find('.');
    const bool new_section = key.name.substr(0, dot) != section;
    if (new_section) out += (section.empty() ? "" : "}, ") + quoted(key.name.substr(0, dot)) + ": {";
    section = key.name.substr(0, dot);
    out += (new_section ? "" : ", ") + quoted(key.name.substr(dot + 1)) + ": " + value_text(key.target);
  }
  return out + "}}";
}

std::vector<KeyDifference> differing_keys(const Config& first, const Config& second) {
  Config a = first, b = second;
  const auto keys_of_a = bind_keys(a), keys_of_b = bind_keys(b);
  std::vector<KeyDifference> differences;
  for (std::size_t k = 0; k < keys_of_a.size(); ++k) {
    if (unmet(keys_of_a[k], a) && unmet(keys_of_b[k], b)) continue;
    const auto in_a = value_text(keys_of_a[k].target), in_b = value_text(keys_of_b[k].target);
    if (in_a != in_b) differences.push_back({keys_of_a[k].name, in_a, in_b, keys_of_a[k].effect});
  }
  return differences;
}

std::vector<UnusualKey> unusual_keys(const Config& config) {
  Config copy = config;
  std::vector<UnusualKey> found;
  for (const auto& key : bind_keys(copy)) {
    const auto* const value = std::get_if<double*>(&key.target);
    if (value == nullptr || unmet(key, config) != nullptr) continue;
    if (key.a_lot != nullptr) found.push_back({key.name, **value, key.a_lot(config)});
    if (key.a_little > 0 && **value > 0) found.push_back({key.name, **value, key.a_little, true});
  }
  std::erase_if(found, [](const UnusualKey& key) { return key.excess() <= 1; });
  std::ranges::stable_sort(found, std::greater(), &UnusualKey::excess);
  return found;
}

Config with_key_of(Config config, const std::string& key, const Config& other) {
  Config copy = other;
  const auto from = bind_keys(copy), to = bind_keys(config);
  for (std::size_t k = 0; k < to.size(); ++k)
    if (to[k].name == key)
      std::visit([&](auto* target) { *target = *std::get<decltype(target)>(from[k].target); }, to[k].target);
  return config;
}

const char* name_of(KeyEffect effect) {
  constexpr std::array kNames = {"shape", "meaning", "draw", "state", "batches", "trajectory", "cost"};
  return kNames[static_cast<std::size_t>(effect)];
}

namespace {
// ": a | b | c" unless the meaning explains the choices itself.
std::string choices_of(const Key& key) {
  if (key.choices.empty() || key.meaning.find(key.choices.front()) != std::string::npos) return {};
  return fmt::format(": {}", fmt::join(key.choices, " | "));
}
}  // namespace

std::string describe_config_keys() {
  Config defaults;
  std::string out;
  for (const auto& key : bind_keys(defaults))
    out += fmt::format("  {:<24} {:<14} {:<10} {}{}\n", key.name, value_text(key.target), name_of(key.effect),
                       key.meaning, choices_of(key));
  return out + R"(
The third column is what another value changes. A restart, and `espalier infer`, refuse another
  shape    of trained tensors
  meaning  of trained weights: the network would compute something else with them
  draw     where it changes the matrix that evaluation uses; else it is as `trajectory`
A restart also refuses another
  state    of what a checkpoint keeps beside the weights
and goes on with another
  batches, trajectory   only where run.restart names the checkpoint, with a warning: training goes
                        elsewhere from there (`batches`: between two epochs only)
  cost     without a word: time, memory, place, length
)";
}

}  // namespace espalier
