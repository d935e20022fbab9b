#include "espalier/graph/schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <set>
#include <stdexcept>

namespace espalier {

namespace {

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw std::invalid_argument(fmt::format(format, std::forward<Args>(args)...));
}

// Names are parts of the paths of data sets and of keys: "author.writes.paper=25,10".
void check_name(const char* noun, const std::string& name) {
  if (name.empty()) refuse("a {} without a name", noun);
  if (!std::ranges::all_of(name, is_in_names))
    refuse("the {} \"{}\": names hold letters, digits, '_' and '-'", noun, name);
}

}  // namespace

std::string names_of(const std::vector<VertexType>& types) {
  return fmt::format("{}", fmt::join(types | std::views::transform(&VertexType::name), ", "));
}

Schema::Schema(std::int64_t n)
    : types_{{"vertex", 0, n}}, relations_{{"edge", 0, 0, -1}}, begins_{0, n}, shifts_{0} {}

Schema::Schema(std::vector<VertexType> types, std::vector<Relation> relations)
    : types_(std::move(types)), relations_(std::move(relations)) {
  if (types_.empty() || std::ssize(types_) > kMostTypes)
    refuse("{} vertex types, give 1 to {}", types_.size(), kMostTypes);
  if (relations_.empty() || std::ssize(relations_) > kMostRelations)
    refuse("{} relations, give 1 to {}", relations_.size(), kMostRelations);
  std::set<std::string> names;
  std::int64_t end = 0;
  for (const auto& type : types_) {
    check_name("vertex type", type.name);
    if (!names.insert(type.name).second) refuse("two vertex types are called {}", type.name);
    if (type.begin != end || type.end < type.begin)
      refuse("the vertices of type {} are [{}, {}), but {} is the next", type.name, type.begin, type.end,
             end);
    end = type.end;
  }
  names.clear();
  const auto count = static_cast<int>(types_.size());
  for (int r = 0; r < std::ssize(relations_); ++r) {
    const auto& relation = relations_[r];
    check_name("relation", relation.name);
    for (const int type : {relation.source, relation.target})
      if (type < 0 || type >= count) refuse("relation {} is of type {}, of {}", relation.name, type, count);
    if (!names.insert(full_name(r)).second) refuse("two relations are called {}", full_name(r));
  }
  for (int r = 0; r < std::ssize(relations_); ++r) {
    const auto& relation = relations_[r];
    if (relation.inverse == -1) continue;
    if (relation.inverse < 0 || relation.inverse >= std::ssize(relations_))
      refuse("the inverse of relation {} is {}, of {}", full_name(r), relation.inverse, relations_.size());
    const auto& inverse = relations_[relation.inverse];
    if (inverse.inverse != r || inverse.source != relation.target || inverse.target != relation.source)
      refuse("relation {} cannot be the inverse of {}: it has other types, or another inverse",
             full_name(relation.inverse), full_name(r));
  }
  for (const auto& relation : relations_) {
    shifts_.push_back(types_[relation.source].begin - begins_.back());
    begins_.push_back(begins_.back() + types_[relation.source].size());
  }
}

int Schema::type_of(std::int64_t vertex) const {
  const auto after = std::ranges::upper_bound(types_, vertex, {}, &VertexType::end);
  return static_cast<int>(after - types_.begin());
}

std::string Schema::full_name(int relation) const {
  const auto& of = relations_[relation];
  return fmt::format("{}.{}.{}", types_[of.source].name, of.name, types_[of.target].name);
}

int Schema::find_type(std::string_view name) const {
  const auto found = std::ranges::find(types_, name, &VertexType::name);
  return found == types_.end() ? -1 : static_cast<int>(found - types_.begin());
}

int Schema::find_relation(std::string_view name) const {
  int found = -1;
  for (int r = 0; r < std::ssize(relations_); ++r) {
    if (full_name(r) == name) return r;
    if (relations_[r].name == name) found = found == -1 ? r : -2;
  }
  return std::max(found, -1);
}

std::string Schema::relation_names() const {
  std::string names;
  for (int r = 0; r < std::ssize(relations_); ++r) names += (names.empty() ? "" : ", ") + full_name(r);
  return names;
}

}  // namespace espalier
