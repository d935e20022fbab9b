#include "espalier/graph/rewrite_graph.hpp"

#include <limits>
#include <utility>

#include "chosen_links.hpp"
#include "copy_contents.hpp"
#include "edge_tables.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/graph/graph_writer.hpp"

namespace espalier {

namespace {

constexpr const char* kCleaning = "prepare";

// Only entries that stay.
template <class Index>
void keep_entries(Csr<Index>& rows, const ChosenLinks<Index>& links) {
  std::int64_t kept = 0;
  const bool weighted = rows.has_values();
  Buffer<std::int64_t> indptr(rows.rows + 1, 0);
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    for (auto e = rows.row_begin(row); e < rows.row_end(row); ++e) {
      if (!links.stays(e)) continue;
      rows.indices[kept] = rows.indices[e];
      if (weighted) rows.values[kept] = rows.values[e];
      ++kept;
    }
    indptr[row + 1] = kept;
  }
  rows.indptr = std::move(indptr);
  rows.indices.resize(kept);
  if (weighted) rows.values.resize(kept);
}

template <class Index>
class Rewrite {
 public:
  Rewrite(const Communicator& comm, const GraphFile& file, const RewriteOptions& options, Schema schema,
          std::vector<std::uint8_t> reversed)
      : comm_(comm),
        file_(file),
        options_(options),
        schema_(std::move(schema)),
        reversed_(std::move(reversed)) {}

  RewriteCounts run(const Destination& output) {
    raw_ = file_.read_rows<Index>(mine().begin, mine().end);
    count_and_check(comm_, file_, raw_);
    if (options_.clean)
      clean();
    else
      set_as_it_is();
    if (options_.links) links_.emplace(comm_, file_, schema_, *options_.links, placed_, *tables_);
    GraphWriter writer(comm_, output);
    write(writer);
    return counts_;
  }

 private:
  RowRange mine() const { return even_range(file_.info().nodes, comm_.size(), comm_.rank()); }

  // Collective, as all of these.
  void clean() {
    const auto& options = *options_.clean;
    tables_.emplace(comm_, file_, raw_);
    placed_ = tables_->merge(options, counts_.clean);
    raw_.values = {};
    if (options.symmetrise)
      counts_.clean.reversed = add_reverses(comm_, file_.info().schema, mine(), reversed_, placed_);
    if (options.renumbers()) {
      vertices_.emplace(renumber(placed_));
      schema_ = Schema(vertices_->nodes());
    }
    counts_.clean.nodes = schema_.nodes();
    tables_->follow(placed_);
  }

  // The file's rows: only links are left out.
  void set_as_it_is() {
    placed_.rows = std::move(raw_);
    tables_.emplace(comm_, file_, placed_.rows);
  }

  RenumberedVertices renumber(PlacedRows<Index>& placed) {
    VertexFacts facts;
    for (std::int64_t v = 0; v < placed.rows.rows; ++v) facts.degrees.push_back(placed.rows.row_size(v));
    if (options_.clean->largest_component || options_.clean->order == RowOrder::kComponent)
      facts.components = connected_components(comm_, placed.rows);
    const auto nodes = file_.info().nodes;
    auto vertices = number_vertices(comm_, nodes, facts, *options_.clean, counts_.clean.components);
    counts_.clean.gives_ids = file_.info().types[0].ids == IdKind::kNone;
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

  void write(GraphWriter& writer) {
    const auto& info = file_.info();
    if (info.typed) writer.write_schema(schema_);
    for (int r = 0; r < std::ssize(info.edge_features); ++r) {
      if (!tables_->says_something(r)) continue;
      auto places = entries_of(info.schema, placed_.rows, r);
      if (links_) std::erase_if(places, [&](std::int64_t e) { return !links_->stays(e); });
      tables_->write(r, placed_, places, writer);
    }
    if (links_) {
      counts_.links = links_->counts();
      links_->write(writer);
      keep_entries(placed_.rows, *links_);
      counts_.links.edges = comm_.all_reduce(placed_.rows.entries(), Reduction::kSum, kCleaning);
    }
    writer.write_adjacency(placed_.rows);
    const bool directed = is_directed(placed_.rows);
    links_.reset();
    placed_ = {};
    const auto* vertices = vertices_ ? &*vertices_ : nullptr;
    copy_vertices(comm_, file_, vertices, writer);
    copy_links(comm_, file_, vertices, writer);
    auto source = info.source;
    const auto add = [&](const std::string& words) { source += (source.empty() ? "" : "; ") + words; };
    if (options_.clean) add(options_.clean->words);
    if (options_.links) add(options_.links->words);
    writer.commit({info.name, source, directed});
  }

  bool is_directed(const Csr<Index>& rows) const {
    if (file_.info().typed) return file_.info().directed.value_or(true);
    if (options_.links) return !counts_.links.pairs;
    if (options_.clean->symmetrise) return false;
    const auto first = even_range(schema_.nodes(), comm_.size(), comm_.rank()).begin;
    return comm_.all_reduce(asymmetry_of(rows, first), Reduction::kSum, kCleaning) != 0;
  }

  const Communicator& comm_;
  const GraphFile& file_;
  const RewriteOptions& options_;
  Schema schema_;                       // of the new file
  std::vector<std::uint8_t> reversed_;  // [relations] do their edges get reverses?
  Csr<Index> raw_;                      // as they stand in the file, of this rank's even range
  std::optional<EdgeTables<Index>> tables_;
  PlacedRows<Index> placed_;
  std::optional<RenumberedVertices> vertices_;
  std::optional<ChosenLinks<Index>> links_;
  RewriteCounts counts_;
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

RewriteCounts rewrite_graph(const Communicator& comm, const GraphFile& file, const RewriteOptions& options,
                            const Destination& output) {
  const auto& info = file.info();
  ESPALIER_CHECK(file.view().apart, "relations of {} are merged", file.path());
  ESPALIER_CHECK(file.view().repeats == (options.clean && options.clean->drop_duplicates), "repeats of {}",
                 file.path());
  std::vector<std::uint8_t> reversed;
  Schema schema;
  agree(comm, [&] {
    if (options.clean) {
      check_options(file, *options.clean);
      reversed = reversed_relations(file, *options.clean);
    }
    if (options.links && info.links.exist)
      input_error("graph file {}: has links already (/links); prepare the graph that it was made from",
                  file.path());
    schema = options.links ? declare_inverses(file, *options.links) : info.schema;
  });
  const auto most = std::max(info.columns, info.nodes);
  return info.wide_indices || most > std::numeric_limits<std::int32_t>::max()
             ? Rewrite<std::int64_t>(comm, file, options, schema, std::move(reversed)).run(output)
             : Rewrite<std::int32_t>(comm, file, options, schema, std::move(reversed)).run(output);
}

}  // namespace espalier
