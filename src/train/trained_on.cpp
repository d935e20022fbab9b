#include "espalier/train/trained_on.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "espalier/base/error.hpp"
#include "espalier/base/version.hpp"
#include "espalier/file/archive.hpp"

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

Schema schema_of(const nlohmann::json& json) {
  std::vector<VertexType> types;
  for (const auto& of : json.at("types")) {
    const auto begin = types.empty() ? 0 : types.back().end;
    types.push_back({of.at(0), begin, begin + of.at(1).get<std::int64_t>()});
  }
  std::vector<Relation> relations;
  for (const auto& of : json.at("relations")) relations.push_back({of.at(0), of.at(1), of.at(2), of.at(3)});
  return {std::move(types), std::move(relations)};
}

std::string graph_to_json(const GraphInfo& graph) {
  nlohmann::ordered_json json;
  visit_counts(graph, [&](const char* name, std::int64_t count) { json[name] = count; });
  if (graph.links.exist) {
    json["link_relations"] = graph.links.relations();
    for (const auto& split : graph.links.splits) json["links"].push_back(split.links);
    json["link_names"] = graph.links.names;
    json["link_graph_relations"] = graph.links.graph_relations;
  }
  if (graph.typed) {
    for (const auto& of : graph.schema.types()) json["types"].push_back({of.name, of.size()});
    for (const auto& of : graph.schema.relations())
      json["relations"].push_back({of.name, of.source, of.target, of.inverse});
  }
  if (graph.content.complete)  // of all of them, or none: what was not checked cannot be compared
    for (const auto& [name, digest] : graph.content.datasets) json["digests"][name] = hex(digest);
  // Names may be any bytes.
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Throws std::exception where the text is something else.
void read_graph(const std::string& text, GraphInfo& graph) {
  const auto json = nlohmann::json::parse(text);
  visit_counts(graph, [&](const char* name, std::int64_t& count) { count = json.at(name); });
  graph.links.exist = json.contains("link_relations");
  if (graph.links.exist) {
    graph.links.names.resize(json["link_relations"].get<std::size_t>());
    for (std::size_t split = 0; split < graph.links.splits.size(); ++split)
      graph.links.splits[split].links = json["links"][split];
    if (json.contains("link_names")) {  // earlier versions have their number alone
      json["link_names"].get_to(graph.links.names);
      json["link_graph_relations"].get_to(graph.links.graph_relations);
    }
  }
  graph.typed = json.contains("types");
  if (graph.typed) graph.schema = schema_of(json);
  if (!json.contains("digests")) return;  // saved by a version before 0.2
  for (const auto& [name, digest] : json.at("digests").items())
    graph.content.datasets[name] = digest_from_hex(digest.get<std::string>()).value();
}

constexpr const char *kMean = "/features/mean", *kDeviation = "/features/deviation";

}  // namespace

std::string difference_of_inputs(const GraphInfo& there, const GraphInfo& here, const ContentDigests& content,
                                 bool edge_features) {
  std::string words;
  for (const auto& [what, theirs, ours] :
       {std::tuple("nodes", there.nodes, here.nodes), std::tuple("edges", there.edges, here.edges),
        std::tuple("features", there.features, here.features)})
    if (theirs != ours)
      words += fmt::format("{}{} {} there, {} here", words.empty() ? "" : ", ", theirs, what, ours);
  if (!words.empty() || there.content.datasets.empty()) return words;
  const auto inputs = [&](const ContentDigests& of) {
    ContentDigests found;
    for (const auto& [name, digest] : of.datasets) {
      const bool of_edges = name.starts_with("/edges/"),
                 of_graph = name.starts_with("/graph/") || name.starts_with("/types/") ||
                            name.starts_with("/relations/"),
                 is_known = content.datasets.contains(name) || (name == "/graph/weights" && !here.weighted);
      if (is_known && (of_graph || (name.find("/features") != name.npos && (edge_features || !of_edges))))
        found.datasets[name] = digest;
    }
    return found;
  };
  return describe_difference(inputs(there.content), inputs(content));
}

void write_trained_on(ArchiveWriter& archive, const TrainedOn& of) {
  archive("espalier", kVersion);
  archive("config", of.config);
  archive("graph", graph_to_json(of.graph));
  if (!of.digest.empty()) archive("weights_digest", of.digest);
  const auto& [mean, deviation] = of.standardization;
  for (const auto& [name, values] : {std::pair(kMean, &mean), std::pair(kDeviation, &deviation)})
    if (!values->empty()) archive.numbers(name, {1, std::ssize(*values)}, *values);
  archive.note(write_columns(archive.object(), of.graph.feature_columns));
}

TrainedOn read_trained_on(const ArchiveReader& archive) {
  TrainedOn of;
  archive("config", of.config);
  archive.understand("graph", [&](const std::string& text) { read_graph(text, of.graph); });
  if (archive.has("weights_digest")) archive("weights_digest", of.digest);
  auto& [mean, deviation] = of.standardization;
  for (const auto& [name, values] : {std::pair(kMean, &mean), std::pair(kDeviation, &deviation)})
    if (archive.has_array(name)) *values = archive.array<double>(name, {1, -1});
  // Of the target; without any, another type has the one that was standardised.
  const auto features = of.graph.features;
  if (mean.size() != deviation.size() || (!mean.empty() && features > 0 && std::ssize(mean) != features))
    archive.fail(fmt::format("features/mean has {} columns, features/deviation {}, and the graph {}",
                             mean.size(), deviation.size(), features));
  if (!read_columns(archive.file(), of.graph.feature_columns))
    archive.fail("its names of columns cannot be understood");
  return of;
}

}  // namespace espalier
