// A table of a graph's description in TOML, asked key by key: what is no value of a key, and a key
// that is not known, is refused where it stands.
#pragma once

#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "described_graph.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/named.hpp"
#include "espalier/base/text.hpp"

namespace espalier {

/// Of tables with headers: the package's (python/espalier/tables/description.py).
inline const std::vector<std::string> kTableKeys = {"file",  "id",    "numbers", "dates",   "categories",
                                                    "label", "split", "scale",   "missing", "unknown",
                                                    "seed",  "graph", "weight"};

/// A table of the file, asked key by key. Every member throws UserError(kInput) with file,
/// line and key.
class TomlSection {
 public:
  /// Throws UserError(kInput) where it has a key that is not in `known`; of none that are
  /// named any is.
  TomlSection(const toml::table& table, const std::string& file, const std::string& name,
              const std::vector<std::string>& known = {})
      : table_(table), file_(file), name_(name) {
    for (const auto& [key, node] : in_order())
      if (!known.empty() && std::ranges::find(known, key) == known.end()) refuse_key(key, *node, known);
  }

  std::size_t size() const { return table_.size(); }
  /// Keys and values in the order of their lines.
  std::vector<std::pair<std::string, const toml::node*>> in_order() const {
    std::vector<std::pair<std::string, const toml::node*>> found;
    for (const auto& [key, node] : table_) found.emplace_back(std::string(key.str()), &node);
    std::ranges::sort(found, [](const auto& a, const auto& b) {
      const auto &of_a = a.second->source().begin, &of_b = b.second->source().begin;
      return std::pair(of_a.line, of_a.column) < std::pair(of_b.line, of_b.column);
    });
    return found;
  }

  const std::string& path() const { return file_; }
  bool has(const std::string& key) const { return table_.contains(key); }
  /// "graph.toml:5: types.item.features"
  std::string place(const std::string& key) const {
    const auto* node = table_.get(key);
    return fmt::format("{}:{}: {}{}{}", file_, (node == nullptr ? table_ : *node).source().begin.line, name_,
                       name_.empty() || key.empty() ? "" : ".", key);
  }
  [[noreturn]] void wrong(const std::string& key, const std::string& words) const {
    input_error("{} {}", place(key), words);
  }

  std::string text(const std::string& key) const {
    const auto value =
        table_.get(key) == nullptr ? std::nullopt : table_.get(key)->value_exact<std::string>();
    if (!value || value->empty())
      wrong(key, has(key) ? "is no word in quotes" : "is missing; it is a word in quotes");
    return *value;
  }
  std::optional<std::string> optional_text(const std::string& key) const {
    return has(key) ? std::optional(text(key)) : std::nullopt;
  }
  bool flag(const std::string& key, bool otherwise) const {
    if (!has(key)) return otherwise;
    const auto value = table_.get(key)->value_exact<bool>();
    if (!value) wrong(key, "is neither true nor false");
    return *value;
  }
  std::int64_t whole_number(const std::string& key) const {
    const auto value = table_.get(key)->value_exact<std::int64_t>();
    if (!value || *value < 0 || *value > kMostVertices) wrong(key, "is no whole number of at least 0");
    return *value;
  }
  template <std::size_t n>
  int choice(const std::string& key, const std::array<const char*, n>& names) const {
    if (!has(key)) return 0;
    const auto word = text(key);
    const auto found = std::ranges::find(names, word);
    if (found == names.end())
      wrong(key, fmt::format("is {}; give one of {}", quoted(word), fmt::join(names, ", ")));
    return static_cast<int>(found - names.begin());
  }
  std::vector<std::string> texts(const std::string& key) const {
    std::vector<std::string> found;
    const auto* list = has(key) ? table_.get(key)->as_array() : nullptr;
    if (list == nullptr) wrong(key, has(key) ? "is no list" : "is missing; it is a list of words in quotes");
    for (const auto& item : *list) {
      const auto value = item.value_exact<std::string>();
      if (!value || value->empty()) wrong(key, "is no list of words in quotes");
      found.push_back(*value);
    }
    return found;
  }
  bool is_empty_list(const std::string& key) const {
    return has(key) && table_.get(key)->is_array() && table_.get(key)->as_array()->empty();
  }
  /// A table within it; null where there is none of this name, or something else.
  const toml::table* table(const std::string& key) const {
    return has(key) ? table_.get(key)->as_table() : nullptr;
  }
  TomlSection section(const std::string& key, const std::vector<std::string>& known = {}) const {
    const auto* inner = table(key);
    if (inner == nullptr) wrong(key, has(key) ? "is no section" : "is missing");
    return {*inner, file_, name_.empty() ? key : name_ + "." + key, known};
  }

  /// "x.npy", "a.npz:MEMBER", or a text; relative to the file. No file where the key is not there.
  DescribedFile file(const std::string& key) const {
    return has(key) ? named_file(key, text_or_refuse_list(key)) : DescribedFile();
  }
  /// Or { file = .., column = k }, one column of it, or without = k, all others; k from 0.
  DescribedFile file_of_columns(const std::string& key) const {
    if (table(key) == nullptr) return file(key);
    const auto part = section(key, {"file", "column", "without"});
    auto found = part.named_file("file", part.text("file"));
    if (part.has("column")) found.column = part.whole_number("column");
    if (part.has("without")) found.without = part.whole_number("without");
    if (found.column && found.without) part.wrong("without", "and column are both there; leave one out");
    return found;
  }
  DescribedFile named_file(const std::string& key, const std::string& word) const {
    const std::string archive = ".npz:";
    const auto at = word.find(archive);
    const auto path = at == std::string::npos ? word : word.substr(0, at + archive.size() - 1);
    if (path.ends_with(".npz") && at == std::string::npos)
      wrong(key, fmt::format("is {}, an archive of arrays; say which: \"{}:NAME\"", quoted(word), word));
    return {(std::filesystem::path(file_).parent_path() / path).string(),
            at == std::string::npos ? "" : word.substr(at + archive.size()), place(key)};
  }

 private:
  // Columns of a table are lists.
  std::string text_or_refuse_list(const std::string& key) const {
    if (table_.get(key)->is_array())
      wrong(key, fmt::format("is a list of columns, which espalier-tables {} reads; give a file", file_));
    return text(key);
  }
  [[noreturn]] void refuse_key(const std::string& key, const toml::node& node,
                               const std::vector<std::string>& known) const {
    const auto place = fmt::format("{}:{}", file_, node.source().begin.line);
    const auto full = name_.empty() ? key : name_ + "." + key;
    const auto plural = std::ranges::find(known, key + "s");
    if (std::ranges::find(kTableKeys, key) != kTableKeys.end())
      input_error("{}: {} is of tables with headers, which espalier-tables {} reads{}", place, full, file_,
                  plural == known.end() ? "" : "; of an array or a text it is " + *plural);
    input_error("{}: unknown key {}; did you mean {}?", place, full, nearest(key, known));
  }

  const toml::table& table_;
  std::string file_, name_;
};

}  // namespace espalier
