#include "known_graph.hpp"

#include <nlohmann/json.hpp>

#include "espalier/base/error.hpp"

namespace espalier {

namespace {

template <class Graph, class Visit>
void visit_counts(Graph& graph, Visit visit) {
  visit("nodes", graph.nodes);
  visit("edges", graph.edges);
  visit("features", graph.features);
  visit("classes", graph.classes);
  visit("train", graph.train);
  visit("valid", graph.valid);
  visit("test", graph.test);
}

}  // namespace

std::string graph_to_json(const GraphInfo& graph) {
  nlohmann::ordered_json json;
  visit_counts(graph, [&](const char* name, std::int64_t count) { json[name] = count; });
  if (graph.links.exist) {
    json["link_relations"] = graph.links.relations();
    for (const auto& split : graph.links.splits) json["links"].push_back(split.links);
  }
  if (graph.content.complete)  // of all of them, or none: what was not checked cannot be compared
    for (const auto& [name, digest] : graph.content.datasets) json["digests"][name] = hex(digest);
  return json.dump();
}

void read_graph(const std::string& text, GraphInfo& graph) {
  const auto json = nlohmann::json::parse(text);
  visit_counts(graph, [&](const char* name, std::int64_t& count) { count = json.at(name); });
  graph.links.exist = json.contains("link_relations");
  if (graph.links.exist) {
    graph.links.names.resize(json["link_relations"].get<std::size_t>());
    for (std::size_t split = 0; split < graph.links.splits.size(); ++split)
      graph.links.splits[split].links = json["links"][split];
  }
  if (!json.contains("digests")) return;  // saved by a version before 0.2
  for (const auto& [name, digest] : json.at("digests").items())
    graph.content.datasets[name] = digest_from_hex(digest.get<std::string>()).value();
}

}  // namespace espalier
