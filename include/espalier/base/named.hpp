// Tables of what a name stands for: kinds of samplers, layers and tasks, values of keys; and of a
// name that none of them has, which one was meant.
#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "espalier/base/error.hpp"

namespace espalier {

// "Did you mean ...?": the candidate with the least edit distance (Levenshtein) to what was typed.

inline std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

/// The nearest of `candidates` (not empty); the first of equals. Of what was typed the first 100
/// bytes count: it may be a file that was taken for something else.
inline std::string nearest(const std::string& typed, const std::vector<std::string>& candidates) {
  const auto begin = typed.substr(0, 100);
  return *std::min_element(candidates.begin(), candidates.end(), [&](const auto& a, const auto& b) {
    return edit_distance(begin, a) < edit_distance(begin, b);
  });
}

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
