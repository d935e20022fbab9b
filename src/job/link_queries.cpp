// Lists of links that people ask about: read, and answered.
#include "espalier/job/named_vertices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "espalier/base/text.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/file/csv.hpp"
#include "espalier/train/report.hpp"

namespace espalier {

namespace {

struct LinkQuery {
  std::int64_t line;
  std::string head, tail;
  std::int32_t relation;
};

std::int32_t relation_named(const CsvReader& csv, const LinkInfo& links, const std::string& text) {
  const auto found = std::ranges::find(links.names, text);
  if (found != links.names.end()) return static_cast<std::int32_t>(found - links.names.begin());
  const auto number = number_in<std::int64_t>(text);
  if (!number || *number < 0 || *number >= links.relations())
    csv.fail("'{}' is no relation of the links; they have {}", text.substr(0, 40),
             counted(links.relations(), "relation"));
  return static_cast<std::int32_t>(*number);
}

// On rank 0.
std::vector<LinkQuery> parse(const std::string& path, const LinkInfo& links, bool open) {
  std::vector<LinkQuery> queries;
  CsvReader csv(path);
  const int fewest = (links.relations() > 1 ? 2 : 1) + (open ? 0 : 1), most = open ? 2 : 3;
  while (csv.next_line()) {
    if (csv.line() == 1 && csv.contains('\t')) csv.separate_by('\t');
    const auto fields = csv.count_fields();
    if (fields < fewest || fields > most)
      csv.fail("has {}, expected head, relation{}, apart by tabs or by commas as in line 1{}",
               counted(fields, "field"), open ? "" : " and tail",
               fewest < most ? "; the relation may be left out" : "");
    LinkQuery query{.line = csv.line(), .head = std::string(csv.text()), .tail = {}, .relation = 0};
    if (fields == most) query.relation = relation_named(csv, links, std::string(csv.text()));
    if (!open) query.tail = csv.text();
    queries.push_back(std::move(query));
  }
  if (queries.empty()) input_error("{}: asks for no link", path);
  return queries;
}

// The type of one end of the links of a relation; of no relation of the graph: any.
std::optional<int> type_of_end(const GraphInfo& graph, std::int32_t relation, LinkEnd end) {
  if (!graph.typed) return 0;
  if (graph.links.graph_relations.empty()) return std::nullopt;
  const auto& of = graph.schema.relations()[graph.links.graph_relations[relation]];
  return end == LinkEnd::kHead ? of.source : of.target;
}

std::int64_t vertex_of(const Job& job, const NamedVertices& named, const std::vector<int>& by_ids,
                       const std::string& path, const LinkQuery& query, LinkEnd end) {
  const auto& graph = job.graph;
  const auto& text = end == LinkEnd::kHead ? query.head : query.tail;
  const auto type = type_of_end(graph, query.relation, end);
  const auto of =
      !type || !graph.typed ? std::string("the graph") : "type " + graph.schema.types()[*type].name;
  bool has_names = false;
  for (int t = type.value_or(0); t <= type.value_or(static_cast<int>(std::ssize(graph.types)) - 1); ++t) {
    if (const auto found = named.find(t, text, path, query.line, of)) return *found;
    has_names |= std::ranges::find(by_ids, t) != by_ids.end();
  }
  if (has_names)
    input_error("{}:{}: no vertex of {} has the name '{}'", path, query.line, of, text.substr(0, 60));
  const RowRange range = type ? RowRange{graph.schema.types()[*type].begin, graph.schema.types()[*type].end}
                              : RowRange{0, graph.nodes};
  const auto number = number_in<std::int64_t>(text);
  if (!number || *number < 0 || *number >= range.size())
    input_error("{}:{}: '{}' is no vertex of {}, whose {} are 0 to {}", path, query.line, text.substr(0, 40),
                of, counted(range.size(), "vertex"), range.size() - 1);
  return range.begin + *number;
}

// The types whose vertices are named by ids. Throws where an end of links does not say which.
std::vector<int> types_named_by_ids(const Job& job, const std::string& list, const std::string& named_by) {
  const auto& graph = job.graph;
  std::set<int> ends;
  for (std::int32_t r = 0; r < graph.links.relations(); ++r)
    for (const auto end : {LinkEnd::kHead, LinkEnd::kTail})
      for (int t = 0; t < std::ssize(graph.types); ++t)
        if (type_of_end(graph, r, end).value_or(t) == t) ends.insert(t);
  std::vector<int> types;
  for (const int t : ends) {
    const auto of = graph.typed ? "type " + graph.schema.types()[t].name : std::string("the graph");
    if (named_by_ids(graph.types[t], named_by, list, of)) types.push_back(t);
  }
  if (named_by == "ids" && types.empty())
    usage_error("--named-by ids: {} has no ids of vertices; leave it out", job.config.graph.file);
  return types;
}

}  // namespace

std::vector<LinkTriple> read_link_queries(const Job& job, const std::string& path, bool open,
                                          const std::string& named_by) {
  const auto& world = job.grid->world();
  const auto by_ids = types_named_by_ids(job, "--links " + path, named_by);
  std::vector<LinkQuery> queries;
  std::set<std::string> names;
  agree(world, [&] {
    if (world.rank() != 0) return;
    queries = parse(path, job.graph.links, open);
    for (const auto& query : queries) {
      names.insert(query.head);
      if (!open) names.insert(query.tail);
    }
  });
  const NamedVertices named(world, *job.file, by_ids, names);
  std::vector<LinkTriple> links;
  agree(world, [&] {
    for (const auto& query : queries)
      links.push_back({vertex_of(job, named, by_ids, path, query, LinkEnd::kHead),
                       open ? 0 : vertex_of(job, named, by_ids, path, query, LinkEnd::kTail),
                       query.relation});
  });
  auto count = std::ssize(links);
  world.broadcast(&count, 1, 0, kInferLabel);
  links.resize(count);
  world.broadcast(links.data(), count, 0, kInferLabel);
  return links;
}

void write_link_answers(const Job& job, const std::string& path, std::span<const LinkTriple> links,
                        std::span<const float> scores, std::span<const std::uint8_t> known,
                        const std::string& named_by) {
  std::set<std::int64_t> vertices;
  for (const auto& link : links) vertices.insert({link.head, link.tail});
  const auto names =
      names_of(job.grid->world(), *job.file, types_named_by_ids(job, "--links", named_by), vertices);
  const auto& relations = job.graph.links.names;
  agree(job.grid->world(), [&] {
    if (job.grid->world().rank() != 0) return;
    std::string text = "head,relation,tail,score,known\n";
    for (std::size_t k = 0; k < links.size(); ++k)
      text += fmt::format("{},{},{},{},{}\n", csv_field(names.at(links[k].head)),
                          relations.empty() ? "0" : csv_field(relations[links[k].relation]),
                          csv_field(names.at(links[k].tail)), scores[k], known[k]);
    write_file(path, text);
  });
}

}  // namespace espalier
