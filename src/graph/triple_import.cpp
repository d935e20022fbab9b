#include "espalier/graph/triple_import.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>
#include <sstream>

#include "broadcast_schema.hpp"
#include "edge_pieces.hpp"
#include "espalier/base/counted.hpp"
#include "espalier/base/log.hpp"
#include "espalier/graph/edge_source.hpp"
#include "espalier/graph/graph_writer.hpp"
#include "first_rank.hpp"
#include "input_files.hpp"
#include "triple_files.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

constexpr const char* kTriples = "import";

// ---- the schema ----

// A name that a graph's relation can have, and that no other has yet.
std::string free_name(const std::string& name, std::set<std::string>& taken) {
  std::string good;
  for (const char letter : name) {
    const bool allowed = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                         (letter >= '0' && letter <= '9') || letter == '_' || letter == '-';
    good += allowed ? letter : '_';
  }
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

template <class Index>
Csr<Index> build(const TripleTables& tables, const std::optional<Schema>& schema) {
  const TripleEdges edges(tables.splits[0], schema);
  const auto n = std::ssize(tables.entities);
  EdgeCounts counts;
  return build_rows<Index>(edges, count_wide_entries(edges, n, schema ? schema->columns() : n), {}, counts);
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

// ---- all of it ----

std::vector<std::string> broadcast_names(const Communicator& comm, const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += name + '\n';
  std::istringstream lines(comm.broadcast_text(std::move(text), 0, kTriples));
  std::vector<std::string> all;
  for (std::string name; std::getline(lines, name);) all.push_back(name);
  return all;
}

class TripleImport {
 public:
  TripleImport(const Communicator& comm, const TripleOptions& options, const OutputFile& output)
      : comm_(comm), options_(options) {
    on_first_rank(comm, [&] {
      refuse_inputs_as_output({options.files.begin(), options.files.end()}, output.path);
      check_output(output);
      tables_ = read_triples(options.files);
      if (tables_.splits[0].empty()) input_error("{}: has no triples", options.files[0]);
      if (!options.ignore_relations) schema_ = schema_of(tables_, options);
      report(tables_);
    });
    if (!options.ignore_relations) schema_ = broadcast_schema(comm, schema_);
    writer_.emplace(comm, output);
    if (schema_) writer_->write_schema(*schema_);
  }

  template <class Index>
  void write_edges() {
    Csr<Index> rows;
    on_first_rank(comm_, [&] {
      rows = build<Index>(tables_, schema_);
      log::info("edges      {}{}", counted(rows.entries(), "entry"),
                schema_ ? " in " + counted(std::ssize(schema_->relations()), "relation") : "");
    });
    writer_->write_adjacency(rows);
  }

  void write_all() {
    auto most = schema_ ? schema_->columns() : std::ssize(tables_.entities);
    comm_.broadcast(&most, 1, 0, kTriples);
    most < std::numeric_limits<std::int32_t>::max() ? write_edges<std::int32_t>()
                                                    : write_edges<std::int64_t>();
    writer_->write_ids(tables_.entities);
    write_links();
    auto name = fs::absolute(options_.files[0]).lexically_normal().parent_path().filename().string();
    name = comm_.broadcast_text(std::move(name), 0, kTriples);
    auto source = "triples of " + options_.files[0];
    for (std::size_t s = 1; s < options_.files.size(); ++s)
      if (!options_.files[s].empty()) source += ", " + options_.files[s];
    writer_->commit({name.empty() ? "triples" : name, source, !schema_ || !options_.inverses});
  }

 private:
  void write_links() {
    LinkInfo info;
    info.names = broadcast_names(comm_, tables_.relations);
    if (schema_)
      for (int r = 0; r < std::ssize(info.names); ++r) info.graph_relations.push_back(r);
    writer_->write_link_relations(info);
    for (const auto split : {Split::kTrain, Split::kValid, Split::kTest}) {
      if (options_.files[static_cast<std::size_t>(split)].empty()) continue;
      const auto& triples = tables_.splits[static_cast<std::size_t>(split)];
      LinkColumns links{std::ssize(triples),
                        [&](std::int64_t k) { return triples[k].head; },
                        [&](std::int64_t k) { return triples[k].tail; },
                        {}};
      if (info.names.size() > 1) links.relations = [&](std::int64_t k) { return triples[k].relation; };
      writer_->write_links(split, links);
    }
  }

  const Communicator& comm_;
  const TripleOptions& options_;
  TripleTables tables_;  // rank 0
  std::optional<Schema> schema_;
  std::optional<GraphWriter> writer_;
};

}  // namespace

void import_triples(const Communicator& comm, const TripleOptions& options, const OutputFile& output) {
  TripleImport import(comm, options, output);
  import.write_all();
}

}  // namespace espalier
