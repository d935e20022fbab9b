#include "graph_names.hpp"

#include <algorithm>
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

void GraphNames::add_type(const std::string& name, std::int64_t size) {
  const auto begin = types_.empty() ? 0 : types_.back().end;
  types_.push_back({name, begin, begin + size});
}

void GraphNames::add_triplet(const Triplet& triplet, const std::string& place) {
  const auto names = [](const Triplet& of) { return of.head + "," + of.relation + "," + of.tail; };
  if (std::ranges::find(triplets_, triplet) != triplets_.end())
    input_error("{}: the triplet {} is listed twice", place, names(triplet));
  for (const auto& type : {triplet.head, triplet.tail}) {
    if (type_of(type) >= 0) continue;
    input_error("{}: the triplet {} names the vertex type \"{}\"; there is {}", place, names(triplet), type,
                names_of(types_));
  }
  triplets_.push_back(triplet);
}

void GraphNames::check(const std::string& place) const {
  if (types_.empty() || types_.back().end == 0) input_error("{}: the graph has no vertex", place);
  schema_of(*this, place, false);
}

int GraphNames::type_of(const std::string& name) const {
  const auto found = std::ranges::find(types_, name, &VertexType::name);
  return found == types_.end() ? -1 : static_cast<int>(found - types_.begin());
}

GraphNames GraphNames::plain(std::int64_t vertices) {
  GraphNames names;
  names.types_ = {{"", 0, vertices}};
  names.triplets_ = {Triplet()};
  return names;
}

Schema schema_of(const GraphNames& names, const std::string& place, bool inverses, bool by_keys) {
  const auto& triplets = names.triplets();
  std::vector<Relation> relations;
  for (const auto& of : triplets)
    relations.push_back({of.relation, names.type_of(of.head), names.type_of(of.tail), -1});
  for (std::size_t r = 0; inverses && r < triplets.size(); ++r) {
    const auto& of = triplets[r];
    if (of.inverse.empty()) continue;
    const Triplet inverse{of.tail, of.inverse, of.head};
    if (std::ranges::find(triplets, inverse) != triplets.end())
      input_error("{}: {} has the name that the inverse of {} would get; give {}", place, inverse.joined(),
                  of.joined(), by_keys ? "another name as its inverse" : "--no-inverse");
    relations[r].inverse = static_cast<int>(relations.size());
    relations.push_back({of.inverse, relations[r].target, relations[r].source, static_cast<int>(r)});
  }
  try {
    return {names.types(), std::move(relations)};
  } catch (const std::invalid_argument& error) {
    input_error("{}: {}", place, error.what());
  }
}

}  // namespace espalier
