#include "described_graph.hpp"

#include <algorithm>
#include <ranges>
#include <stdexcept>

#include "espalier/base/error.hpp"

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

}  // namespace espalier
