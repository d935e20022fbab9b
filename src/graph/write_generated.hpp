// From a random model to a graph file: edges made and exchanged, rows built and written, vertices
// made and written.
#pragma once

#include <algorithm>
#include <span>

#include "copy_contents.hpp"
#include "espalier/base/clock.hpp"
#include "espalier/base/group_stably.hpp"
#include "espalier/base/index_type.hpp"
#include "espalier/base/log.hpp"
#include "espalier/base/text.hpp"
#include "espalier/graph/edge_list.hpp"
#include "espalier/graph/graph_writer.hpp"
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
  const auto rounds = (edges / comm.size() + kEdgesPerRound) / kEdgesPerRound;
  EdgeList<Index> received;
  received.sources.reserve(mine.size() * (symmetrize ? 2 : 1));
  received.targets.reserve(received.sources.capacity());
  const double start = now();
  double said = start;
  for (std::int64_t round = 0; round < rounds; ++round) {
    if (now() - said > kSilence) {
      said = now();
      log::info("edges      {} % drawn after {:.0f} s", 100 * round / rounds, said - start);
    }
    Buffer<Entry> made;
    const auto part = even_range(mine.size(), rounds, round);
    made.reserve(part.size() * (symmetrize ? 2 : 1));
    for (auto e = mine.begin + part.begin; e < mine.begin + part.end; ++e) {
      const Edge edge = edge_at(e);
      made.push_back({static_cast<Index>(edge.target), static_cast<Index>(edge.source)});
      if (symmetrize) made.push_back({static_cast<Index>(edge.source), static_cast<Index>(edge.target)});
    }
    const auto counts = group_stably(
        made, comm.size(), [&](const Entry& entry) { return even_owner(n, comm.size(), entry.row); });
    const auto got = comm.all_to_all_v(std::span<const Entry>(made), counts, "generate");
    for (const auto& entry : got.data) {
      received.targets.push_back(entry.row);
      received.sources.push_back(entry.column);
    }
  }
  return received;
}

inline void report_edges(const Communicator& comm, std::int64_t draws, EdgeCounts counts,
                         std::int64_t entries, double seconds) {
  std::int64_t sums[] = {counts.loops_dropped, counts.merged, entries};
  comm.all_reduce(std::span<std::int64_t>(sums), Reduction::kSum, "generate");
  log::info("edges      {} drawn in {:.1f} s, {} dropped, {} merged: {}", draws, seconds,
            counted(sums[0], "self loop"), counted(sums[1], "duplicate"), counted(sums[2], "entry"));
}

// Collective. The features of my entries of a relation, `rows` being those of `range`: make(row,
// column, features) makes those of an entry.
template <class Index, class Make>
void write_made_edge_features(const VertexOptions& options, const Schema& schema, const Csr<Index>& rows,
                              const RowRange& range, Make make, GraphWriter& writer, int relation) {
  if (options.edge_features == 0) return;
  const auto places = entries_of(schema, rows, relation);
  const auto write = [&]<class T>(T) {
    Matrix<T> made(std::ssize(places), options.edge_features);
    for (std::int64_t k = 0, row = 0; k < made.rows; ++k) {
      while (rows.row_end(row) <= places[k]) ++row;
      make(range.begin + row, static_cast<std::int64_t>(rows.indices[places[k]]),
           std::span<T>(made.row(k), static_cast<std::size_t>(made.columns)));
    }
    writer.write_rows(Column::kEdgeFeatures, relation, made);
  };
  options.half ? write(Half()) : write(float());
}

// Collective. My rows of the adjacency matrix, written and forgotten.
template <class Index, class EdgeAt>
void write_edges(const Communicator& comm, const Model<EdgeAt>& model, const RowRange& range,
                 const VertexOptions& options, GraphWriter& writer) {
  const double start = now();
  EdgeCounts counts;
  auto edges = exchange_edges<Index>(comm, model.nodes, model.draws, model.symmetrize, model.edge_at);
  if (now() - start > 10) log::info("edges      drawn after {:.0f} s; sorting them", now() - start);
  const auto rows = build_rows(edges, range, model.nodes, {false, model.drop_self_loops}, counts);
  report_edges(comm, model.draws, counts, rows.entries(), now() - start);
  writer.write_adjacency(rows);
  if (now() - start > 10) log::info("edges      written after {:.0f} s", now() - start);
  const auto make = [&](std::int64_t row, std::int64_t column, auto features) {
    generate_edge_features(options.seed, 0, std::max(row, column), std::min(row, column),
                           model.class_of(row) == model.class_of(column), features);
  };
  write_made_edge_features(options, Schema(model.nodes), rows, range, make, writer, 0);
}

// Collective. Features of my range of the vertices of a type, where they have any.
inline void write_features(const VertexOptions& options, const RowRange& range,
                           std::span<const std::int32_t> classes, GraphWriter& writer, int type = 0) {
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
  const auto range = even_range(model.nodes, comm.size(), comm.rank());
  GraphWriter writer(comm, output);
  with_index_type(model.nodes,
                  [&]<class Index>(Index) { write_edges<Index>(comm, model, range, options, writer); });
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
