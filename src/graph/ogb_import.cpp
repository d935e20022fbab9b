#include "espalier/graph/ogb_import.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "espalier/base/clock.hpp"
#include "espalier/base/log.hpp"
#include "espalier/graph/graph_writer.hpp"
#include "first_rank.hpp"
#include "import_edge_features.hpp"
#include "import_typed.hpp"
#include "input_files.hpp"
#include "ogb_binary_folder.hpp"
#include "ogb_folder.hpp"
#include "ogb_meta.hpp"
#include "ogb_typed_folder.hpp"

namespace espalier {

namespace {

// ---- edges: what became of them, in words ----

const char* outcome_of_weights(const OgbOptions& options) {
  if (!options.edge_weight) return "no weights, so that each becomes one entry";
  return options.duplicates == Duplicates::kSum   ? "weights are summed"
         : options.duplicates == Duplicates::kMax ? "the largest weight stays"
                                                  : "the first weight stays";
}

// A graph file has one entry for an edge.
constexpr const char* kToKeepThem =
    ". To keep how often an edge stands there, give edge-feat.csv.gz a column of ones and name it by "
    "--edge-weight";

// Which edges met, and what came of it; nothing when none did.
void report_duplicates(const EdgeCounts& counts, const OgbOptions& options, bool featured) {
  std::string met;
  const auto add = [&](const std::string& what) { met += (met.empty() ? "" : ", ") + what; };
  if (counts.repeated > 0) add(counted(counts.repeated, "line repeats", "lines repeat") + " an earlier one");
  if (counts.mirrored > 0)
    add(counted(counts.mirrored / 2, "pair of vertices is", "pairs of vertices are") +
        " listed in both directions");
  if (counts.loops > 0)
    add(counted(counts.loops, "self loop meets its", "self loops meet their") + " own reverse");
  if (!met.empty())
    log::info("duplicates {}; {}{}{}", met, outcome_of_weights(options),
              !featured ? ""
              : options.edge_weight && options.duplicates == Duplicates::kMax
                  ? ", with the features of the line with the largest weight"
                  : ", with the features of the first",
              options.edge_weight ? "" : kToKeepThem);
  if (counts.loops > 0 && options.edge_weight && options.duplicates == Duplicates::kSum)
    log::info(
        "loops      the weight of {} twice, as in A + A^T: --drop-self-loops leaves them out, "
        "--duplicates max or first counts them once",
        counted(counts.loops, "self loop counts", "self loops count"));
}

// Lines u,v and v,u may be two edges, or one that is written down twice: only the user knows.
void report_symmetry(const EdgeCounts& counts, const OgbOptions& options, bool featured,
                     std::int64_t entries) {
  const bool before = counts.mirrored > 0 && counts.mirrored == entries - counts.loops;
  const bool adds = options.edge_weight && options.duplicates == Duplicates::kSum && counts.mirrored > 0;
  if (!adds) {
    if (before)
      log::info("symmetry   the graph is symmetric already: --symmetrize changes nothing{}",
                options.edge_weight && featured ? " but weights and features"
                : options.edge_weight           ? " but weights"
                : featured                      ? " but features of edges"
                                                : "");
    return;
  }
  log::warning(
      "{} listed in both directions, {} of them with one weight twice; with --symmetrize the weights of both "
      "lines "
      "add up. If two such lines are one edge, {}give --duplicates max or first",
      counted(counts.mirrored / 2, "pair of vertices is", "pairs of vertices are"), counts.alike / 2,
      before ? "leave out --symmetrize (the graph is symmetric already), or " : "");
}

void report_direction(std::int64_t one_way, std::int64_t entries, const std::string& one_direction_by) {
  if (one_way == 0) return;
  const auto some = one_way == entries ? "no edge is listed in both directions"
                                       : fmt::format("{} of {} entries have no reverse", one_way, entries);
  log::info("directed   {}; --symmetrize makes edges undirected", some);
  if (!one_direction_by.empty())
    log::warning(
        "meta.json says {}: the file lists one direction of undirected edges, and {} of {} have no reverse; "
        "give --symmetrize unless you want it directed",
        one_direction_by, one_way, entries);
}

void report_edges(const EdgeCounts& counts, std::int64_t entries, double seconds) {
  log::info("edges      {} in {:.1f} s, {} added, {} dropped, {} merged: {}", counted(counts.given, "line"),
            seconds, counted(counts.reversed, "reversed edge"), counted(counts.loops_dropped, "self loop"),
            counted(counts.merged, "duplicate"), counted(entries, "entry"));
}

// ---- edges: from the file to rows ----

[[noreturn]] void refuse_duplicate(const std::string& path, const RepeatedEdge& found) {
  if (found.reversed)
    input_error(
        "{}:{}: edge {},{} reverses line {} ({},{}), and with --symmetrize each of the two stands for both "
        "directions; leave out --symmetrize, or choose --duplicates sum, max or first",
        path, found.edge + 1, found.source, found.target, found.earlier + 1, found.target, found.source);
  input_error("{}:{}: edge {},{} repeats line {}; choose --duplicates sum, max or first to merge them", path,
              found.edge + 1, found.source, found.target, found.earlier + 1);
}

// The matrix; what its edges have as features, and where they do for each entry which edge it is.
template <class Index>
struct Edges {
  Csr<Index> rows;
  EdgeCounts counts;
  GivenFeatures features;
  Buffer<std::int64_t> first;
};

template <class Index>
Edges<Index> read_rows(const OgbFolder& folder, const OgbOptions& options) {
  Edges<Index> read;
  auto edges = folder.read_edges<Index>();
  const auto given = std::ssize(edges.sources);
  read.features = {folder.open_edge_features(given), given};
  EdgeList<Index> copy;
  if (read.features.rows) copy = {edges.sources, edges.targets, {}};
  if (read.features.rows && options.duplicates == Duplicates::kMax) copy.weights = edges.weights;
  const RowRange all{0, folder.nodes()};
  const EdgeOptions how{options.symmetrize, options.drop_self_loops, options.duplicates};
  try {
    read.rows = build_rows(edges, all, folder.nodes(), how, read.counts);
  } catch (const DuplicateEdge& duplicate) {
    refuse_duplicate(folder.require("edge"), duplicate.found());
  }
  if (read.features.rows) read.first = feature_edges(copy, all, how, read.rows);
  return read;
}

// Reads and writes the adjacency matrix; returns whether the graph is directed.
template <class Index>
bool import_edges(const Communicator& comm, const std::optional<OgbFolder>& folder, const OgbOptions& options,
                  GraphWriter& writer) {
  Edges<Index> edges;
  bool directed = false;
  on_first_rank(comm, [&] {
    const double start = now();
    edges = read_rows<Index>(*folder, options);
    const auto one_way = options.symmetrize ? 0 : count_one_way(edges.rows);
    const auto entries = edges.rows.entries();
    directed = one_way > 0;
    report_edges(edges.counts, entries, now() - start);
    const bool featured = edges.features.rows != nullptr;
    report_duplicates(edges.counts, options, featured);
    if (options.symmetrize) report_symmetry(edges.counts, options, featured, entries);
    report_direction(one_way, entries, one_direction_by(options.folder));
  });
  writer.write_adjacency(edges.rows);
  const auto columns = import_edge_features(comm, std::move(edges.features), options.half,
                                            {{0, [&] { return edges.first; }}}, writer);
  if (columns > 0) log::info("edges      {} of each", counted(columns, "feature", "features"));
  return directed;
}

template <class T>
void import_features(const Communicator& comm, const std::optional<OgbFolder>& folder, GraphWriter& writer) {
  Matrix<T> features;
  on_first_rank(comm, [&] {
    const double start = now();
    features = folder->read_features<T>();
    if (features.rows > 0)
      log::info("features   {} x {} in {:.1f} s", features.rows, features.columns, now() - start);
  });
  if (comm.all_reduce(features.rows, Reduction::kMax, "import") > 0) writer.write_features(features);
}

void import_labels_and_splits(const Communicator& comm, const std::optional<OgbFolder>& folder,
                              const std::vector<std::string>& names, GraphWriter& writer) {
  OgbLabels labels;
  std::vector<Splits> splits(names.size());
  on_first_rank(comm, [&] {
    labels = folder->read_labels();
    if (labels.columns > 0) log::info("labels     {}", in_words(labels));
    for (std::size_t k = 0; k < names.size(); ++k) {
      splits[k] = folder->read_splits(labels, names[k]);
      log::info("splits     {}", in_words(splits[k], kept_name(names, k)));
    }
  });
  const auto columns = comm.all_reduce(labels.columns, Reduction::kMax, "import");
  if (columns == 1) writer.write_labels(labels.classes);
  if (columns > 1) writer.write_multi_labels(labels.multi);
  for (std::size_t k = 0; k < names.size(); ++k)
    for (const auto split : {Split::kTrain, Split::kValid, Split::kTest})
      writer.write_split(split, splits[k][static_cast<std::size_t>(split)], 0, kept_name(names, k));
}

// Collective. Options that mean nothing where there are types are refused, not ignored.
void import_typed_ogb(const Communicator& comm, const OgbOptions& options, const OutputFile& output) {
  if (options.symmetrize)
    usage_error(
        "--symmetrize: {} has several types of vertices, and each relation gets an inverse without it; leave "
        "it "
        "out (--no-inverse leaves the inverses out)",
        options.folder);
  if (options.edge_weight)
    usage_error("--edge-weight: edges of a graph with several types have no weights; leave it out");
  const TypedOptions typed{options.folder, options.split,      options.inverses,     options.drop_self_loops,
                           options.half,   options.duplicates, options.edge_features};
  import_typed(comm, typed, output, [&] {
    return is_binary_ogb_folder(options.folder) ? open_binary_ogb_folder(typed)
                                                : open_typed_ogb_folder(typed);
  });
}

void import_plain_ogb(const Communicator& comm, const OgbOptions& options, const OutputFile& output) {
  // 1. Is the folder one of ours, and can the file be written?
  std::optional<OgbFolder> folder;
  GraphDescription description;
  const auto splits = names_of_splits(options.split);
  on_first_rank(comm, [&] {
    folder.emplace(options);
    description = describe_folder(options.folder, "OGB raw csv");
    // What is wrong with the command line is found before the edges are read.
    for (const auto& split : splits) folder->split_folder(split);
    folder->check_edge_weight();
  });
  GraphWriter writer(comm, output);

  // 2. Edges, with ids as wide as the graph needs.
  const auto nodes = comm.all_reduce(folder ? folder->nodes() : 0, Reduction::kMax, "import");
  description.directed = nodes <= std::numeric_limits<std::int32_t>::max()
                             ? import_edges<std::int32_t>(comm, folder, options, writer)
                             : import_edges<std::int64_t>(comm, folder, options, writer);
  // 3. Features.
  options.half ? import_features<Half>(comm, folder, writer) : import_features<float>(comm, folder, writer);

  // 4. Labels and splits.
  import_labels_and_splits(comm, folder, splits, writer);

  // 5. The file appears. What rank 0 read of the folder's description is everyone's: attributes are
  //    written by all ranks.
  description.name = comm.broadcast_text(description.name, 0, "import");
  description.source = comm.broadcast_text(description.source, 0, "import");
  description.directed = comm.all_reduce(description.directed ? 1 : 0, Reduction::kMax, "import") != 0;
  writer.commit(description);
}

}  // namespace

void import_ogb(const Communicator& comm, const OgbOptions& options, const OutputFile& output) {
  bool typed = false;
  on_first_rank(comm, [&] {
    refuse_input_as_output(options.folder, output.path);
    typed = is_typed_ogb_folder(options.folder) || is_binary_ogb_folder(options.folder);
    if (!typed && !options.inverses)
      usage_error("--no-inverse: {} has no types of vertices and so no inverse relations; leave it out",
                  options.folder);
  });
  if (comm.all_reduce(typed ? 1 : 0, Reduction::kMax, "import") != 0)
    import_typed_ogb(comm, options, output);
  else
    import_plain_ogb(comm, options, output);
}

}  // namespace espalier
