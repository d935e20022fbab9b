#include "removed_keys.hpp"

#include <algorithm>
#include <vector>

namespace espalier {

namespace {

const std::vector<Removed>& table() {
  static const std::vector<Removed> all = {
      {"output.mllog", "", "", "scripts/mllog.py OUTPUT_DIR prints the lines of a training that is done"},
  };
  return all;
}

const Removed* find(const std::string& name, const std::string& value) {
  const auto found = std::ranges::find_if(
      table(), [&](const Removed& one) { return one.name == name && one.value == value; });
  return found == table().end() ? nullptr : &*found;
}

}  // namespace

const Removed* removed_key(const std::string& name) {
  return find(name, "");
}

const Removed* removed_value(const std::string& name, const std::string& value) {
  return value.empty() ? nullptr : find(name, value);
}

}  // namespace espalier
