#include "typed_folder.hpp"

#include <algorithm>
#include <optional>

#include "copy_contents.hpp"
#include "edge_pieces.hpp"
#include "espalier/base/clock.hpp"
#include "espalier/base/index_type.hpp"
#include "espalier/base/log.hpp"
#include "first_rank.hpp"
#include "import_edges.hpp"
#include "import_tables.hpp"
#include "ogb_tables.hpp"

namespace espalier {

namespace {

// ---- the edges ----

// Edges of all relations of a folder with types as entries of the wide matrix (schema.hpp), read
// from the folder each time: source is the column, target the row; relation after relation, each in
// the order of its file, and every edge is followed by its inverse where there is one. After the
// first reading it knows what was there.
class TypedEdges : public EdgeSource {
 public:
  /// Of the first `triplets` relations of the schema, which are those of the folder. Loops are
  /// dropped within relations of one type: columns are no vertices, so nobody else can.
  TypedEdges(const TypedFolder& folder, const Schema& schema, int triplets, bool drop_self_loops)
      : folder_(folder), schema_(schema), drop_self_loops_(drop_self_loops), read_(triplets) {}

  void read(const std::function<void(const EdgePiece&)>& use) const override {
    std::int64_t begin = 0;
    for (int r = 0; r < std::ssize(read_); ++r) begin = read_relation(r, begin, use);
  }
  bool weighted() const override { return false; }
  std::string name() const override { return folder_.place(); }
  std::string place(std::int64_t entry) const override {
    const auto [relation, edge] = origin(entry);
    return folder_.edge_place(relation, edge);
  }

  std::int64_t given(int relation) const { return read_[relation].given; }
  std::int64_t dropped(int relation) const { return std::ssize(read_[relation].dropped); }
  /// Of an entry: which edge of its relation's file it is, or the inverse of.
  std::int64_t edge_in_file(std::int64_t entry) const { return origin(entry).second; }
  /// Of something for each entry: the part of one relation's own edges, in the order of its file,
  /// with -1 where an edge was dropped.
  Buffer<std::int64_t> of_relation(int relation, const Buffer<std::int64_t>& entries) const {
    Buffer<std::int64_t> found;
    const auto& of = read_[relation];
    auto dropped = of.dropped.begin();
    auto entry = of.begin;
    for (std::int64_t edge = 0; edge < of.given; ++edge) {
      if (dropped != of.dropped.end() && *dropped == edge) {
        ++dropped;
        found.push_back(-1);
        continue;
      }
      found.push_back(entries[entry]);
      entry += ways(relation);
    }
    return found;
  }

 private:
  struct Read {
    std::int64_t begin = 0;  // its first entry
    std::int64_t given = 0;
    std::vector<std::int64_t> dropped;  // edges of the file, ascending
  };
  // Returns where the entries of the next begin.
  std::int64_t read_relation(int relation, std::int64_t begin,
                             const std::function<void(const EdgePiece&)>& use) const {
    const auto& of = schema_.relations()[relation];
    const auto head_row = schema_.types()[of.source].begin, tail_row = schema_.types()[of.target].begin;
    const bool drops = drop_self_loops_ && of.source == of.target;
    Read read{begin, 0, {}};
    EdgePieces pieces(false, use);
    folder_.read_edges(relation, [&](const EdgePiece& piece) {
      for (std::size_t k = 0; k < piece.sources.size(); ++k) {
        const auto head = head_row + piece.sources[k], tail = tail_row + piece.targets[k];
        const auto edge = read.given++;
        if (drops && head == tail) {
          read.dropped.push_back(edge);
          continue;
        }
        pieces.add(schema_.column(relation, head), tail, 1);
        if (of.inverse >= 0) pieces.add(schema_.column(of.inverse, tail), head, 1);
      }
    });
    pieces.finish();
    read_[relation] = std::move(read);
    return begin + ways(relation) * (given(relation) - dropped(relation));
  }

  int ways(int relation) const { return schema_.relations()[relation].inverse >= 0 ? 2 : 1; }
  // Its relation, and which edge of the file it was.
  std::pair<int, std::int64_t> origin(std::int64_t entry) const {
    const auto after = std::ranges::upper_bound(read_, entry, {}, &Read::begin);
    const auto relation = static_cast<int>(after - read_.begin()) - 1;
    const auto edge = (entry - read_[relation].begin) / ways(relation);
    // How many were dropped before it: the k-th of them has dropped[k] - k edges before
    // that were not.
    const auto& dropped = read_[relation].dropped;
    std::int64_t before = 0, end = std::ssize(dropped);
    while (before < end) {
      const auto middle = before + (end - before) / 2;
      if (dropped[middle] - middle <= edge)
        before = middle + 1;
      else
        end = middle;
    }
    return {relation, edge + before};
  }

  const TypedFolder& folder_;
  const Schema& schema_;
  bool drop_self_loops_;
  mutable std::vector<Read> read_;  // [triplets] of the last reading
};

// ---- what became of the edges, in words ----

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

// ---- all of it ----

class TypedImport {
 public:
  TypedImport(const Communicator& comm, const TypedImportOptions& options, const OutputFile& output,
              const std::function<std::unique_ptr<TypedFolder>()>& open)
      : comm_(comm), options_(options) {
    on_first_rank(comm, [&] {
      folder_ = open();
      description_ = folder_->description();
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
    with_index_type(std::max(schema_->nodes(), schema_->columns()),
                    [&]<class Index>(Index) { edges_of<Index>(); });
  }
  void import_type(int type) {
    const auto& of = schema_->types()[type];
    std::unique_ptr<FeatureRows> rows;
    on_first_rank(comm_, [&] { rows = folder_->open_features(type); });
    const auto columns = import_features(comm_, std::move(rows), of.size(), options_.half, *writer_, type);
    OgbLabels labels;
    const auto names = names_of_splits(options_.split);
    std::vector<std::optional<Splits>> splits(names.size());
    on_first_rank(comm_, [&] {
      labels = read_labels(folder_->open_labels(type), of.size());
      std::string words;
      for (std::size_t k = 0; k < names.size(); ++k) {
        if (!folder_->has_split(type, k)) continue;
        splits[k] = folder_->read_splits(type, labels, k);
        words += "; " + in_words(*splits[k], kept_name(names, k));
      }
      log::info("type       {}: {}, {}{}{}", of.name, counted(of.size(), "vertex"),
                counted(columns, "feature"), labels.columns > 0 ? "; labels: " + in_words(labels) : "",
                words);
    });
    import_labels(comm_, labels, *writer_, type);
    for (std::size_t k = 0; k < names.size(); ++k)
      if (agreed(comm_, splits[k].has_value()) != 0)
        import_splits(splits[k].value_or(Splits()), *writer_, type, kept_name(names, k));
  }
  void commit() {
    description_.name = comm_.broadcast_text(description_.name, 0, "import");
    description_.source = comm_.broadcast_text(description_.source, 0, "import");
    description_.directed = !options_.inverses;
    writer_->commit(description_);
  }
  int types() const { return static_cast<int>(schema_->types().size()); }

 private:
  // Columns are no vertices: loops are dropped by now.
  EdgeOptions edge_options() const {
    return {false, false, options_.duplicates, options_.duplicate_features};
  }

  template <class Index>
  Csr<Index> build(const TypedEdges& edges) const {
    EdgeCounts counts;
    try {
      return build_rows<Index>(edges, count_entries(edges, schema_->nodes(), {}, schema_->columns()),
                               edge_options(), counts);
    } catch (const DuplicateEdge& duplicate) {
      input_error("{}: repeats {}; choose --duplicates sum, max, first or last to merge them",
                  edges.place(duplicate.found().edge), edges.place(duplicate.found().earlier));
    }
  }

  // Opens what the edges of each triplet have. Returns for each entry of the matrix the entry of
  // the edges that it has its features from; empty where there are none.
  template <class Index>
  Buffer<std::int64_t> find_features(const TypedEdges& edges, const Csr<Index>& rows) {
    if (!options_.edge_features) return {};
    for (int r = 0; r < triplets_; ++r)
      edge_rows_[r] = {folder_->open_edge_features(r, edges.given(r)), edges.given(r)};
    if (std::ranges::none_of(edge_rows_, [](const GivenFeatures& of) { return of.rows != nullptr; }))
      return {};
    auto first = feature_edges(edges, edge_options(), rows);
    if (!edge_options().adds_features()) return first;
    const auto standing = standing_edges(edges, edge_options(), rows, first);
    for (int r = 0; r < triplets_; ++r) {
      edge_rows_[r].mean = options_.duplicate_features == DuplicateFeatures::kMean;
      edge_rows_[r].standing = edges.of_relation(r, standing);
      for (auto& edge : edge_rows_[r].standing)
        if (edge >= 0) edge = edges.edge_in_file(edge);
    }
    return first;
  }

  template <class Index>
  void edges_of() {
    Csr<Index> rows;
    Buffer<std::int64_t> first;
    on_first_rank(comm_, [&] {
      const double start = now();
      edges_.emplace(*folder_, *schema_, triplets_, options_.drop_self_loops);
      rows = build<Index>(*edges_);
      first = find_features(*edges_, rows);
      log::info("edges      {} in {}, in {:.1f} s", counted(rows.entries(), "entry"),
                counted(std::ssize(schema_->relations()), "relation"), now() - start);
      report_relations(*schema_, *edges_, rows, {edge_options(), rows.has_values(), !first.empty()},
                       triplets_);
    });
    writer_->write_adjacency(rows);
    write_edge_features(rows, first);
  }

  // Relation by relation, so that features of one are in memory.
  template <class Index>
  void write_edge_features(const Csr<Index>& rows, const Buffer<std::int64_t>& first) {
    for (int r = 0; r < triplets_; ++r) {
      std::vector<EntriesOfEdges> into;
      for (const int relation : {r, schema_->relations()[r].inverse})
        if (relation >= 0)
          into.push_back({relation, [&, relation] {
                            auto edges = entries_of(*schema_, rows, relation);
                            for (auto& edge : edges) edge = edges_->edge_in_file(first[edge]);
                            return edges;
                          }});
      const auto columns =
          import_edge_features(comm_, std::move(edge_rows_[r]), options_.half, into, *writer_);
      if (columns > 0)
        log::info("edges of   {}: {} of each", schema_->full_name(r),
                  counted(columns, "feature", "features"));
    }
  }

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
