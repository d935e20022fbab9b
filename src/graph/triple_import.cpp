// Tables of triples (head, relation, tail) by names, as knowledge graphs have them: names become
// numbers, triples links, those of train edges as well.
#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <deque>
#include <filesystem>
#include <limits>
#include <numeric>
#include <set>
#include <string_view>
#include <unordered_map>

#include "described_graph.hpp"
#include "edge_text.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/text.hpp"
#include "espalier/file/csv.hpp"
#include "graph_source.hpp"
#include "open_graph_file.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

constexpr const char* kEntity = "entity";

// ---- the files ----

/// Those of a relation are its edges. 12 bytes: names of 2^31 entities would be in memory beside
/// them.
struct Triple {
  std::int32_t relation = 0;
  std::int32_t tail = 0;
  std::int32_t head = 0;

  friend auto operator<=>(const Triple&, const Triple&) = default;
};

struct TripleTables {
  std::vector<std::string> entities, relations;  ///< names, ascending
  std::array<Buffer<Triple>, 3> splits;          ///< by Split; ascending, each once
  std::array<std::int64_t, 3> given = {};        ///< triples in each file, repeated ones too
};

// Names in the order in which they were met, then in ascending order.
class Names {
 public:
  std::int64_t number_of(std::string_view name) {
    if (const auto found = numbers_.find(name); found != numbers_.end()) return found->second;
    const auto number = std::ssize(names_);
    numbers_.emplace(names_.emplace_back(name), number);
    return number;
  }

  /// Ends the counting: the new number of each old one.
  std::vector<std::int32_t> sort(std::vector<std::string>& sorted) {
    numbers_ = {};  // whose memory goes, too
    std::vector<std::int32_t> order(names_.size()), places(names_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](std::int32_t k) -> const std::string& { return names_[k]; });
    sorted.reserve(names_.size());
    for (std::size_t place = 0; place < order.size(); ++place) {
      places[order[place]] = static_cast<std::int32_t>(place);
      sorted.push_back(std::move(names_[order[place]]));
    }
    return places;
  }

 private:
  std::deque<std::string> names_;  // which stay where they are
  std::unordered_map<std::string_view, std::int64_t> numbers_;
};

std::string_view read_name(CsvReader& csv, const char* what) {
  const auto name = csv.text();
  if (name.empty()) csv.fail("the {} has no name", what);
  if (name.size() > kMostNameLetters)
    csv.fail("the name of the {} has {} letters, expected {} at most", what, name.size(), kMostNameLetters);
  if (name.find('\0') != std::string_view::npos)
    csv.fail("the name of the {} has a zero byte in it: the file is damaged, or no text", what);
  return name;
}

// Is it a line of titles?
bool is_header(std::string_view head, std::string_view relation, std::string_view tail) {
  const auto is = [](std::string_view name, std::string_view title) {
    return std::ranges::equal(
        name, title, [](char a, char b) { return a == b || (a >= 'A' && a <= 'Z' && a - 'A' + 'a' == b); });
  };
  return (is(head, "head") && is(relation, "relation") && is(tail, "tail")) ||
         (is(head, "subject") && is(relation, "predicate") && is(tail, "object"));
}

void read_file(const std::string& path, Names& entities, Names& relations, Buffer<Triple>& triples) {
  CsvReader csv(path);
  while (csv.next_line()) {
    if (csv.line() == 1 && csv.contains('\t')) csv.separate_by('\t');
    if (csv.count_fields() != 3)
      csv.fail("has {}, expected three: head, relation, tail, apart by tabs or by commas as in line 1",
               counted(csv.count_fields(), "field"));
    const auto head_name = read_name(csv, "head"), relation_name = read_name(csv, "relation"),
               tail_name = read_name(csv, "tail");
    if (csv.line() == 1 && is_header(head_name, relation_name, tail_name))
      csv.fail("is a header, not a triple; leave it out: the first line is read as all others are");
    const auto head = entities.number_of(head_name), relation = relations.number_of(relation_name);
    if (relation >= kMostLinkRelations)
      csv.fail("is of relation number {}, but a file has at most {}; is the second field the relation?",
               relation + 1, kMostLinkRelations);
    const auto tail = entities.number_of(tail_name);
    if (std::max(head, tail) >= std::numeric_limits<std::int32_t>::max())
      csv.fail("is of entity number {}, but there may be 2^31 - 1 at most", std::max(head, tail) + 1);
    triples.push_back({static_cast<std::int32_t>(relation), static_cast<std::int32_t>(tail),
                       static_cast<std::int32_t>(head)});
  }
  if (const std::span<const Triple> all = triples; all.size() > 1) {
    const auto alone = [&](auto part) { return std::ranges::count(all, all[0].*part, part) == 1; };
    if (alone(&Triple::head) && alone(&Triple::relation) && alone(&Triple::tail))
      log::warning(
          "{}:1: neither its relation nor its entities are in another line; if it is a header, leave "
          "it out: the first line is read as all others are",
          path);
  }
}

// An empty path is a split without triples. Throws UserError(kInput) with file and line.
TripleTables read_triples(const std::array<std::string, 3>& files) {
  TripleTables tables;
  Names entities, relations;
  for (std::size_t s = 0; s < files.size(); ++s) {
    if (!files[s].empty()) read_file(files[s], entities, relations, tables.splits[s]);
    tables.given[s] = std::ssize(tables.splits[s]);
  }
  const auto entity = entities.sort(tables.entities), relation = relations.sort(tables.relations);
  for (auto& triples : tables.splits) {
    for (auto& of : triples) of = {relation[of.relation], entity[of.tail], entity[of.head]};
    std::ranges::sort(triples);
    const auto repeated = std::ranges::unique(triples);
    triples.erase(repeated.begin(), repeated.end());
  }
  return tables;
}

// ---- what was read, in words ----

void report_leaks(const TripleTables& tables, std::size_t split, std::size_t of) {
  std::vector<Triple> both;
  std::ranges::set_intersection(tables.splits[split], tables.splits[of], std::back_inserter(both));
  if (!both.empty())
    log::warning("{} of {} {} in {}, too: what is asked there was told before",
                 counted(std::ssize(both), "triple"), kSplitNames[split], both.size() == 1 ? "is" : "are",
                 kSplitNames[of]);
}

void report(const TripleTables& tables) {
  log::info("triples    train {}, valid {}, test {}: {}, {}", tables.splits[0].size(),
            tables.splits[1].size(), tables.splits[2].size(),
            counted(std::ssize(tables.entities), "entity", "entities"),
            counted(std::ssize(tables.relations), "relation"));
  for (std::size_t s = 0; s < tables.given.size(); ++s)
    if (const auto repeated = tables.given[s] - std::ssize(tables.splits[s]); repeated > 0)
      log::info("duplicates {}: {} an earlier one; each triple is one link", kSplitNames[s],
                counted(repeated, "line repeats", "lines repeat"));
  report_leaks(tables, 1, 0);
  report_leaks(tables, 2, 0);
  report_leaks(tables, 2, 1);
  std::vector<bool> entity(tables.entities.size(), false), relation(tables.relations.size(), false);
  for (const auto& of : tables.splits[0]) entity[of.head] = entity[of.tail] = relation[of.relation] = true;
  if (const auto unknown = std::ranges::count(entity, false); unknown > 0)
    log::info("entities   {} in no triple of train: {} without an edge", counted(unknown, "is", "are"),
              unknown == 1 ? "a vertex" : "vertices");
  if (const auto unknown = std::ranges::count(relation, false); unknown > 0)
    log::warning("{} in no triple of train, so nothing is learnt of {}",
                 counted(unknown, "relation is", "relations are"), unknown == 1 ? "it" : "them");
}

// ---- the description ----

// Edges, where they lie.
class TripleEdges : public EdgeSource {
 public:
  explicit TripleEdges(std::span<const Triple> triples) : triples_(triples) {}
  bool weighted() const override { return false; }
  std::string name() const override { return "the triples of train"; }
  std::string place(std::int64_t edge) const override { return fmt::format("triple {}", edge); }
  void read(const std::function<void(const EdgePiece&)>& use) const override {
    EdgePieces pieces(false, use);
    for (const auto& of : triples_) pieces.add(of.head, of.tail, 1);
    pieces.finish();
  }

 private:
  std::span<const Triple> triples_;
};

// A name that a graph's relation can have, and that no other has yet.
std::string free_name(const std::string& name, std::set<std::string>& taken) {
  auto good = name;
  std::ranges::replace_if(
      good, [](char letter) { return !is_in_names(letter); }, '_');
  auto candidate = good;
  for (int k = 2; !taken.insert(candidate).second; ++k) candidate = fmt::format("{}_{}", good, k);
  return candidate;
}

DescribedRelation relation_of(Triplet triplet, std::span<const Triple> triples) {
  const auto edges = std::make_shared<TripleEdges>(triples);
  return {.triplet = std::move(triplet), .by = {}, .edges = {{.file = {}, .source = edges}}};
}

// Of train, each with an inverse.
void add_relations(DescribedGraph& graph, const TripleTables& tables, bool inverses) {
  const auto count = static_cast<int>(tables.relations.size());
  if (count > (inverses ? kMostRelations / 2 : kMostRelations))
    input_error(
        "{}: the triples are of {} relations, but a graph has at most {}{}; give --ignore-relations for "
        "links of so many in a graph without relations",
        graph.place, count, kMostRelations,
        inverses ? " with their inverses (--no-inverse leaves these out)" : "");
  std::set<std::string> taken;
  for (int r = 0; r < count; ++r) {
    const auto triples = std::ranges::equal_range(tables.splits[0], r, {}, &Triple::relation);
    const auto name = free_name(tables.relations[r], taken);
    graph.relations.push_back(relation_of({kEntity, name, kEntity}, triples));
    graph.links->graph_relations.push_back(r);
  }
  for (auto& of : graph.relations)
    if (inverses) of.triplet.inverse = free_name("rev_" + of.triplet.relation, taken);
}

// In the order of (tail, relation, head), in which those of one tail stand.
Links links_of(const Buffer<Triple>& triples, std::int64_t entities, bool relations) {
  std::vector<std::int64_t> places(entities + 1, 0);
  for (const auto& of : triples) ++places[of.tail + 1];
  std::partial_sum(places.begin(), places.end(), places.begin());
  Links links;
  links.heads.resize(triples.size());
  links.tails.resize(triples.size());
  links.relations.resize(relations ? triples.size() : 0);
  for (const auto& of : triples) {
    const auto k = places[of.tail]++;
    links.heads[k] = of.head;
    links.tails[k] = of.tail;
    if (relations) links.relations[k] = of.relation;
  }
  return links;
}

DescribedGraph describe_triples(const TripleFiles& options) {
  const auto& files = options.files;
  const auto tables = std::make_shared<TripleTables>(read_triples(files));
  const auto& train = tables->splits[0];
  if (train.empty()) input_error("{}: has no triples", files[0]);
  const auto folder = fs::absolute(files[0]).lexically_normal().parent_path().filename().string();
  DescribedGraph graph;
  graph.about = {folder.empty() ? "triples" : folder, "triples of " + files[0], options.ignore_relations};
  graph.options.place = graph.place = files[0];
  auto& type = graph.types.emplace_back();
  type.count = std::ssize(tables->entities);
  type.names = [tables] { return std::move(tables->entities); };
  graph.links.emplace().relations = tables->relations;
  for (std::size_t s = 0; s < files.size(); ++s) {
    if (files[s].empty()) continue;
    if (s > 0) graph.about.source += ", " + files[s];
    graph.links->splits[s].emplace().read = [tables, s, count = *type.count] {
      return links_of(tables->splits[s], count, tables->relations.size() > 1);
    };
  }
  if (options.ignore_relations) {
    graph.line = "pair";
    graph.relations = {relation_of({}, train)};
  } else {
    graph.line = "triple";
    type.name = kEntity;
    add_relations(graph, *tables, options.inverses);
  }
  report(*tables);
  return graph;
}

}  // namespace

ImportPlan plan_of(const TripleFiles& files) {
  return {.describe = [=] { return describe_triples(files); },
          .inputs = {files.files.begin(), files.files.end()}};
}

}  // namespace espalier
