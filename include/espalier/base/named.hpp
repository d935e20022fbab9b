// Tables of what a name stands for: kinds of samplers, layers and tasks, values of keys.
#pragma once

#include "espalier/base/error.hpp"
#include "espalier/base/nearest.hpp"

namespace espalier {

/// An entry whose value does not know its name.
template <class Value>
struct Named {
  const char* name;
  Value value;
};

/// The entry of that name. Where there is none, UserError(kUsage): "WHAT NAME: not one of A, B, C;
/// did you mean B?".
template <class Table>
const auto& entry_named(const Table& table, const std::string& name, const std::string& what) {
  std::vector<std::string> names;
  std::string list;
  for (const auto& entry : table) {
    if (name == entry.name) return entry;
    names.emplace_back(entry.name);
    list += (list.empty() ? "" : ", ") + names.back();
  }
  usage_error("{} {}: not one of {}; did you mean {}?", what, name, list, nearest(name, names));
}

}  // namespace espalier
