// The table that binds every key of a config to its place in the struct, its type, its range or choices and
// its meaning. Reading, checking, writing and documenting all walk it.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "espalier/base/config.hpp"

namespace espalier {

using Target = std::variant<std::string*, std::int64_t*, double*, bool*, std::vector<std::int64_t>*, AutoInt*,
                            AutoNumber*>;

struct Key {
  std::string name;
  Target target;
  std::string meaning;
  std::vector<std::string> choices = {};    // for words
  double lowest = -1e300, highest = 1e300;  // for numbers
};

/// All keys in the order of the design, bound to the fields of `config`.
std::vector<Key> bind_keys(Config& config);

}  // namespace espalier
