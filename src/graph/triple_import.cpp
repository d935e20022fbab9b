#include "espalier/graph/triple_import.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <deque>
#include <filesystem>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>

#include "edge_pieces.hpp"
#include "espalier/base/counted.hpp"
#include "espalier/base/index_type.hpp"
#include "espalier/base/log.hpp"
#include "espalier/file/csv.hpp"
#include "espalier/file/input_files.hpp"
#include "espalier/graph/edge_source.hpp"
#include "espalier/graph/graph_writer.hpp"
#include "first_rank.hpp"
#include "open_graph_file.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

constexpr const char* kTriples = "import";

// ---- the files ----

/// In the order of entries of a matrix whose rows are tails. 12 bytes: names of 2^31 entities would
/// be in memory beside them.
struct Triple {
  std::int32_t tail = 0;
  std::int32_t relation = 0;
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

// Returns how many the file has.
std::int64_t read_file(const std::string& path, Names& entities, Names& relations, Buffer<Triple>& triples) {
  if (path.empty()) return 0;
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
    triples.push_back({static_cast<std::int32_t>(tail), static_cast<std::int32_t>(relation),
                       static_cast<std::int32_t>(head)});
  }
  if (const std::span<const Triple> all = triples; all.size() > 1) {
    const auto alone = [&](auto part) {
      return std::ranges::none_of(all.subspan(1), [&](const Triple& t) { return part(t) == part(all[0]); });
    };
    if (alone([](const Triple& t) { return t.head; }) && alone([](const Triple& t) { return t.relation; }) &&
        alone([](const Triple& t) { return t.tail; }))
      log::warning(
          "{}:1: neither its relation nor its entities are in another line; if it is a header, leave "
          "it out: the first line is read as all others are",
          path);
  }
  return std::ssize(triples);
}

// An empty path is a split without triples. Throws UserError(kInput) with file and line.
TripleTables read_triples(const std::array<std::string, 3>& files) {
  TripleTables tables;
  Names entities, relations;
  for (std::size_t s = 0; s < files.size(); ++s)
    tables.given[s] = read_file(files[s], entities, relations, tables.splits[s]);
  const auto entity = entities.sort(tables.entities), relation = relations.sort(tables.relations);
  for (auto& triples : tables.splits) {
    for (auto& of : triples) of = {entity[of.tail], relation[of.relation], entity[of.head]};
    std::ranges::sort(triples);
    const auto repeated = std::ranges::unique(triples);
    triples.erase(repeated.begin(), repeated.end());
  }
  return tables;
}

// ---- the schema ----

// A name that a graph's relation can have, and that no other has yet.
std::string free_name(const std::string& name, std::set<std::string>& taken) {
  auto good = name;
  std::ranges::replace_if(
      good, [](char letter) { return !is_in_names(letter); }, '_');
  auto candidate = good;
  for (int k = 2; !taken.insert(candidate).second; ++k) candidate = fmt::format("{}_{}", good, k);
  return candidate;
}

Schema schema_of(const TripleTables& tables, const TripleOptions& options) {
  const auto count = static_cast<int>(tables.relations.size());
  const auto most = options.inverses ? kMostRelations / 2 : kMostRelations;
  if (count > most)
    input_error(
        "{}: the triples are of {} relations, but a graph has at most {}{}; give --ignore-relations for "
        "links of "
        "so many in a graph without relations",
        options.files[0], count, kMostRelations,
        options.inverses ? " with their inverses (--no-inverse leaves these out)" : "");
  std::set<std::string> taken;
  std::vector<Relation> relations;
  for (const auto& name : tables.relations)
    relations.push_back(
        {free_name(name, taken), 0, 0, options.inverses ? count + static_cast<int>(relations.size()) : -1});
  for (int r = 0; options.inverses && r < count; ++r)
    relations.push_back({free_name("rev_" + relations[r].name, taken), 0, 0, r});
  return {{{"entity", 0, std::ssize(tables.entities)}}, std::move(relations)};
}

// ---- the edges ----

// Those of train, where they lie.
class TripleEdges : public EdgeSource {
 public:
  TripleEdges(const Buffer<Triple>& triples, const std::optional<Schema>& schema)
      : triples_(triples), schema_(schema) {}
  bool weighted() const override { return false; }
  std::string name() const override { return "the triples of train"; }
  std::string place(std::int64_t edge) const override { return fmt::format("edge {}", edge); }
  void read(const std::function<void(const EdgePiece&)>& use) const override {
    EdgePieces pieces(false, use);
    for (const auto& [tail, relation, head] : triples_) {
      pieces.add(schema_ ? schema_->column(relation, head) : head, tail, 1);
      const int inverse = schema_ ? schema_->relations()[relation].inverse : -1;
      if (inverse >= 0) pieces.add(schema_->column(inverse, tail), head, 1);
    }
    pieces.finish();
  }

 private:
  const Buffer<Triple>& triples_;
  const std::optional<Schema>& schema_;
};

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

// ---- all of it ----

// Collective. Rank 0 has the triples.
template <class Index>
void write_edges(const Communicator& comm, const TripleTables& tables, const std::optional<Schema>& schema,
                 GraphWriter& writer) {
  const TripleEdges triples(tables.splits[0], schema);
  const SharedEdges edges(comm, comm.rank() == 0 ? &triples : nullptr);
  const auto n = agreed(comm, std::ssize(tables.entities));
  EdgeCounts counts;
  const auto rows =
      build_rows<Index>(edges, count_entries(edges, n, {}, schema ? schema->columns() : n), {}, counts);
  log::info("edges      {}{}", counted(counts.given - counts.merged, "entry"),
            schema ? " in " + counted(std::ssize(schema->relations()), "relation") : "");
  writer.write_adjacency(rows);
}

// Collective.
void write_links(const Communicator& comm, const TripleOptions& options, const TripleTables& tables,
                 GraphWriter& writer) {
  LinkInfo info;
  info.names = broadcast_texts(comm, tables.relations);
  if (!options.ignore_relations)
    for (int r = 0; r < std::ssize(info.names); ++r) info.graph_relations.push_back(r);
  writer.write_link_relations(info);
  for (const auto split : {Split::kTrain, Split::kValid, Split::kTest}) {
    if (options.files[static_cast<std::size_t>(split)].empty()) continue;
    const auto& triples = tables.splits[static_cast<std::size_t>(split)];
    LinkColumns links{std::ssize(triples),
                      [&](std::int64_t k) { return triples[k].head; },
                      [&](std::int64_t k) { return triples[k].tail; },
                      {}};
    if (info.names.size() > 1) links.relations = [&](std::int64_t k) { return triples[k].relation; };
    writer.write_links(split, links);
  }
}

}  // namespace

void import_triples(const Communicator& comm, const TripleOptions& options, const OutputFile& output) {
  TripleTables tables;  // rank 0
  std::optional<Schema> schema;
  on_first_rank(comm, [&] {
    refuse_inputs_as_output({options.files.begin(), options.files.end()}, output.path);
    check_output(output);
    tables = read_triples(options.files);
    if (tables.splits[0].empty()) input_error("{}: has no triples", options.files[0]);
    if (!options.ignore_relations) schema = schema_of(tables, options);
    report(tables);
  });
  if (!options.ignore_relations) schema = broadcast_schema(comm, schema);
  GraphWriter writer(comm, output);
  if (schema) writer.write_schema(*schema);
  // There are fewer columns than the largest Index.
  const auto columns = agreed(comm, schema ? schema->columns() : std::ssize(tables.entities));
  with_index_type(columns + 1, [&]<class Index>(Index) { write_edges<Index>(comm, tables, schema, writer); });
  writer.write_texts(Column::kIds, 0, tables.entities);
  write_links(comm, options, tables, writer);
  auto name = fs::absolute(options.files[0]).lexically_normal().parent_path().filename().string();
  name = comm.broadcast_text(std::move(name), 0, kTriples);
  auto source = "triples of " + options.files[0];
  for (std::size_t s = 1; s < options.files.size(); ++s)
    if (!options.files[s].empty()) source += ", " + options.files[s];
  writer.commit({name.empty() ? "triples" : name, source, !schema || !options.inverses});
}

}  // namespace espalier
