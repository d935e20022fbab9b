// A described graph as described_toml.cpp reads it: what a layout means, for a user to change.
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "described_graph.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/text.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

std::string word_of(const DescribedFile& file) {
  if (file.array && !file.path.ends_with(".npy"))
    usage_error("--describe: {} is an array, which a description knows by its name; call it .npy", file.path);
  const auto path = fs::absolute(file.path).lexically_normal().string();
  return quoted(file.member.empty() ? path : path + ":" + file.member);
}

std::string value_of(const DescribedFile& file) {
  if (file.column) return fmt::format("{{ file = {}, column = {} }}", word_of(file), *file.column);
  if (file.without) return fmt::format("{{ file = {}, without = {} }}", word_of(file), *file.without);
  return word_of(file);
}

// "key = value\n"; nothing where there is no file.
std::string line_of(const char* key, const DescribedFile& file) {
  return file.given() ? fmt::format("{} = {}\n", key, value_of(file)) : "";
}

std::string parts_of(const DescribedSplit& split) {
  std::vector<std::string> parts;
  for (std::size_t s = 0; s < split.parts.size(); ++s)
    if (split.parts[s].given() || split.empty[s])
      parts.push_back(
          fmt::format("{} = {}", kSplitNames[s], split.empty[s] ? "[]" : value_of(split.parts[s])));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string splits_of(const std::vector<DescribedSplit>& splits) {
  std::vector<std::string> words;
  for (const auto& split : splits)
    words.push_back(split.name.empty() ? parts_of(split)
                                       : fmt::format("{} = {{ {} }}", quoted(split.name), parts_of(split)));
  return splits.empty() ? "" : fmt::format("splits = {{ {} }}\n", fmt::join(words, ", "));
}

std::string section_of(const DescribedType& type) {
  std::string out = fmt::format("\n[types.{}]\n", type.name.empty() ? "vertex" : type.name);
  if (type.count) out += fmt::format("count = {}\n", *type.count);
  return out + line_of("features", type.features) + line_of("labels", type.labels) +
         line_of("ids", type.ids) + line_of("time", type.times) + splits_of(type.splits);
}

std::string edges_of(const DescribedRelation& relation) {
  constexpr const char* kFields[] = {"\"source\"", "\"target\"", "\"weight\"", "\"time\""};
  std::vector<std::string> files, columns;
  for (const auto& edges : relation.edges) files.push_back(word_of(edges.file));
  for (const auto field : relation.edges[0].form.fields) columns.push_back(kFields[static_cast<int>(field)]);
  if (files.size() == 1 && relation.edges[0].form.fields == PairForm().fields) return files[0];
  return fmt::format("{{ files = [{}], columns = [{}] }}", fmt::join(files, ", "), fmt::join(columns, ", "));
}

// Sections are called as relations, where no earlier one is; `taken`: those of the earlier ones.
std::string section_of(const DescribedRelation& relation, std::set<std::string>& taken) {
  const auto& [head, name, tail, inverse] = relation.triplet;
  std::string out;
  if (taken.insert(name).second)
    out = fmt::format("\n[relations.{}]\n", name.empty() ? "edge" : name);
  else
    out = fmt::format("\n[relations.{}]\nname = {}\n", quoted(head + "." + name + "." + tail), quoted(name));
  const bool typed = !head.empty();
  out += fmt::format("source = {}\ntarget = {}\nedges = {}\n", quoted(typed ? head : "vertex"),
                     quoted(typed ? tail : "vertex"), edges_of(relation));
  out += line_of("weights", relation.weights) + line_of("time", relation.times) +
         line_of("features", relation.features);
  if (!inverse.empty()) out += fmt::format("inverse = {}\n", quoted(inverse));
  return out;
}

}  // namespace

std::string as_toml(const DescribedGraph& graph) {
  const auto& edges = graph.options.edges;
  std::string out;
  if (edges.symmetrize) out += "directed = false\n";
  out += fmt::format("duplicates = \"{}\"\n", kDuplicateNames[static_cast<std::size_t>(edges.duplicates)]);
  if (edges.features != DuplicateFeatures::kKept)
    out += fmt::format("duplicate_features = \"{}\"\n",
                       kDuplicateFeatureNames[static_cast<std::size_t>(edges.features)]);
  if (edges.drop_self_loops) out += "loops = \"drop\"\n";
  if (graph.options.half) out += "half = true\n";
  if (graph.typed() && graph.types.size() == 1 && graph.relations.size() == 1) out += "typed = true\n";
  for (const auto& type : graph.types) out += section_of(type);
  std::set<std::string> taken;
  for (const auto& relation : graph.relations) out += section_of(relation, taken);
  return out;
}

}  // namespace espalier
