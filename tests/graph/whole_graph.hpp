// Whole graphs, of one type or several, that every rank has: as a list of edges; written and read
// in ranges of every kind.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "dense/random_matrices.hpp"
#include "espalier/base/row_range.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/graph/graph_writer.hpp"
#include "graph/row_parts.hpp"
#include "mpi_test.hpp"

namespace espalier {

// What is known of the vertices of one type.
struct Vertices {
  Matrix<float> features;               // no column: none
  Buffer<std::int32_t> labels;          // empty: none
  Matrix<std::uint8_t> several_labels;  // no column: none
  std::array<Buffer<std::int64_t>, 3> splits;
};

struct TypedGraph {
  Schema schema;
  std::map<std::array<std::int64_t, 3>, float> edges;  // (row, relation, source): weight
  bool weighted = false;
  std::vector<Vertices> vertices;   // [types]
  std::vector<int> edge_columns;    // [relations] of the features of edges, -1: none; empty: none
  bool typed = true, half = false;  // half: features of vertices are written as float16
};

// The first column of each relation: sizes of source types, added up here.
inline std::vector<std::int64_t> first_columns(const Schema& schema) {
  std::vector<std::int64_t> first = {0};
  for (const auto& relation : schema.relations()) {
    const auto& source = schema.types()[relation.source];
    first.push_back(first.back() + source.end - source.begin);
  }
  return first;
}

using SortedEntries = std::map<std::pair<std::int64_t, std::int64_t>, float>;  // (row, column)

template <class Index>
Csr<Index> matrix_of(const SortedEntries& entries, std::int64_t rows, std::int64_t columns, bool weighted) {
  Csr<Index> matrix;
  matrix.rows = rows;
  matrix.columns = columns;
  matrix.indptr.assign(rows + 1, 0);
  for (const auto& [place, weight] : entries) {
    ++matrix.indptr[place.first + 1];
    matrix.indices.push_back(static_cast<Index>(place.second));
    if (weighted) matrix.values.push_back(weight);
  }
  for (std::int64_t v = 0; v < rows; ++v) matrix.indptr[v + 1] += matrix.indptr[v];
  return matrix;
}

template <class Index>
Csr<Index> rows_apart(const TypedGraph& g) {
  const auto first = first_columns(g.schema);
  SortedEntries entries;
  for (const auto& [edge, weight] : g.edges) {
    const auto& source = g.schema.types()[g.schema.relations()[edge[1]].source];
    entries[{edge[0], first[edge[1]] + edge[2] - source.begin}] = weight;
  }
  return matrix_of<Index>(entries, g.schema.nodes(), first.back(), g.weighted);
}

template <class Index>
Csr<Index> rows_merged(const TypedGraph& g) {
  SortedEntries entries;
  for (const auto& [edge, weight] : g.edges) entries[{edge[0], edge[2]}] += weight;
  return matrix_of<Index>(entries, g.schema.nodes(), g.schema.nodes(), g.weighted);
}

inline Vertices make_vertices(const VertexType& type, int features, int labels, std::mt19937_64& random) {
  Vertices made;
  made.features.resize(type.size(), features);
  for (auto& x : made.features.data) x = to_float(to_half(static_cast<float>(random() % 100) / 7));
  made.several_labels.resize(type.size(), labels > 0 ? 0 : -labels);
  for (auto& x : made.several_labels.data) x = static_cast<std::uint8_t>(random() % 2);
  for (std::int64_t v = 0; v < type.size(); ++v) {
    const auto split = random() % 4;
    if (split < 3 && labels != 0) made.splits[split].push_back(v);
    if (labels > 0) made.labels.push_back(split < 3 ? static_cast<std::int32_t>(random() % labels) : -1);
  }
  if (labels > 0 && type.size() > 0) made.labels[0] = labels - 1;  // so many classes
  return made;
}

// A third of all pairs of each relation but those called "no...", and of every fifth row none.
// vertices[t]: columns of features, and classes, or minus the labels of several.
inline TypedGraph make_typed_graph(const Schema& schema, const std::vector<std::pair<int, int>>& vertices,
                                   bool weighted, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  TypedGraph g{schema, {}, weighted, {}, {}};
  for (int r = 0; r < std::ssize(schema.relations()); ++r) {
    const auto& relation = schema.relations()[r];
    if (relation.name.starts_with("no")) continue;
    const auto &source = schema.types()[relation.source], &target = schema.types()[relation.target];
    for (auto v = target.begin; v < target.end; ++v)
      for (auto u = source.begin; u < source.end; ++u)
        if (v % 5 != 3 && random() % 3 == 0) g.edges[{v, r, u}] = static_cast<float>(random() % 1000) / 8;
  }
  for (std::size_t t = 0; t < vertices.size(); ++t)
    g.vertices.push_back(make_vertices(schema.types()[t], vertices[t].first, vertices[t].second, random));
  return g;
}

// Authors, papers and a single journal; nobody is an editor. Relations with inverse and without,
// between one type, from and to the empty one, and one that has no edge at all.
inline TypedGraph small_typed_graph(bool weighted) {
  const Schema schema({{"author", 0, 5}, {"editor", 5, 5}, {"paper", 5, 17}, {"journal", 17, 18}},
                      {{"writes", 0, 2, 4},
                       {"cites", 2, 2},
                       {"in", 2, 3},
                       {"edits", 1, 3},
                       {"rev_writes", 2, 0, 0},
                       {"none", 0, 0},
                       {"knows", 0, 1},
                       {"extends", 2, 2}});
  return make_typed_graph(schema, {{2, 0}, {3, 0}, {3, 4}, {0, 0}}, weighted, test_seed(5));
}

// Without types; vertex 0 has every other one as neighbour.
inline TypedGraph plain_graph(std::int64_t n, bool weighted) {
  auto g = make_typed_graph(Schema(n), {{3, 3}}, weighted, test_seed(17));
  for (std::int64_t u = 1; u < n; ++u) g.edges[{0, 0, u}] = 0.5f;
  if (weighted) g.edge_columns = {2};
  g.typed = false;
  return g;
}

// A number of an edge that few others have, a float16 too.
inline float edge_number(const std::array<std::int64_t, 3>& edge, std::int64_t column) {
  return static_cast<float>((((edge[0] * 31 + edge[1]) * 37 + edge[2]) * 7 + column) % 2039) - 1000;
}

// Those of a relation with targets among rows [begin, end), in the order of the edges.
template <class T>
Matrix<T> edge_features_of(const TypedGraph& g, int relation, std::int64_t begin, std::int64_t end) {
  Buffer<T> numbers;
  std::int64_t rows = 0;
  for (const auto& [edge, weight] : g.edges) {
    if (edge[0] < begin || edge[0] >= end || edge[1] != relation) continue;
    ++rows;
    for (int k = 0; k < g.edge_columns[relation]; ++k) numbers.push_back(as_stored<T>(edge_number(edge, k)));
  }
  Matrix<T> matrix(rows, rows == 0 ? 0 : g.edge_columns[relation]);
  matrix.data = numbers;
  return matrix;
}

template <class To, class From>
Matrix<To> converted(const Matrix<From>& matrix) {
  Matrix<To> out(matrix.rows, matrix.columns);
  for (std::size_t i = 0; i < out.data.size(); ++i) out.data[i] = as_stored<To>(to_float(matrix.data[i]));
  return out;
}

// ---- writing and reading in ranges ----

// Range number `how` of n things for this rank: even; all on the first rank; all on the last; one
// on the first, the others on the last.
inline constexpr int kWays = 4;
inline RowRange range_of(std::int64_t n, int how, const Communicator& comm = test_world()) {
  const int r = comm.rank(), last = comm.size() - 1;
  if (how == 0) return even_range(n, comm.size(), r);
  const auto cut = how == 1 ? n : how == 2 ? 0 : std::min<std::int64_t>(n, 1);
  if (last == 0) return {0, n};
  return {r == 0 ? 0 : cut, r == last ? n : cut};
}

inline void write_vertices(const Communicator& comm, GraphWriter& writer, const Vertices& of, std::int64_t n,
                           int type, int how, bool half = false) {
  const auto mine = range_of(n, how, comm);
  const auto features = rows_of(of.features, mine.begin, mine.end);
  if (features.columns > 0 && half) writer.write_rows(Column::kFeatures, type, converted<Half>(features));
  if (features.columns > 0 && !half) writer.write_rows(Column::kFeatures, type, features);
  if (!of.labels.empty()) writer.write_labels(part(of.labels, mine.begin, mine.end), type);
  if (of.several_labels.columns > 0)
    writer.write_rows(Column::kLabels, type, rows_of(of.several_labels, mine.begin, mine.end));
  for (std::size_t s = 0; s < 3; ++s) {
    const auto& ids = of.splits[s];
    const auto of_split = range_of(std::ssize(ids), how, comm);
    if (!ids.empty())
      writer.write_split(static_cast<Split>(s), part(ids, of_split.begin, of_split.end), type);
  }
}

// Collective. `all`: the rows of all vertices.
template <class Index>
void write_graph(const Communicator& comm, const TypedGraph& g, const Csr<Index>& all, int how,
                 const std::string& path) {
  const auto rows = range_of(g.schema.nodes(), how, comm);
  GraphWriter writer(comm, {path, true});
  if (g.typed) writer.write_schema(g.schema);
  writer.write_adjacency(rows_of(all, rows.begin, rows.end));
  for (int t = 0; t < std::ssize(g.vertices); ++t)
    write_vertices(comm, writer, g.vertices[t], g.schema.types()[t].size(), t, how, g.half);
  for (int r = 0; r < std::ssize(g.edge_columns); ++r)
    if (g.edge_columns[r] >= 0) {
      r % 2 == 0
          ? writer.write_rows(Column::kEdgeFeatures, r, edge_features_of<float>(g, r, rows.begin, rows.end))
          : writer.write_rows(Column::kEdgeFeatures, r, edge_features_of<Half>(g, r, rows.begin, rows.end));
    }
  writer.commit({"test", "made by a test", true});
}

template <class Index>
void write_graph(const Communicator& comm, const TypedGraph& g, int how, const std::string& path) {
  write_graph(comm, g, rows_apart<Index>(g), how, path);
}

inline GraphView view_of(bool apart, const std::string& target = "") {
  GraphView view;
  view.apart = apart;
  view.target = target;
  return view;
}

inline void expect_schema(const Schema& got, const Schema& wanted) {
  ASSERT_EQ(got.types().size(), wanted.types().size());
  for (std::size_t t = 0; t < wanted.types().size(); ++t) {
    EXPECT_EQ(got.types()[t].name, wanted.types()[t].name);
    EXPECT_EQ(got.types()[t].begin, wanted.types()[t].begin);
    EXPECT_EQ(got.types()[t].end, wanted.types()[t].end);
  }
  EXPECT_EQ(got.relation_names(), wanted.relation_names());
  for (std::size_t r = 0; r < wanted.relations().size(); ++r)
    EXPECT_EQ(got.relations()[r].inverse, wanted.relations()[r].inverse);
}

// Ids that are counted within a type, as ids of vertices.
inline Buffer<std::int64_t> shifted(Buffer<std::int64_t> ids, std::int64_t by) {
  for (auto& id : ids) id += by;
  return ids;
}

// Collective. Features, labels and splits of a type, in ranges of its own vertices.
inline void expect_vertices(const GraphFile& file, const TypedGraph& g, int t, int how) {
  const auto& type = g.schema.types()[t];
  const auto& of = g.vertices[t];
  const auto& info = file.info().types[t];
  const auto mine = range_of(type.size(), how);
  const auto begin = type.begin + mine.begin, end = type.begin + mine.end;
  EXPECT_EQ(info.features, of.features.columns);
  if (info.features > 0) {
    const auto wanted = rows_of(of.features, mine.begin, mine.end);
    EXPECT_EQ(file.read_features<float>(begin, end, t).data, wanted.data);
    EXPECT_EQ(converted<float>(file.read_features<Half>(begin, end, t)).data, wanted.data);
  }
  EXPECT_EQ(info.has_labels, !of.labels.empty() || of.several_labels.columns > 0);
  EXPECT_EQ(info.multi_label, of.several_labels.columns > 0);
  if (!of.labels.empty()) EXPECT_EQ(file.read_labels(begin, end, t), part(of.labels, mine.begin, mine.end));
  if (info.multi_label)
    EXPECT_EQ(file.read_multi_labels(begin, end, t).data,
              rows_of(of.several_labels, mine.begin, mine.end).data);
  if (info.features > 0) EXPECT_EQ(info.half_features, g.half);
  const std::int64_t sizes[] = {info.train, info.valid, info.test};
  for (std::size_t s = 0; s < 3; ++s) {
    EXPECT_EQ(sizes[s], std::ssize(of.splits[s]));
    EXPECT_EQ(file.read_split(static_cast<Split>(s), t), shifted(of.splits[s], type.begin));
  }
}

// Collective. Of every relation, in ranges of its own entries.
inline void expect_edge_features(const GraphFile& file, const TypedGraph& g, bool separate, int how) {
  const auto& info = file.info();
  const auto relations = g.schema.relations().size();
  ASSERT_EQ(info.edge_features.size(), relations);
  for (int r = 0; r < static_cast<int>(relations); ++r) {
    const auto& of = info.edge_features[r];
    const bool some = !g.edge_columns.empty() && g.edge_columns[r] > 0;
    const auto all = some ? edge_features_of<float>(g, r, 0, g.schema.nodes()) : Matrix<float>();
    const bool shown = (separate || relations == 1) && all.rows > 0;
    EXPECT_EQ(of.has(), shown) << r;
    EXPECT_EQ(of.entries, shown ? all.rows : 0) << r;
    EXPECT_EQ(of.features, shown ? all.columns : 0) << r;
    EXPECT_EQ(of.half, shown && r % 2 == 1) << r;
    if (!shown) continue;
    const auto mine = range_of(all.rows, how);
    const auto numbers = file.read<float>(Column::kEdgeFeatures, r, mine.begin, mine.end);
    EXPECT_EQ(numbers.rows, mine.size());
    EXPECT_EQ(numbers.columns, all.columns);
    EXPECT_EQ(numbers.data, rows_of(all, mine.begin, mine.end).data) << r;
    const auto half = file.read<Half>(Column::kEdgeFeatures, r, mine.begin, mine.end);
    EXPECT_EQ(converted<float>(half).data, numbers.data) << "float16 holds them";
  }
}

// Collective. Writes in ranges of each kind; reads in ranges of each kind, in either width. Of
// what is written in one way, every other is read apart and the rest merged; with `of_both_views`
// each is both.
template <class Index, class Other>
void round_trip(const TypedGraph& g, bool of_both_views = false) {
  const auto& world = test_world();
  const auto path = test_folder("round-trip") + "/graph.h5";
  std::set<std::string> digests;
  for (int write = 0; write < kWays; ++write) {
    write_graph<Index>(world, g, write, path);
    for (const bool separate : {true, false}) {
      const GraphFile file(world, path, view_of(separate));
      const auto& info = file.info();
      EXPECT_EQ(info.name, "test");
      EXPECT_EQ(info.directed, true);
      EXPECT_EQ(info.typed, g.typed);
      EXPECT_TRUE(file.has_digest());
      expect_schema(info.schema, g.schema);
      EXPECT_EQ(info.nodes, g.schema.nodes());
      EXPECT_EQ(info.columns, separate ? first_columns(g.schema).back() : g.schema.nodes());
      EXPECT_EQ(info.edges, std::ssize(g.edges));
      EXPECT_EQ(info.weighted, g.weighted);
      EXPECT_EQ(info.wide_indices, sizeof(Index) == 8);
      const auto a = separate ? rows_apart<Index>(g) : rows_merged<Index>(g);
      const auto b = separate ? rows_apart<Other>(g) : rows_merged<Other>(g);
      for (int read = 0; read < kWays; ++read) {
        if (!of_both_views && (write + read) % 2 != separate) continue;
        const auto mine = range_of(info.nodes, read);
        expect_rows(file.read_rows<Index>(mine.begin, mine.end), rows_of(a, mine.begin, mine.end));
        expect_rows(file.read_rows<Other>(mine.begin, mine.end), rows_of(b, mine.begin, mine.end));
        for (int t = 0; t < std::ssize(g.vertices); ++t) expect_vertices(file, g, t, read);
        expect_edge_features(file, g, separate, read);
      }
      check_splits(world, file);
      EXPECT_EQ(file.content().file, info.content.file);
      EXPECT_EQ(file.content().datasets, info.content.datasets);
      digests.insert(hex(*file.content().file));
    }
    for (const bool separate : {true, false}) {
      if (!of_both_views && write / 2 != separate) continue;
      auto view = view_of(separate);
      view.verify = Verify::kRenew;
      const GraphFile again(world, path, view);
      EXPECT_FALSE(again.content().file);
      read_everything(world, again);
      digests.insert(hex(again.content().file.value_or(0)));
    }
  }
  // One rank alone writes what all write together.
  const auto alone = world.split(world.rank(), 0);
  if (world.rank() == 0) {
    write_graph<Index>(alone, g, 0, path);
    digests.insert(hex(*GraphFile(alone, path).content().file));
  }
  EXPECT_EQ(digests.size(), 1u);
  world.barrier();
}

}  // namespace espalier
