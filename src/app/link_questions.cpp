#include "link_questions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "espalier/base/counted.hpp"
#include "espalier/comm/agree.hpp"
#include "espalier/graph/csv.hpp"
#include "espalier/graph/degrees.hpp"
#include "espalier/train/report.hpp"

namespace espalier {

namespace {

constexpr const char* kLabel = "infer";

struct Question {
  std::int64_t line;
  std::string head, tail;
  std::int32_t relation;
};

std::optional<std::int64_t> number_in(const std::string& text) {
  std::int64_t number = 0;
  const auto* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  return result.ec == std::errc() && result.ptr == end ? std::optional(number) : std::nullopt;
}

std::int32_t relation_named(const CsvReader& csv, const LinkInfo& links, const std::string& text) {
  const auto found = std::ranges::find(links.names, text);
  if (found != links.names.end()) return static_cast<std::int32_t>(found - links.names.begin());
  const auto number = number_in(text);
  if (!number || *number < 0 || *number >= links.relations())
    csv.fail("'{}' is no relation of the links; they have {}", text.substr(0, 40),
             counted(links.relations(), "relation"));
  return static_cast<std::int32_t>(*number);
}

// On rank 0.
std::vector<Question> parse(const std::string& path, const LinkInfo& links, bool open) {
  std::vector<Question> questions;
  CsvReader csv(path);
  const int fewest = (links.relations() > 1 ? 2 : 1) + (open ? 0 : 1), most = open ? 2 : 3;
  while (csv.next_line()) {
    if (csv.line() == 1 && csv.contains('\t')) csv.separate_by('\t');
    const auto fields = csv.count_fields();
    if (fields < fewest || fields > most)
      csv.fail("has {}, expected head, relation{}, apart by tabs or by commas as in line 1{}",
               counted(fields, "field"), open ? "" : " and tail",
               fewest < most ? "; the relation may be left out" : "");
    Question question{.line = csv.line(), .head = std::string(csv.text()), .tail = {}, .relation = 0};
    if (fields == most) question.relation = relation_named(csv, links, std::string(csv.text()));
    if (!open) question.tail = csv.text();
    questions.push_back(std::move(question));
  }
  if (questions.empty()) input_error("{}: asks for no link", path);
  return questions;
}

// Calls visit(type, vertex, name) for this rank's share of the named vertices of each type, which
// are ids of the whole graph. Collective.
template <class Visit>
void visit_names(const Job& job, const Visit& visit) {
  const auto& types = job.graph.schema.types();
  for (int t = 0; t < std::ssize(types); ++t) {
    if (!job.graph.types[t].has_ids) continue;
    const auto& of = types[t];
    in_row_parts(
        job.grid->world(), of.size(),
        [&](std::int64_t begin, std::int64_t end) {
          const auto names = job.file->read_ids(of.begin + begin, of.begin + end, t);
          for (std::int64_t k = 0; k < std::ssize(names); ++k) visit(t, of.begin + begin + k, names[k]);
        },
        32);
  }
}

// Names of vertices as numbers of the whole graph, [types, names]; -1: none of the type.
class NamedVertices {
 public:
  /// Collective; `names` of rank 0, without line breaks.
  NamedVertices(const Job& job, const std::set<std::string>& names)
      : types_(std::ssize(job.graph.schema.types())) {
    const auto& world = job.grid->world();
    const auto text = world.broadcast_text(fmt::format("{}", fmt::join(names, "\n")), 0, kLabel);
    for (auto& name : split_text(text, '\n')) places_.emplace(std::move(name), std::ssize(places_));
    found_.assign(types_ * places_.size(), -1);
    visit_names(job, [&](int type, std::int64_t vertex, const std::string& name) {
      if (const auto place = places_.find(name); place != places_.end())
        found_[type * places_.size() + place->second] = vertex;
    });
    world.all_reduce(std::span<std::int64_t>(found_), Reduction::kMax, kLabel);
  }

  std::int64_t find(int type, const std::string& name) const {
    return found_[type * places_.size() + places_.at(name)];
  }

 private:
  std::size_t types_;
  std::map<std::string, std::int64_t> places_;
  std::vector<std::int64_t> found_;
};

// The type of one end of the links of a relation; of no relation of the graph: any.
std::optional<int> type_of_end(const GraphInfo& graph, std::int32_t relation, LinkEnd end) {
  if (!graph.typed) return 0;
  if (graph.links.graph_relations.empty()) return std::nullopt;
  const auto& of = graph.schema.relations()[graph.links.graph_relations[relation]];
  return end == LinkEnd::kHead ? of.source : of.target;
}

std::int64_t vertex_of(const Job& job, const NamedVertices& named, const std::string& path,
                       const Question& question, LinkEnd end) {
  const auto& graph = job.graph;
  const auto& text = end == LinkEnd::kHead ? question.head : question.tail;
  const auto type = type_of_end(graph, question.relation, end);
  const auto of =
      !type || !graph.typed ? std::string("the graph") : "type " + graph.schema.types()[*type].name;
  bool has_names = false;
  for (int t = type.value_or(0); t <= type.value_or(static_cast<int>(std::ssize(graph.types)) - 1); ++t) {
    if (const auto vertex = named.find(t, text); vertex >= 0) return vertex;
    has_names |= graph.types[t].has_ids;
  }
  if (has_names)
    input_error("{}:{}: no vertex of {} has the name '{}'", path, question.line, of, text.substr(0, 60));
  const RowRange range = type ? RowRange{graph.schema.types()[*type].begin, graph.schema.types()[*type].end}
                              : RowRange{0, graph.nodes};
  const auto number = number_in(text);
  if (!number || *number < 0 || *number >= range.size())
    input_error("{}:{}: '{}' is no vertex of {}, whose {} are 0 to {}", path, question.line,
                text.substr(0, 40), of, counted(range.size(), "vertex"), range.size() - 1);
  return range.begin + *number;
}

// Collective. What these vertices are called, on every rank: names, or numbers within their types.
std::map<std::int64_t, std::string> names_of(const Job& job, const std::set<std::int64_t>& vertices) {
  std::map<std::int64_t, std::string> names;
  const auto& schema = job.graph.schema;
  std::string mine;
  visit_names(job, [&](int, std::int64_t vertex, const std::string& name) {
    if (vertices.contains(vertex)) mine += fmt::format("{}\t{}\n", vertex, name);
  });
  const auto all = job.grid->world().all_gather_v(std::span<const char>(mine), kLabel);
  for (const auto& line : split_text(std::string(all.begin(), all.end()), '\n'))
    if (const auto tab = line.find('\t'); tab != line.npos)
      names[*number_in(line.substr(0, tab))] = line.substr(tab + 1);
  for (const auto vertex : vertices)
    if (!names.contains(vertex))
      names[vertex] = fmt::format("{}", vertex - schema.types()[schema.type_of(vertex)].begin);
  return names;
}

// A field of CSV (RFC 4180).
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string field = "\"";
  for (const char letter : text) field += letter == '"' ? std::string("\"\"") : std::string(1, letter);
  return field + "\"";
}

}  // namespace

std::vector<LinkTriple> read_link_questions(const Job& job, const std::string& path, bool open) {
  const auto& world = job.grid->world();
  std::vector<Question> questions;
  std::set<std::string> names;
  agree(world, [&] {
    if (world.rank() != 0) return;
    questions = parse(path, job.graph.links, open);
    for (const auto& question : questions) {
      names.insert(question.head);
      if (!open) names.insert(question.tail);
    }
  });
  const NamedVertices named(job, names);
  std::vector<LinkTriple> links;
  agree(world, [&] {
    for (const auto& question : questions)
      links.push_back({vertex_of(job, named, path, question, LinkEnd::kHead),
                       open ? 0 : vertex_of(job, named, path, question, LinkEnd::kTail), question.relation});
  });
  auto count = std::ssize(links);
  world.broadcast(&count, 1, 0, kLabel);
  links.resize(count);
  world.broadcast(links.data(), count, 0, kLabel);
  return links;
}

void write_link_answers(const Job& job, const std::string& path, std::span<const LinkTriple> links,
                        std::span<const float> scores, std::span<const std::uint8_t> known) {
  std::set<std::int64_t> vertices;
  for (const auto& link : links) vertices.insert({link.head, link.tail});
  const auto names = names_of(job, vertices);
  const auto& relations = job.graph.links.names;
  agree(job.grid->world(), [&] {
    if (job.grid->world().rank() != 0) return;
    std::string text = "head,relation,tail,score,known\n";
    for (std::size_t k = 0; k < links.size(); ++k)
      text += fmt::format("{},{},{},{},{}\n", quoted(names.at(links[k].head)),
                          relations.empty() ? "0" : quoted(relations[links[k].relation]),
                          quoted(names.at(links[k].tail)), scores[k], known[k]);
    write_file(path, text);
  });
}

}  // namespace espalier
