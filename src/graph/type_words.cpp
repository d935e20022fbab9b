#include "type_words.hpp"

#include <charconv>
#include <stdexcept>

#include "espalier/base/error.hpp"
#include "espalier/graph/csv.hpp"
#include "espalier/graph/generate.hpp"

namespace espalier {

namespace {

constexpr const char* kTypesForm = "give NAME=VERTICES[:FEATURES],..., as paper=20000:32,author=12000";
constexpr const char* kRelationsForm = "give SOURCE.NAME.TARGET=EDGES,..., as author.writes.paper=60000";

// A whole number from `least` to `most`, or `wrong()`.
template <class Wrong>
std::int64_t whole_number(const std::string& text, std::int64_t least, std::int64_t most, Wrong wrong) {
  std::int64_t value = 0;
  const auto* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end || value < least || value > most) wrong();
  return value;
}

void read_types(const std::string& text, std::vector<VertexType>& types, TypedModel& model) {
  std::int64_t end = 0;
  for (const auto& one : split_text(text, ',')) {
    const auto sides = split_text(one, '=');
    const auto numbers = split_text(sides.back(), ':');
    if (sides.size() != 2 || numbers.size() > 2) usage_error("--types {}: {}", one, kTypesForm);
    const auto vertices = whole_number(numbers[0], 1, kMostNodes - end, [&] {
      usage_error("--types {}: {}, with 1 to {} vertices in all", one, kTypesForm, kMostNodes);
    });
    const auto features = numbers.size() == 1 ? 0 : whole_number(numbers[1], 0, kMostFeatures, [&] {
      usage_error("--types {}: {}, with 0 to {} features", one, kTypesForm, kMostFeatures);
    });
    types.push_back({sides[0], end, end + vertices});
    model.features.push_back(features);
    end += vertices;
  }
}

int place_of_type(const std::vector<VertexType>& types, const std::string& name, const std::string& one) {
  for (std::size_t t = 0; t < types.size(); ++t)
    if (types[t].name == name) return static_cast<int>(t);
  std::string names;
  for (const auto& type : types) names += (names.empty() ? "" : ", ") + type.name;
  usage_error("--relations {}: there is no type {}; --types has {}", one, name, names);
}

void read_relations(const std::string& text, const std::vector<VertexType>& types,
                    std::vector<Relation>& relations, TypedModel& model) {
  for (const auto& one : split_text(text, ',')) {
    const auto sides = split_text(one, '=');
    const auto names = split_text(sides[0], '.');
    if (sides.size() != 2 || names.size() != 3) usage_error("--relations {}: {}", one, kRelationsForm);
    const auto edges = whole_number(sides[1], 0, kMostNodes, [&] {
      usage_error("--relations {}: {}, with 0 to {} edges", one, kRelationsForm, kMostNodes);
    });
    relations.push_back({names[1], place_of_type(types, names[0], one), place_of_type(types, names[2], one)});
    model.edges.push_back(edges);
  }
}

// The same edges the other way round, behind all others.
void add_inverses(std::vector<Relation>& relations, TypedModel& model) {
  for (int r = 0; r < model.forward; ++r) {
    const auto forward = relations[r];
    relations[r].inverse = model.forward + r;
    relations.push_back({"rev_" + forward.name, forward.target, forward.source, r});
    model.edges.push_back(model.edges[r]);
  }
}

}  // namespace

TypedModel read_typed_model(const std::string& types, const std::string& relations, bool inverses) {
  TypedModel model;
  std::vector<VertexType> type_list;
  std::vector<Relation> relation_list;
  read_types(types, type_list, model);
  read_relations(relations, type_list, relation_list, model);
  model.forward = static_cast<int>(relation_list.size());
  if (inverses) add_inverses(relation_list, model);
  try {
    model.schema = Schema(std::move(type_list), std::move(relation_list));
  } catch (const std::invalid_argument& error) {
    usage_error("--types {} --relations {}: {}", types, relations, error.what());
  }
  return model;
}

}  // namespace espalier
