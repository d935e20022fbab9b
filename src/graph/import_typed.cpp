#include "import_typed.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "broadcast_schema.hpp"
#include "edge_report.hpp"
#include "espalier/base/clock.hpp"
#include "espalier/base/log.hpp"
#include "first_rank.hpp"
#include "import_edge_features.hpp"
#include "import_vertices.hpp"
#include "ogb_tables.hpp"
#include "typed_edges.hpp"

namespace espalier {

namespace {

// ---- what became of the edges, in words ----

template <class Index>
std::vector<std::int64_t> entries_by_relation(const Schema& schema, const Csr<Index>& rows) {
  std::vector<std::int64_t> entries(schema.relations().size());
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    int relation = 0;
    for (const auto column : rows.row_indices(row)) {
      while (column >= schema.begin(relation + 1)) ++relation;
      ++entries[relation];
    }
  }
  return entries;
}

template <class Index>
void report_relations(const Schema& schema, const TypedEdges& edges, const Csr<Index>& rows,
                      const EdgeReport& of, int triplets) {
  const auto entries = entries_by_relation(schema, rows);
  for (int r = 0; r < std::ssize(entries); ++r) {
    std::string line = counted(entries[r], "entry");
    std::int64_t repeated = 0;
    if (r < triplets) {
      repeated = edges.given(r) - edges.dropped(r) - entries[r];
      line = counted(edges.given(r), "line, ", "lines, ") + line;
      if (edges.dropped(r) > 0)
        line += ", " + counted(edges.dropped(r), "self loop", "self loops") + " dropped";
    }
    log::info("relation   {}: {}", schema.full_name(r), line);
    if (repeated > 0)
      report_repeated(fmt::format("{}: {} an earlier one", schema.full_name(r),
                                  counted(repeated, "line repeats", "lines repeat")),
                      of, "make them edges of two relations, or give --duplicates count");
  }
}

// For each entry of a relation, in the order of the matrix, the place in the list of edges.
template <class Index>
Buffer<std::int64_t> edges_of_entries(const Schema& schema, const Csr<Index>& rows, int relation,
                                      const Buffer<std::int64_t>& edges) {
  Buffer<std::int64_t> of_relation;
  const auto& target = schema.types()[schema.relations()[relation].target];
  for (auto row = target.begin; row < target.end; ++row) {
    const auto columns = rows.row_indices(row);
    auto e = std::ranges::lower_bound(columns, schema.begin(relation)) - columns.begin();
    for (; e < std::ssize(columns) && columns[e] < schema.begin(relation + 1); ++e)
      of_relation.push_back(edges[rows.row_begin(row) + e]);
  }
  return of_relation;
}

// ---- all of it ----

class TypedImport {
 public:
  TypedImport(const Communicator& comm, const TypedImportOptions& options, const OutputFile& output,
              const std::function<std::unique_ptr<TypedFolder>()>& open)
      : comm_(comm), options_(options) {
    on_first_rank(comm, [&] {
      folder_ = open();
      description_ = folder_->describe();
      schema_ = schema_of(*folder_, options.folder, options.inverses);
    });
    schema_ = broadcast_schema(comm, schema_);
    // Inverses stand behind them.
    triplets_ = static_cast<int>(schema_->relations().size()) / (options.inverses ? 2 : 1);
    edge_rows_.resize(triplets_);
    writer_.emplace(comm, output);
    writer_->write_schema(*schema_);
  }

  void import_edges() {
    const auto most = std::max(schema_->nodes(), schema_->columns());
    most <= std::numeric_limits<std::int32_t>::max() ? edges_of<std::int32_t>() : edges_of<std::int64_t>();
  }
  void import_type(int type);
  void commit() {
    description_.name = comm_.broadcast_text(description_.name, 0, "import");
    description_.source = comm_.broadcast_text(description_.source, 0, "import");
    description_.directed = !options_.inverses;
    writer_->commit(description_);
  }
  int types() const { return static_cast<int>(schema_->types().size()); }

 private:
  template <class Index>
  void edges_of();
  template <class Index>
  Csr<Index> build(const TypedEdges& edges) const;
  template <class Index>
  Buffer<std::int64_t> find_features(const TypedEdges& edges, const Csr<Index>& rows);
  template <class Index>
  void write_edge_features(const Csr<Index>& rows, const Buffer<std::int64_t>& first);
  // Columns are no vertices: loops are dropped by now.
  EdgeOptions edge_options() const {
    return {false, false, options_.duplicates, options_.duplicate_features};
  }
  // What rank 0 found.
  std::int64_t agreed(std::int64_t mine) const { return comm_.all_reduce(mine, Reduction::kMax, "import"); }

  const Communicator& comm_;
  const TypedImportOptions& options_;
  std::unique_ptr<TypedFolder> folder_;   // rank 0
  std::optional<TypedEdges> edges_;       // rank 0
  std::vector<GivenFeatures> edge_rows_;  // [triplets]
  GraphDescription description_;
  std::optional<Schema> schema_;
  int triplets_ = 0;  // the first relations of the schema
  std::optional<GraphWriter> writer_;
};

template <class Index>
Csr<Index> TypedImport::build(const TypedEdges& edges) const {
  EdgeCounts counts;
  try {
    return build_rows<Index>(edges, count_wide_entries(edges, schema_->nodes(), schema_->columns()),
                             edge_options(), counts);
  } catch (const DuplicateEdge& duplicate) {
    input_error("{}: repeats {}; choose --duplicates sum, max, first or last to merge them",
                edges.place(duplicate.found().edge), edges.place(duplicate.found().earlier));
  }
}

// Opens what the edges of each triplet have. Returns for each entry of the matrix the entry of the
// edges that it has its features from; empty where there are none.
template <class Index>
Buffer<std::int64_t> TypedImport::find_features(const TypedEdges& edges, const Csr<Index>& rows) {
  if (!options_.edge_features) return {};
  for (int r = 0; r < triplets_; ++r)
    edge_rows_[r] = {folder_->open_edge_features(r, edges.given(r)), edges.given(r)};
  if (std::ranges::none_of(edge_rows_, [](const GivenFeatures& of) { return of.rows != nullptr; })) return {};
  auto first = feature_edges(edges, edge_options(), rows);
  if (!edge_options().adds_features()) return first;
  const auto standing = standing_edges(edges, edge_options(), rows, first);
  for (int r = 0; r < triplets_; ++r) {
    edge_rows_[r].mean = options_.duplicate_features == DuplicateFeatures::kMean;
    edge_rows_[r].standing = edges.of_relation(r, standing, -1);
    for (auto& edge : edge_rows_[r].standing)
      if (edge >= 0) edge = edges.edge_in_file(edge);
  }
  return first;
}

template <class Index>
void TypedImport::edges_of() {
  Csr<Index> rows;
  Buffer<std::int64_t> first;
  on_first_rank(comm_, [&] {
    const double start = now();
    edges_.emplace(*folder_, *schema_, triplets_, options_.drop_self_loops);
    rows = build<Index>(*edges_);
    first = find_features(*edges_, rows);
    log::info("edges      {} in {}, in {:.1f} s", counted(rows.entries(), "entry"),
              counted(std::ssize(schema_->relations()), "relation"), now() - start);
    report_relations(*schema_, *edges_, rows, {edge_options(), rows.has_values(), !first.empty()}, triplets_);
  });
  writer_->write_adjacency(rows);
  write_edge_features(rows, first);
}

// Relation by relation, so that features of one are in memory.
template <class Index>
void TypedImport::write_edge_features(const Csr<Index>& rows, const Buffer<std::int64_t>& first) {
  for (int r = 0; r < triplets_; ++r) {
    std::vector<EntriesOfEdges> into;
    for (const int relation : {r, schema_->relations()[r].inverse})
      if (relation >= 0)
        into.push_back({relation, [&, relation] {
                          auto edges = edges_of_entries(*schema_, rows, relation, first);
                          for (auto& edge : edges) edge = edges_->edge_in_file(edge);
                          return edges;
                        }});
    const auto columns = import_edge_features(comm_, std::move(edge_rows_[r]), options_.half, into, *writer_);
    if (columns > 0)
      log::info("edges of   {}: {} of each", schema_->full_name(r), counted(columns, "feature", "features"));
  }
}

void TypedImport::import_type(int type) {
  const auto& of = schema_->types()[type];
  std::unique_ptr<FeatureRows> rows;
  on_first_rank(comm_, [&] { rows = folder_->open_features(type); });
  const auto columns = import_features(comm_, std::move(rows), of.size(), options_.half, *writer_, type);
  OgbLabels labels;
  const auto names = names_of_splits(options_.split);
  std::vector<std::optional<Splits>> splits(names.size());
  on_first_rank(comm_, [&] {
    labels = folder_->read_labels(type);
    std::string words;
    for (std::size_t k = 0; k < names.size(); ++k) {
      if (!folder_->has_split(type, k)) continue;
      splits[k] = folder_->read_splits(type, labels, k);
      words += "; " + in_words(*splits[k], kept_name(names, k));
    }
    log::info("type       {}: {}, {}{}{}", of.name, counted(of.size(), "vertex"), counted(columns, "feature"),
              labels.columns > 0 ? "; labels: " + in_words(labels) : "", words);
  });
  import_labels(comm_, labels, *writer_, type);
  for (std::size_t k = 0; k < names.size(); ++k)
    if (agreed(splits[k] ? 1 : 0) != 0)
      import_splits(splits[k].value_or(Splits()), *writer_, type, kept_name(names, k));
}

}  // namespace

void import_typed(const Communicator& comm, const TypedImportOptions& options, const OutputFile& output,
                  const std::function<std::unique_ptr<TypedFolder>()>& open) {
  // 1. What is there; the file's types and relations.
  TypedImport import(comm, options, output, open);
  // 2. Edges of all relations, one matrix.
  import.import_edges();
  // 3. Features, labels and splits.
  for (int type = 0; type < import.types(); ++type) import.import_type(type);
  // 4. The file appears.
  import.commit();
}

}  // namespace espalier
