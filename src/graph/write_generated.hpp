// From a random model to a graph file: edges made and exchanged, rows built and written, vertices
// made and written.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "copy_contents.hpp"
#include "espalier/base/clock.hpp"

#include "espalier/base/index_type.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/row_range.hpp"
#include "espalier/base/text.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/graph/edge_list.hpp"
#include "espalier/graph/generate.hpp"
#include "espalier/graph/graph_writer.hpp"
#include "fetch_rows.hpp"

namespace espalier {

// Labels, features and splits of generated vertices, each a function of (seed, vertex), and
// features of edges, of (seed, relation, row, column).

/// The class of a vertex.
using ClassOf = std::function<std::int64_t(std::int64_t vertex)>;

/// Throws UserError(kUsage) for numbers that make no sense.
void check_vertex_options(const VertexOptions& options);

/// [range.size()]
Buffer<std::int32_t> generate_labels(const RowRange& range, const ClassOf& class_of);

/// [range.size(), options.labels]: 0, 1 or kUnknownLabel. `classes`: of the vertices of `range`.
Matrix<std::uint8_t> generate_several_labels(const RowRange& range, std::span<const std::int32_t> classes,
                                             const VertexOptions& options);

/// [range.size(), options.features], float or Half: centroid of the vertex's class + noise of
/// deviation 1 per column. Centroids lie 1.7 deviations apart on average, whatever the number
/// of columns. `type`: of the vertices, where there are several; `range` is counted within it.
template <class T>
Matrix<T> generate_features(const RowRange& range, std::span<const std::int32_t> labels,
                            const VertexOptions& options, int type = 0);

/// The features of the edge (row, column) of a relation: generate.hpp says what they are.
template <class T>
void generate_edge_features(std::uint64_t seed, int relation, std::int64_t row, std::int64_t column,
                            bool one_class, std::span<T> features);

/// The ids of `range` in train, valid, test: 60, 20, 20 %.
std::array<Buffer<std::int64_t>, 3> generate_splits(const RowRange& range, std::uint64_t seed);

// One random graph: what differs between the models. A graph without types is of one.
template <class EdgeAt>
struct Model {
  Schema schema;
  bool typed;
  std::vector<std::int64_t> features;  // [types] columns; 0: none
  std::int64_t draws;                  // edges before duplicates are merged
  bool symmetrize, drop_self_loops;
  EdgeAt edge_at;  // edge number -> Edge, from a column of the wide matrix to a row
  std::function<std::int64_t(int type, std::int64_t vertex)> class_of;  // vertices within the type
  GraphDescription description;
};

inline FileStream scramble_stream(std::uint64_t seed) {
  FileStream stream{seed, FilePurpose::kGenerateEdges};
  stream.layer = 1;  // layer 0 draws the edges
  return stream;
}

// Collective. Rank r makes edges [E r/p, E (r+1)/p) with edge_at(e) and gets those that end in its
// even range of the n rows; with `symmetrize` every edge is also taken the other way round. The
// order of what a rank gets depends on p.
template <class Index, class EdgeAt>
EdgeList<Index> exchange_edges(const Communicator& comm, std::int64_t n, std::int64_t edges, bool symmetrize,
                               EdgeAt edge_at) {
  // So that the send buffers stay small.
  constexpr std::int64_t kEdgesPerRound = std::int64_t{1} << 22;
  constexpr double kSilence = 30;  // seconds
  struct Entry {
    Index row, column;
  };
  const auto mine = even_range(edges, comm.size(), comm.rank());
  EdgeList<Index> received;
  received.sources.reserve(mine.size() * (symmetrize ? 2 : 1));
  received.targets.reserve(received.sources.capacity());
  const double start = now();
  double said = start;
  std::int64_t drawn = 0;
  exchange_in_rounds<Entry>(
      comm, n, mine.size(), kEdgesPerRound, symmetrize ? 2 : 1, "generate",
      [&](std::int64_t e, auto& made) {
        const Edge edge = edge_at(mine.begin + e);
        drawn = e + 1;
        made.push_back({static_cast<Index>(edge.target), static_cast<Index>(edge.source)});
        if (symmetrize) made.push_back({static_cast<Index>(edge.source), static_cast<Index>(edge.target)});
      },
      [&](const auto&, const auto&, const auto& got) {
        for (const auto& entry : got.data) {
          received.targets.push_back(entry.row);
          received.sources.push_back(entry.column);
        }
        if (now() - said < kSilence || drawn == mine.size()) return;
        said = now();
        log::info("edges      {} % drawn after {:.0f} s", 100 * drawn / mine.size(), said - start);
      });
  return received;
}

inline void report_edges(const Communicator& comm, std::int64_t draws, EdgeCounts counts,
                         std::int64_t entries, double seconds) {
  std::int64_t sums[] = {counts.loops_dropped, counts.merged, entries};
  comm.all_reduce(std::span<std::int64_t>(sums), Reduction::kSum, "generate");
  log::info("edges      {} drawn in {:.1f} s, {} dropped, {} merged: {}", draws, seconds,
            counted(sums[0], "self loop"), counted(sums[1], "duplicate"), counted(sums[2], "entry"));
}

// The features of the entry (row, column) of relation r: the same the other way round, in a graph
// without types, and in the inverse of a relation, which has a larger number.
template <class T, class EdgeAt>
void make_edge_features(const Model<EdgeAt>& model, std::uint64_t seed, int r, std::int64_t row,
                        std::int64_t column, std::span<T> features) {
  const auto& schema = model.schema;
  const auto& of = schema.relations()[r];
  auto target = row, source = schema.vertex_of(column);
  const auto class_of = [&](int type, std::int64_t v) {
    return model.class_of(type, v - schema.types()[type].begin);
  };
  const bool one_class = class_of(of.target, target) == class_of(of.source, source);
  const bool inverse = of.inverse >= 0 && of.inverse < r;
  if (inverse || (!model.typed && target < source)) std::swap(target, source);
  generate_edge_features(seed, inverse ? of.inverse : r, target, source, one_class, features);
}

// Collective. Those of my entries of a relation, `rows` being those from `first` on.
template <class Index, class EdgeAt>
void write_made_edge_features(const Model<EdgeAt>& model, const VertexOptions& options,
                              const Csr<Index>& rows, std::int64_t first, GraphWriter& writer, int relation) {
  const auto places = entries_of(model.schema, rows, relation);
  const auto write = [&]<class T>(T) {
    Matrix<T> made(std::ssize(places), options.edge_features);
    for (std::int64_t k = 0, row = 0; k < made.rows; ++k) {
      while (rows.row_end(row) <= places[k]) ++row;
      make_edge_features(model, options.seed, relation, first + row, rows.indices[places[k]],
                         std::span<T>(made.row(k), static_cast<std::size_t>(made.columns)));
    }
    writer.write_rows(Column::kEdgeFeatures, relation, made);
  };
  options.half ? write(Half()) : write(float());
}

// Collective. My rows of the adjacency matrix, written and forgotten.
template <class Index, class EdgeAt>
void write_edges(const Communicator& comm, const Model<EdgeAt>& model, const VertexOptions& options,
                 GraphWriter& writer) {
  const double start = now();
  const auto nodes = model.schema.nodes();
  const auto range = even_range(nodes, comm.size(), comm.rank());
  EdgeCounts counts;
  auto edges = exchange_edges<Index>(comm, nodes, model.draws, model.symmetrize, model.edge_at);
  if (now() - start > 10) log::info("edges      drawn after {:.0f} s; sorting them", now() - start);
  const auto rows = build_rows(edges, range, model.schema.columns(), {false, model.drop_self_loops}, counts);
  report_edges(comm, model.draws, counts, rows.entries(), now() - start);
  writer.write_adjacency(rows);
  if (now() - start > 10) log::info("edges      written after {:.0f} s", now() - start);
  for (int r = 0; options.edge_features > 0 && r < std::ssize(model.schema.relations()); ++r)
    write_made_edge_features(model, options, rows, range.begin, writer, r);
}

// Collective. Features of my range of the vertices of a type, where they have any.
inline void write_features(const VertexOptions& options, const RowRange& range,
                           std::span<const std::int32_t> classes, GraphWriter& writer, int type) {
  if (options.features > 0 && options.half)
    writer.write_rows(Column::kFeatures, type, generate_features<Half>(range, classes, options, type));
  else if (options.features > 0)
    writer.write_rows(Column::kFeatures, type, generate_features<float>(range, classes, options, type));
}

// Collective. Of the first type.
inline void write_labels_and_splits(const VertexOptions& options, const RowRange& range,
                                    std::span<const std::int32_t> classes, GraphWriter& writer) {
  if (options.labels > 0)
    writer.write_rows(Column::kLabels, 0, generate_several_labels(range, classes, options));
  else
    writer.write_labels(classes);
  const auto splits = generate_splits(range, options.seed);
  for (const auto split : {Split::kTrain, Split::kValid, Split::kTest})
    writer.write_split(split, splits[static_cast<std::size_t>(split)]);
}

template <class EdgeAt>
void write_graph(const Communicator& comm, const Model<EdgeAt>& model, const VertexOptions& options,
                 const Destination& output) {
  const auto& schema = model.schema;
  GraphWriter writer(comm, output);
  if (model.typed) writer.write_schema(schema);
  with_index_type(std::max(schema.columns(), schema.nodes()),
                  [&]<class Index>(Index) { write_edges<Index>(comm, model, options, writer); });
  for (int t = 0; t < std::ssize(model.features); ++t) {
    const auto range = even_range(schema.types()[t].size(), comm.size(), comm.rank());
    const auto classes = generate_labels(range, [&](std::int64_t v) { return model.class_of(t, v); });
    auto of_type = options;
    of_type.features = model.features[t];
    write_features(of_type, range, classes, writer, t);
    if (t == 0) write_labels_and_splits(of_type, range, classes, writer);
  }
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
