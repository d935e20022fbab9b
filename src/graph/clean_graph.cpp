#include "espalier/graph/clean_graph.hpp"

#include <limits>
#include <utility>

#include "copy_contents.hpp"
#include "edge_tables.hpp"
#include "espalier/base/mix.hpp"
#include "espalier/comm/agree.hpp"
#include "espalier/graph/components.hpp"
#include "espalier/graph/graph_writer.hpp"
#include "merged_rows.hpp"
#include "placed_entries.hpp"

namespace espalier {

namespace {

constexpr const char* kCleaning = "prepare";

// Does each edge have its reverse? By hashes of all edges, 64 bits.
template <class Index>
bool is_symmetric(const Communicator& comm, const RowRange& range, const Csr<Index>& rows) {
  std::uint64_t difference = 0;
  for (std::int64_t v = 0; v < rows.rows; ++v)
    for (const auto u : rows.row_indices(v))
      difference += absorb(absorb(0, range.begin + v), u) - absorb(absorb(0, u), range.begin + v);
  return comm.all_reduce(difference, Reduction::kSum, kCleaning) == 0;
}

template <class Index>
class Cleaner {
 public:
  Cleaner(const Communicator& comm, const GraphFile& file, const CleanOptions& options,
          std::vector<std::uint8_t> reversed)
      : comm_(comm), file_(file), options_(options), reversed_(std::move(reversed)) {}

  CleanCounts run(const Destination& output) {
    const auto& info = file_.info();
    auto raw = file_.read_rows<Index>(mine().begin, mine().end);
    count_and_check(comm_, file_, raw);
    const auto weights = std::exchange(raw.values, {});
    const auto merged = merge_rows(info.schema, mine(), raw, options_.drop_loops);
    const EdgeTables<Index> tables(comm_, file_, raw, merged, options_.repeats);
    PlacedRows<Index> placed{merged.rows, tables.origins()};
    count(merged);
    if (options_.symmetrise) counts_.reversed = add_reverses(comm_, info.schema, mine(), reversed_, placed);
    std::optional<RenumberedVertices> vertices;
    if (options_.renumbers()) vertices.emplace(renumber(placed));
    GraphWriter writer(comm_, output);
    if (info.typed) writer.write_schema(info.schema);
    if (info.weighted || options_.repeats == Repeats::kCount) tables.set_weights(weights, placed);
    writer.write_adjacency(placed.rows);
    tables.write(placed, writer);
    copy_vertices(comm_, file_, vertices ? &*vertices : nullptr, writer);
    copy_links(comm_, file_, vertices ? &*vertices : nullptr, writer);
    counts_.nodes = vertices ? vertices->nodes() : info.nodes;
    writer.commit({info.name, info.source + (info.source.empty() ? "" : "; ") + options_.words,
                   is_directed(placed.rows)});
    return counts_;
  }

 private:
  RowRange mine() const { return even_range(file_.info().nodes, comm_.size(), comm_.rank()); }

  void count(const MergedRows<Index>& merged) {
    std::array<std::int64_t, 3> counts = {merged.loops, merged.repeated, merged.places};
    comm_.all_reduce(std::span<std::int64_t>(counts), Reduction::kSum, kCleaning);
    counts_.loops = counts[0];
    counts_.repeated = counts[1];
    counts_.places = counts[2];
  }

  RenumberedVertices renumber(PlacedRows<Index>& placed) {
    VertexFacts facts;
    for (std::int64_t v = 0; v < placed.rows.rows; ++v) facts.degrees.push_back(placed.rows.row_size(v));
    if (options_.largest_component || options_.order == RowOrder::kComponent)
      facts.components = connected_components(comm_, placed.rows);
    const auto nodes = file_.info().nodes;
    auto vertices = number_vertices(comm_, nodes, facts, options_, counts_.components);
    counts_.gives_ids = file_.info().types[0].ids == IdKind::kNone;
    // Rows that are dropped have no entry that stays.
    const auto& numbers = vertices.numbers();
    Buffer<std::int64_t> columns(placed.rows.indices.begin(), placed.rows.indices.end());
    columns = vertices.numbers_of(columns);
    Buffer<PlacedEntry<Index>> entries;
    exchange_entries<PlacedEntry<Index>>(
        comm_, vertices.nodes(), placed.rows, kToRows,
        [&](std::int64_t row, std::int64_t e, auto& sent) {
          if (numbers[row] != kDropped)
            sent.push_back(
                {static_cast<Index>(numbers[row]), static_cast<Index>(columns[e]), placed.origins[e]});
        },
        [&](const auto&, const auto&, const auto& received) {
          entries.insert(entries.end(), received.data.begin(), received.data.end());
        });
    placed = rows_of(entries, even_range(vertices.nodes(), comm_.size(), comm_.rank()), vertices.nodes());
    return vertices;
  }

  bool is_directed(const Csr<Index>& rows) const {
    if (file_.info().typed) return file_.info().directed.value_or(true);
    return !options_.symmetrise &&
           !is_symmetric(comm_, even_range(counts_.nodes, comm_.size(), comm_.rank()), rows);
  }

  const Communicator& comm_;
  const GraphFile& file_;
  const CleanOptions& options_;
  std::vector<std::uint8_t> reversed_;  // [relations] do their edges get reverses?
  CleanCounts counts_;
};

// ---- what this graph has no meaning for ----

// Which relations get reverses. Throws UserError(kUsage).
std::vector<std::uint8_t> reversed_relations(const GraphFile& file, const CleanOptions& options) {
  const auto& schema = file.info().schema;
  std::vector<std::uint8_t> reversed(schema.relations().size(), 0);
  if (!options.symmetrise) return reversed;
  for (int r = 0; r < std::ssize(reversed); ++r) {
    const auto& of = schema.relations()[r];
    if (of.inverse >= 0 && of.inverse != r) continue;
    if (of.source != of.target)
      usage_error(
          "--symmetrise: {} joins two types, so its edges have no reverse in it; import the graph with "
          "inverse relations",
          schema.full_name(r));
    reversed[r] = 1;
  }
  if (std::ranges::count(reversed, 1) == 0)
    usage_error("--symmetrise: each relation of {} has an inverse, with all reverses; leave it out",
                file.path());
  return reversed;
}

void check_options(const GraphFile& file, const CleanOptions& options) {
  if (file.info().typed && options.renumbers())
    usage_error(
        "{}: {} has vertex types, whose vertices keep their numbers; --drop-loops, --drop-duplicates and "
        "--symmetrise are possible",
        options.largest_component ? "--largest-component" : "--relabel", file.path());
  if (options.symmetrise && file.info().links.exist)
    usage_error(
        "--symmetrise: {} has links (/links), and the reverse of an edge may be one that is to be found; "
        "prepare the graph that it was made from, with --symmetrise and --split-links together",
        file.path());
}

}  // namespace

CleanCounts clean_graph(const Communicator& comm, const GraphFile& file, const CleanOptions& options,
                        const Destination& output) {
  const auto& info = file.info();
  ESPALIER_CHECK(file.view().apart, "relations of {} are merged", file.path());
  ESPALIER_CHECK(file.view().repeats == options.drop_duplicates, "repeats of {}", file.path());
  std::vector<std::uint8_t> reversed;
  agree(comm, [&] {
    check_options(file, options);
    reversed = reversed_relations(file, options);
  });
  const auto most = std::max(info.columns, info.nodes);
  return info.wide_indices || most > std::numeric_limits<std::int32_t>::max()
             ? Cleaner<std::int64_t>(comm, file, options, std::move(reversed)).run(output)
             : Cleaner<std::int32_t>(comm, file, options, std::move(reversed)).run(output);
}

}  // namespace espalier
