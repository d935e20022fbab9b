#include "espalier/graph/ogb_import.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "edge_report.hpp"
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
    report_edges({{options.symmetrize, options.drop_self_loops, options.duplicates},
                  options.edge_weight.has_value(),
                  edges.features.rows != nullptr,
                  "line",
                  "give edge-feat.csv.gz a column of ones and name it by --edge-weight",
                  one_direction_by(options.folder)},
                 edges.counts, entries, one_way, now() - start);
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
                              GraphWriter& writer) {
  OgbLabels labels;
  Splits splits;
  on_first_rank(comm, [&] {
    labels = folder->read_labels();
    if (labels.columns > 0) log::info("labels     {}", in_words(labels));
    splits = folder->read_splits(labels);
    log::info("splits     {} train, {} valid, {} test", splits[0].size(), splits[1].size(), splits[2].size());
  });
  const auto columns = comm.all_reduce(labels.columns, Reduction::kMax, "import");
  if (columns == 1) writer.write_labels(labels.classes);
  if (columns > 1) writer.write_multi_labels(labels.multi);
  for (const auto split : {Split::kTrain, Split::kValid, Split::kTest})
    writer.write_split(split, splits[static_cast<std::size_t>(split)]);
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
  on_first_rank(comm, [&] {
    folder.emplace(options);
    description = describe_folder(options.folder, "OGB raw csv");
    // What is wrong with the command line is found before the edges are read.
    folder->split_folder();
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
  import_labels_and_splits(comm, folder, writer);

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
