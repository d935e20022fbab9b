#include "described_graph.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <ranges>
#include <set>
#include <stdexcept>

#include "espalier/base/error.hpp"
#include "espalier/base/text.hpp"

namespace espalier {

Triplet split_triplet(const std::string& joined, bool inverse) {
  const std::string between = "___";
  const auto first = joined.find(between);
  const auto second = first == std::string::npos ? first : joined.find(between, first + between.size());
  if (second == std::string::npos) return {};
  const auto begin = first + between.size(), end = second + between.size();
  const auto relation = joined.substr(begin, second - begin);
  return {joined.substr(0, first), relation, joined.substr(end), inverse ? "rev_" + relation : ""};
}

int DescribedGraph::type_of(const std::string& name) const {
  const auto found = std::ranges::find(types, name, &DescribedType::name);
  return found == types.end() ? -1 : static_cast<int>(found - types.begin());
}

std::vector<VertexType> DescribedGraph::counted_types() const {
  std::vector<VertexType> counted;
  for (std::int64_t begin = 0; const auto& of : types) {
    counted.push_back({of.name, begin, begin + of.count.value_or(-1)});
    begin = counted.back().end;
  }
  return counted;
}

void DescribedGraph::add_relation(DescribedRelation relation, std::string at) {
  if (at.empty()) at = relation.by;
  const auto& triplet = relation.triplet;
  const auto names = triplet.head + "," + triplet.relation + "," + triplet.tail;
  if (std::ranges::find(relations, triplet, &DescribedRelation::triplet) != relations.end())
    input_error("{}: the triplet {} is listed twice", at, names);
  for (const auto& type : {triplet.head, triplet.tail})
    if (type_of(type) < 0)
      input_error("{}: the triplet {} names the vertex type \"{}\"; there is {}", at, names, type,
                  names_of(counted_types()));
  relations.push_back(std::move(relation));
}

void DescribedGraph::check_names(const std::string& at) const {
  if (types.empty() || counted_types().back().end == 0) input_error("{}: the graph has no vertex", at);
  schema_of(*this, at, false);
}

Schema schema_of(const DescribedGraph& graph, const std::string& place, bool inverses) {
  const auto& described = graph.relations;
  std::vector<Relation> relations;
  for (const auto& [head, name, tail, inverse] :
       described | std::views::transform(&DescribedRelation::triplet))
    relations.push_back({name, graph.type_of(head), graph.type_of(tail), -1});
  for (std::size_t r = 0; inverses && r < described.size(); ++r) {
    const auto& of = described[r].triplet;
    if (of.inverse.empty()) continue;
    const Triplet inverse{of.tail, of.inverse, of.head};
    if (std::ranges::find(described, inverse, &DescribedRelation::triplet) != described.end())
      input_error("{}: {} has the name that the inverse of {} would get; give {}", place, inverse.joined(),
                  of.joined(), graph.options.by_keys ? "another name as its inverse" : "--no-inverse");
    relations[r].inverse = static_cast<int>(relations.size());
    relations.push_back({of.inverse, relations[r].target, relations[r].source, static_cast<int>(r)});
  }
  try {
    return {graph.counted_types(), std::move(relations)};
  } catch (const std::invalid_argument& error) {
    input_error("{}: {}", place, error.what());
  }
}

// A described graph as described_toml.cpp reads it: what a layout means, for a user to change.

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
