// From a source to the graph file.
#include <algorithm>
#include <optional>

#include "copy_contents.hpp"
#include "edge_text.hpp"
#include "espalier/base/clock.hpp"
#include "espalier/base/index_type.hpp"
#include "espalier/base/log.hpp"
#include "espalier/file/input_files.hpp"
#include "first_rank.hpp"
#include "graph_source.hpp"
#include "import_tables.hpp"
#include "matrix_edges.hpp"
#include "ogb_tables.hpp"

namespace espalier {

namespace {

ImportPlan plan_for(const ImportRequest& request) {
  return std::visit([](const auto& of) { return plan_of(of); }, request);
}

// Throws where the output is an input.
void check_inputs(const ImportPlan& plan, const OutputFile& output) {
  if (!plan.folder.empty()) return refuse_input_as_output(plan.folder, output.path, plan.parts);
  refuse_inputs_as_output(plan.inputs, output.path);
  check_output(output);
}

class GraphImport {
 public:
  GraphImport(const Communicator& comm, const ImportRequest& request, const OutputFile& output)
      : comm_(comm) {
    std::optional<Schema> schema;
    on_every_rank(comm, [&] {
      const auto plan = plan_for(request);
      if (comm.rank() > 0) {
        if (plan.shared) share_.emplace(plan.describe());
        return;
      }
      check_inputs(plan, output);
      source_.emplace(plan.describe());
      options_ = source_->graph().options;
      description_ = source_->graph().about;
      triplets_ = source_->relations();
      shares_ = plan.shared && source_->in_parts();
      for (int r = 0; r < triplets_; ++r) {
        weighted_.push_back(source_->weighted(r));
        timed_.push_back(source_->timed(r));
      }
      if (!source_->typed()) return;
      schema = source_->schema();
      for (int r = 0; r < triplets_; ++r)
        one_way_ += schema->relations()[r].inverse < 0 && !source_->both_ways(r);
    });
    typed_ = agreed(comm, schema.has_value()) != 0;
    triplets_ = agreed(comm, triplets_);
    comm.broadcast(std::span(&options_.edges, 1), 0, "import");
    for (auto* flags : {&weighted_, &timed_}) {
      flags->resize(static_cast<std::size_t>(triplets_));
      for (auto flag : *flags) flag = agreed(comm, flag) != 0;
    }
    options_.splits = broadcast_texts(comm, options_.splits);
    edge_rows_.resize(static_cast<std::size_t>(triplets_));
    if (typed_) schema_ = broadcast_schema(comm, schema);
    shares_ = agreed(comm, shares_) != 0;
    writer_.emplace(comm, output);
    if (typed_) writer_->write_schema(schema_);
  }

  void import_edges() {
    const double start = now();
    if (source_ || shares_) edges_.emplace(source_ ? *source_ : *share_, schema_, shares_);
    shared_.emplace(comm_, edges_ ? &*edges_ : nullptr);
    // -1 where edges say how many there are.
    const auto nodes = agreed(comm_, source_ ? source_->types().back().end + 1 : 0) - 1;
    auto counted = count_entries(*shared_, nodes, edge_options(), typed_ ? schema_.columns() : -1);
    if (counted.nodes == 0) input_error("{}: has no edge, and so the graph no vertex", shared_->name());
    if (!typed_) schema_ = Schema(counted.nodes);
    if (shares_) edges_->add_up(comm_);
    with_index_type(std::max(counted.nodes, schema_.columns()),
                    [&]<class Index>(Index) { edges_of<Index>(std::move(counted), nodes < 0, start); });
  }

  void import_type(int type) {
    const double start = now();
    const auto count = schema_.types()[type].size();
    import_ids_and_times(type);
    std::unique_ptr<FeatureRows> rows;
    on_first_rank(comm_, [&] { rows = source_->open_features(type); });
    const auto columns = import_features(comm_, std::move(rows), count, options_.half, *writer_, type);
    if (!typed_ && columns > 0) log::info("features   {} x {} in {:.1f} s", count, columns, now() - start);
    OgbLabels labels;
    std::vector<std::optional<Splits>> splits(options_.splits.size());
    on_first_rank(comm_, [&] {
      labels = read_labels(source_->open_labels(type), count, source_->graph().no_class);
      splits = read_splits(type, columns, labels);
    });
    import_labels(comm_, labels, *writer_, type);
    for (std::size_t k = 0; k < splits.size(); ++k) import_split(type, k, splits[k].value_or(Splits()));
  }

  void import_links() {
    LinkInfo info;
    on_first_rank(comm_, [&] { info = source_->links(); });
    if (agreed(comm_, info.exist) == 0) return;
    info.directed = agreed(comm_, comm_.rank() == 0 && info.directed) != 0;
    info.names = broadcast_texts(comm_, info.names);
    info.graph_relations.resize(agreed(comm_, std::ssize(info.graph_relations)), 0);
    for (auto& place : info.graph_relations) place = static_cast<int>(agreed(comm_, place));
    writer_->write_link_relations(info);
    for (const auto split : kSplits)
      if (agreed(comm_, info.splits[static_cast<std::size_t>(split)].links) != 0) import_links(split);
  }

  void commit() {
    description_.name = comm_.broadcast_text(description_.name, 0, "import");
    description_.source = comm_.broadcast_text(description_.source, 0, "import");
    description_.directed = agreed(comm_, description_.directed ? 1 : one_way_) > 0;
    writer_->commit(description_);
  }
  int types() const { return static_cast<int>(schema_.types().size()); }

 private:
  // Where there are types relations say what is symmetric.
  EdgeOptions edge_options() const {
    auto options = options_.edges;
    if (typed_) options.symmetrize = false;
    return options;
  }

  void import_ids_and_times(int type) {
    VertexIds ids;
    on_first_rank(comm_, [&] { ids = source_->read_ids(type); });
    const bool given = agreed(comm_, ids.given) != 0, numbers = agreed(comm_, ids.numbers) != 0;
    if (given && numbers) writer_->write_list<std::int64_t>(Column::kIds, type, ids.of_numbers);
    if (given && !numbers) writer_->write_texts(Column::kIds, type, ids.of_texts);
    Buffer<std::int64_t> times;
    on_first_rank(comm_, [&] { times = source_->read_times(type); });
    if (agreed(comm_, std::ssize(times)) > 0) writer_->write_list<std::int64_t>(Column::kTime, type, times);
  }

  void import_split(int type, std::size_t place, const Splits& parts) {
    for (const auto split : kSplits)
      if (agreed(comm_, source_ && source_->has_split(type, place, split)) != 0)
        writer_->write_split(split, parts[static_cast<std::size_t>(split)], type, options_.splits[place]);
  }

  void import_links(Split split) {
    GivenLinks given;
    on_first_rank(comm_, [&] {
      given = source_->read_links(split);
      log::info("links      {} of {}", counted(std::ssize(given.links.heads), "link"),
                kSplitNames[static_cast<std::size_t>(split)]);
    });
    writer_->write_links(split, given.links);
    const auto write = [&](Column column, const Matrix<std::int64_t>& rows) {
      if (agreed(comm_, rows.columns) != 0) writer_->write_rows(column, static_cast<int>(split), rows);
    };
    write(Column::kNegativeHeads, given.negative_heads);
    write(Column::kNegativeTails, given.negative_tails);
    write(Column::kNonLinks, given.non_links);
  }

  template <class Index>
  void edges_of(CountedEntries counted_entries, bool any_vertices, double start) {
    std::optional<SharedRows<Index>> made;
    try {
      made.emplace(*shared_, std::move(counted_entries), edge_options());
    } catch (const DuplicateEdge& duplicate) {
      on_first_rank(comm_, [&] { refuse_duplicate(*edges_, duplicate.found(), typed_); });
    }
    auto& rows = made->rows();
    weigh_alike(rows);
    // Of each entry its edge, where edges have features, and its time, where they have some.
    auto first = find_features(*made);
    const bool timed = std::ranges::find(timed_, true) != timed_.end();
    const auto times = timed ? made->times() : Buffer<std::int64_t>();
    const auto some = [&](std::size_t things) { return agreed(comm_, things > 0) != 0; };
    report(rows, made->counts(),
           {edge_options(), agreed(comm_, rows.has_values()) != 0, some(first.size()), some(times.size()),
            options_.by_keys},
           start);
    if (any_vertices) report_alone(comm_, rows);
    if (source_ && !typed_) source_->set_vertices(schema_.nodes());
    writer_->write_adjacency(rows);
    write_edge_times(rows, times);
    write_edge_features(rows, std::move(first));
  }

  // Entries of relations whose edges have no weights weigh 1 beside others, however many edges met.
  template <class Index>
  void weigh_alike(Csr<Index>& rows) const {
    if (!typed_ || !rows.has_values() || options_.edges.duplicates == Duplicates::kCount) return;
    auto weighted = weighted_;
    for (auto r = triplets_; r < std::ssize(schema_.relations()); ++r)
      weighted.push_back(weighted[schema_.relations()[r].inverse]);
    for (std::size_t e = 0; e < rows.indices.size(); ++e)
      if (!weighted[schema_.relation_of(rows.indices[e])]) rows.values[e] = 1;
  }

  template <class Index>
  void write_edge_times(const Csr<Index>& rows, const Buffer<std::int64_t>& times) {
    for (int r = 0; r < triplets_; ++r) {
      if (!timed_[r]) continue;
      for (const int relation : {r, schema_.relations()[r].inverse}) {
        if (relation < 0) continue;
        Buffer<std::int64_t> own;
        if (typed_)
          for (const auto entry : entries_of(schema_, rows, relation)) own.push_back(times[entry]);
        writer_->write_list<std::int64_t>(Column::kEdgeTime, relation, typed_ ? own : times);
      }
      log::info("edges{} a time of each", typed_ ? " of   " + schema_.full_name(r) + ":" : "     ");
    }
  }

  // Opens what the edges of each relation have. Returns for each entry of the rows the entry of
  // the edges that it has its features from; empty where there are none.
  template <class Index>
  Buffer<std::int64_t> find_features(const SharedRows<Index>& made) {
    std::int64_t edges = 0;  // where some have features: of all relations, and their inverses
    on_first_rank(comm_, [&] {
      for (int r = 0; r < triplets_; ++r)
        edge_rows_[r] = {source_->open_edge_features(r, edges_->given(r)), edges_->given(r)};
      if (std::ranges::any_of(edge_rows_, [](const GivenFeatures& of) { return of.rows != nullptr; }))
        edges = edges_->read_entries();
    });
    edges = agreed(comm_, edges);
    if (edges == 0) return {};
    auto first = made.feature_edges();
    if (!edge_options().adds_features()) return first;
    auto standing = made.standing_edges(first, edges);
    for (int r = 0; source_ && r < triplets_; ++r) {
      edge_rows_[r].mean = edge_options().features == DuplicateFeatures::kMean;
      edge_rows_[r].standing = typed_ ? edges_->of_relation(r, standing) : std::move(standing);
      for (auto& edge : edge_rows_[r].standing)
        if (edge >= 0) edge = edges_->edge_in_file(edge);
    }
    return first;
  }

  template <class Index>
  void report(const Csr<Index>& rows, const EdgeCounts& counts, EdgeReport of, double start) {
    if (source_) of.line = source_->graph().line;
    const auto entries = comm_.all_reduce(rows.entries(), Reduction::kSum, "import");
    if (!typed_) {
      if (source_) of.one_direction_by = source_->graph().one_direction_by;
      of.advises = !description_.directed;
      one_way_ = of.options.symmetrize ? 0 : count_one_way(comm_, rows);
      if (source_) report_edges(of, counts, entries, one_way_, now() - start);
      return;
    }
    auto of_relations = entries_by_relation(schema_, rows);
    comm_.all_reduce(std::span(of_relations), Reduction::kSum, "import");
    log::info("edges      {} in {}, in {:.1f} s", counted(entries, "entry"),
              counted(std::ssize(schema_.relations()), "relation"), now() - start);
    if (!source_) return;
    std::int64_t given = 0;
    for (int r = 0; r < triplets_; ++r) given += edges_->given(r);
    report_vanished(of, counts.vanished, given);
    report_relations(schema_, *edges_, of_relations, of, static_cast<int>(triplets_));
  }

  // Relation by relation, so that features of one are in memory.
  template <class Index>
  void write_edge_features(const Csr<Index>& rows, Buffer<std::int64_t> first) {
    const auto edge_of = [&](std::int64_t entry) { return edges_->edge_in_file(entry); };
    for (int r = 0; r < triplets_; ++r) {
      std::vector<EntriesOfEdges> into;
      for (const int relation : {r, schema_.relations()[r].inverse})
        if (relation >= 0)
          into.push_back({relation, edge_of, [&, relation] {
                            if (!typed_) return std::move(first);
                            auto edges = entries_of(schema_, rows, relation);
                            for (auto& edge : edges) edge = first[edge];
                            return edges;
                          }});
      const auto columns =
          import_edge_features(comm_, std::move(edge_rows_[r]), options_.half, into, *writer_);
      if (columns > 0)
        log::info("edges{} {} of each", typed_ ? " of   " + schema_.full_name(r) + ":" : "     ",
                  counted(columns, "feature", "features"));
    }
  }

  // Rank 0. A line for a type; without types one for each thing.
  std::vector<std::optional<Splits>> read_splits(int type, std::int64_t columns, const OgbLabels& labels) {
    std::vector<std::optional<Splits>> splits(options_.splits.size());
    const auto& of = schema_.types()[type];
    std::string line =
        fmt::format("type       {}: {}, {}{}", of.name, counted(of.size(), "vertex"),
                    counted(columns, "feature"), labels.columns > 0 ? "; labels: " + in_words(labels) : "");
    if (!typed_ && labels.columns > 0) log::info("labels     {}", in_words(labels));
    for (std::size_t k = 0; k < splits.size(); ++k) {
      if (std::ranges::none_of(kSplits, [&](Split split) { return source_->has_split(type, k, split); }))
        continue;
      splits[k] = source_->read_splits(type, labels, k);
      const auto words = in_words(*splits[k], options_.splits[k]);
      line += "; " + words;
      if (!typed_) log::info("splits     {}", words);
    }
    if (typed_) log::info("{}", line);
    return splits;
  }

  const Communicator& comm_;
  ImportOptions options_;              // rank 0; all ranks know `edges` and `splits`
  std::optional<GraphSource> source_;  // rank 0
  std::optional<GraphSource> share_;   // other ranks, where they read edges as well
  std::optional<MatrixEdges> edges_;   // of the two
  std::optional<SharedEdges> shared_;
  std::vector<bool> weighted_, timed_;    // [triplets]
  std::vector<GivenFeatures> edge_rows_;  // [triplets]
  GraphDescription description_;
  bool typed_ = false, shares_ = false;

  Schema schema_;              // without types when the edges are counted
  std::int64_t triplets_ = 0;  // the first relations of the schema; inverses stand behind them
  std::int64_t one_way_ = 0;   // entries, or, on rank 0, relations without a reverse
  std::optional<GraphWriter> writer_;
};

}  // namespace

void import_graph(const Communicator& comm, const ImportRequest& request, const OutputFile& output) try {
  // 1. What is there; the file's types and relations.
  GraphImport import(comm, request, output);
  // 2. Edges of all relations, one matrix.
  import.import_edges();
  // 3. Ids, features, labels and splits.
  for (int type = 0; type < import.types(); ++type) import.import_type(type);
  // 4. Links.
  import.import_links();
  // 5. The file appears.
  import.commit();
} catch (const UserError& error) {
  if (!std::holds_alternative<DescriptionFile>(request)) throw;
  throw UserError(error.code(), in_keys(error.what()));
}

std::string describe_import(const Communicator& comm, const ImportRequest& request) {
  std::string text;
  on_first_rank(comm, [&] { text = as_toml(plan_for(request).in_toml()); });
  return text;
}

}  // namespace espalier
