// From a random model to a graph file: edges made and exchanged, rows built and written, vertices
// made and written.
#pragma once

#include <algorithm>
#include <limits>
#include <span>

#include "espalier/base/clock.hpp"
#include "espalier/base/counted.hpp"
#include "espalier/base/log.hpp"
#include "espalier/graph/graph_writer.hpp"
#include "exchange_edges.hpp"
#include "generated_vertices.hpp"

namespace espalier {

// One random graph: what differs between the models.
template <class EdgeAt>
struct Model {
  std::int64_t nodes;
  std::int64_t draws;  // edges before duplicates are merged
  bool symmetrize, drop_self_loops;
  EdgeAt edge_at;    // edge number -> Edge
  ClassOf class_of;  // vertex -> class
  GraphDescription description;
};

inline RandomStream scramble_stream(std::uint64_t seed) {
  RandomStream stream{seed, Purpose::kGenerateEdges};
  stream.layer = 1;  // layer 0 draws the edges
  return stream;
}

inline void report_edges(const Communicator& comm, std::int64_t draws, EdgeCounts counts,
                         std::int64_t entries, double seconds) {
  std::int64_t sums[] = {counts.loops_dropped, counts.merged, entries};
  comm.all_reduce(std::span<std::int64_t>(sums), Reduction::kSum, "generate");
  log::info("edges      {} drawn in {:.1f} s, {} dropped, {} merged: {}", draws, seconds,
            counted(sums[0], "self loop"), counted(sums[1], "duplicate"), counted(sums[2], "entry"));
}

// Collective. The features of my entries of a relation, which stand in rows [range.begin, ...) of
// its columns [columns.begin, columns.end): make(row, column, features) makes those of an entry.
template <class T, class Index, class Make>
void write_made_edge_features(const Csr<Index>& rows, const RowRange& range, const RowRange& columns,
                              std::int64_t features, Make make, GraphWriter& writer, int relation) {
  Matrix<T> made(0, features);
  const auto in_columns = [&](std::int64_t row) {
    const auto all = rows.row_indices(row);
    const auto below = [](Index column, std::int64_t bound) { return column < bound; };
    const auto first = std::lower_bound(all.begin(), all.end(), columns.begin, below);
    return std::span(first, std::lower_bound(first, all.end(), columns.end, below));
  };
  std::int64_t entries = 0;
  for (std::int64_t row = 0; row < rows.rows; ++row) entries += std::ssize(in_columns(row));
  made.resize(entries, features);
  entries = 0;
  for (std::int64_t row = 0; row < rows.rows; ++row)
    for (const auto column : in_columns(row))
      make(range.begin + row, static_cast<std::int64_t>(column),
           std::span<T>(made.row(entries++), static_cast<std::size_t>(features)));
  writer.write_edge_features(made, relation);
}

// Collective. The same for options that say how many features there are, and how wide.
template <class Index, class Make>
void write_made_edge_features(const VertexOptions& options, const Csr<Index>& rows, const RowRange& range,
                              const RowRange& columns, Make make, GraphWriter& writer, int relation = 0) {
  if (options.edge_features == 0) return;
  if (options.half)
    write_made_edge_features<Half>(rows, range, columns, options.edge_features, make, writer, relation);
  else
    write_made_edge_features<float>(rows, range, columns, options.edge_features, make, writer, relation);
}

// Collective. My rows of the adjacency matrix, written and forgotten.
template <class Index, class EdgeAt>
void write_edges(const Communicator& comm, const Model<EdgeAt>& model, const RowRange& range,
                 const VertexOptions& options, GraphWriter& writer) {
  const double start = now();
  EdgeCounts counts;
  auto edges = exchange_edges<Index>(comm, model.nodes, model.draws, model.symmetrize, model.edge_at);
  const auto rows = build_rows(edges, range, model.nodes, {false, model.drop_self_loops}, counts);
  report_edges(comm, model.draws, counts, rows.entries(), now() - start);
  writer.write_adjacency(rows);
  const auto make = [&](std::int64_t row, std::int64_t column, auto features) {
    generate_edge_features(options.seed, 0, std::max(row, column), std::min(row, column),
                           model.class_of(row) == model.class_of(column), features);
  };
  write_made_edge_features(options, rows, range, {0, model.nodes}, make, writer);
}

// Collective. Features of my range of the vertices of a type, where they have any.
inline void write_features(const VertexOptions& options, const RowRange& range,
                           std::span<const std::int32_t> classes, GraphWriter& writer, int type = 0) {
  if (options.features > 0 && options.half)
    writer.write_features(generate_features<Half>(range, classes, options, type), type);
  else if (options.features > 0)
    writer.write_features(generate_features<float>(range, classes, options, type), type);
}

// Collective. Of the first type.
inline void write_labels_and_splits(const VertexOptions& options, const RowRange& range,
                                    std::span<const std::int32_t> classes, GraphWriter& writer) {
  if (options.labels > 0)
    writer.write_multi_labels(generate_several_labels(range, classes, options));
  else
    writer.write_labels(classes);
  const auto splits = generate_splits(range, options.seed);
  for (const auto split : {Split::kTrain, Split::kValid, Split::kTest})
    writer.write_split(split, splits[static_cast<std::size_t>(split)]);
}

template <class EdgeAt>
void write_graph(const Communicator& comm, const Model<EdgeAt>& model, const VertexOptions& options,
                 const Destination& output) {
  const auto range = even_range(model.nodes, comm.size(), comm.rank());
  GraphWriter writer(comm, output);
  if (model.nodes <= std::numeric_limits<std::int32_t>::max())
    write_edges<std::int32_t>(comm, model, range, options, writer);
  else
    write_edges<std::int64_t>(comm, model, range, options, writer);
  const auto classes = generate_labels(range, model.class_of);
  write_features(options, range, classes, writer);
  write_labels_and_splits(options, range, classes, writer);
  writer.commit(model.description);
}

inline std::string edge_feature_words(const VertexOptions& v) {
  return v.edge_features > 0 ? fmt::format(" --edge-features {}", v.edge_features) : "";
}

inline std::string vertex_words(const VertexOptions& v) {
  return fmt::format("--features {} --classes {} --seed {}{}{}{}", v.features, v.classes, v.seed,
                     v.labels > 0 ? fmt::format(" --labels {}", v.labels) : "", edge_feature_words(v),
                     v.half ? " --half" : "");
}

}  // namespace espalier
