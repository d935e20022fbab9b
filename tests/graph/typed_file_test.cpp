// ranks: 1 4
// long ranks: 2 3 6 8
// Laws: of a graph with types, what was written, in whatever ranges, is what is read, in whatever
// ranges: apart as it was written, merged as a sum over relations; a file holds the same, with one
// digest, for any number of ranks. (Damaged files: tests/app/typed_file_test.py.)
#include <gtest/gtest.h>

#include "graph/whole_graph.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

void expect_error(const std::string& words, const auto& run) {
  expect_refused(ExitCode::kInput, {words}, run);
}

TEST(TypedFile, RoundTrip) {
  round_trip<std::int32_t, std::int64_t>(small_typed_graph(false));
}
TEST(TypedFile, RoundTripWeighted) {
  round_trip<std::int32_t, std::int64_t>(small_typed_graph(true));
}
TEST(TypedFile, RoundTripWideIndices) {
  round_trip<std::int64_t, std::int32_t>(small_typed_graph(true));
}

TEST(TypedFile, LongRoundTripsOfBothViews) {
  round_trip<std::int32_t, std::int64_t>(small_typed_graph(false), true);
  round_trip<std::int64_t, std::int32_t>(small_typed_graph(true), true);
}

// Of relations with inverse and without, at both ends of the list; of a relation without an edge.
TEST(TypedFile, RoundTripOfFeaturesOfEdges) {
  auto g = small_typed_graph(true);
  g.edge_columns = {3, 1, -1, -1, 2, 4, -1, 5};
  round_trip<std::int32_t, std::int64_t>(g);
}

// Fewer vertices than ranks; types without vertices at both ends.
TEST(TypedFile, RoundTripOfAFewVertices) {
  const Schema schema({{"a", 0, 0}, {"b", 0, 1}, {"c", 1, 3}, {"d", 3, 3}},
                      {{"x", 1, 2}, {"y", 2, 2}, {"z", 3, 1}, {"w", 2, 1}});
  round_trip<std::int32_t, std::int64_t>(make_typed_graph(schema, {{4, 0}, {1, 2}, {0, 0}, {2, 0}}, true, 3));
}

TEST(TypedFile, RoundTripWithoutAnyEdge) {
  const Schema schema({{"a", 0, 4}, {"b", 4, 9}}, {{"none", 0, 1}, {"nothing", 1, 0}});
  round_trip<std::int32_t, std::int64_t>(make_typed_graph(schema, {{2, 0}, {0, 3}}, false, 3));
}

// Edges of several relations between the same two vertices.
TEST(TypedFile, RoundTripOfOneTypeAndManyRelations) {
  const Schema schema({{"entity", 0, 11}}, {{"a", 0, 0, 1}, {"b", 0, 0, 0}, {"c", 0, 0, 2}, {"d", 0, 0}});
  round_trip<std::int32_t, std::int64_t>(make_typed_graph(schema, {{3, 3}}, true, 9));
}

// Relations above 127, of which a byte with a sign knows nothing.
TEST(TypedFile, RoundTripOfAsManyRelationsAsThereMayBe) {
  std::vector<Relation> relations;
  for (int r = 0; r < kMostRelations; ++r)
    relations.push_back({(r % 3 == 0 && r < 255 ? "no" : "r") + std::to_string(r), r % 2, r / 2 % 2});
  const Schema schema({{"a", 0, 2}, {"b", 2, 5}}, relations);
  round_trip<std::int32_t, std::int64_t>(make_typed_graph(schema, {{0, 0}, {0, 2}}, true, 9));
}

// One type and one relation: the rows are those of the graph without types.
TEST(TypedFile, OneTypeAndOneRelationAreAGraphWithoutTypes) {
  const Schema schema({{"page", 0, 13}}, {{"links", 0, 0}});
  const auto g = make_typed_graph(schema, {{3, 2}}, true, 4);
  round_trip<std::int32_t, std::int64_t>(g);
  const auto& world = test_world();
  const auto folder = test_folder("typed-file");
  write_graph<std::int32_t>(world, g, 0, folder + "/typed.h5");
  const auto mine = range_of(13, 0);
  {
    GraphWriter writer(world, folder + "/plain.h5");
    writer.write_adjacency(rows_of(rows_apart<std::int32_t>(g), mine.begin, mine.end));
    write_vertices(world, writer, g.vertices[0], 13, 0, 0);
    writer.commit({"plain", "", true});
  }
  const GraphFile plain(world, folder + "/plain.h5");
  EXPECT_FALSE(plain.info().typed);
  EXPECT_TRUE(plain.info().schema.plain());
  for (const bool separate : {true, false}) {
    const GraphFile typed(world, folder + "/typed.h5", view_of(separate));
    EXPECT_EQ(typed.info().columns, 13);
    expect_rows(typed.read_rows<std::int32_t>(mine.begin, mine.end),
                plain.read_rows<std::int32_t>(mine.begin, mine.end));
    for (const char* name : {"/graph/indptr", "/graph/indices", "/graph/weights"})
      EXPECT_EQ(typed.info().content.datasets.at(name), plain.info().content.datasets.at(name)) << name;
  }
}

// One relation: it has its features in either view.
TEST(TypedFile, RoundTripOfFeaturesOfTheOnlyRelation) {
  auto g = make_typed_graph(Schema({{"page", 0, 13}}, {{"links", 0, 0}}), {{3, 2}}, false, 4);
  g.edge_columns = {2};
  round_trip<std::int32_t, std::int64_t>(g);
}

// ---- the target type ----

// Papers have classes, authors several labels, journals none.
TypedGraph labelled_graph() {
  const Schema schema({{"author", 0, 9}, {"journal", 9, 11}, {"paper", 11, 25}},
                      {{"writes", 0, 2}, {"in", 2, 1}, {"cites", 2, 2}});
  return make_typed_graph(schema, {{2, -3}, {0, 0}, {5, 4}}, false, 8);
}

// Collective. Labels of vertices of all types; those of other types have none.
void expect_labels_of_all_vertices(const GraphFile& file, const TypedGraph& g, int target, int how) {
  const auto mine = range_of(g.schema.nodes(), how);
  const auto& type = g.schema.types()[target];
  const auto& of = g.vertices[target];
  if (!of.labels.empty()) {
    Buffer<std::int32_t> wanted(g.schema.nodes(), -1);
    std::ranges::copy(of.labels, wanted.begin() + type.begin);
    EXPECT_EQ(file.read_labels(mine.begin, mine.end), part(wanted, mine.begin, mine.end));
  } else {
    auto wanted = filled_matrix(g.schema.nodes(), of.several_labels.columns, kUnknownLabel);
    std::ranges::copy(of.several_labels.data, wanted.data.begin() + type.begin * wanted.columns);
    EXPECT_EQ(file.read_multi_labels(mine.begin, mine.end).data, rows_of(wanted, mine.begin, mine.end).data);
  }
}

TEST(TypedFile, TheTargetSpeaksForAllVertices) {
  const auto g = labelled_graph();
  const auto path = test_folder("typed-file") + "/graph.h5";
  write_graph<std::int32_t>(test_world(), g, 0, path);
  for (const int target : {0, 2}) {
    const auto& type = g.schema.types()[target];
    const GraphFile file(test_world(), path, view_of(false, type.name));
    EXPECT_EQ(file.info().target, target);
    EXPECT_EQ(file.info().features, g.vertices[target].features.columns);
    EXPECT_EQ(file.info().classes, target == 0 ? 3 : 4);
    EXPECT_EQ(file.info().multi_label, target == 0);
    EXPECT_EQ(file.info().train, std::ssize(g.vertices[target].splits[0]));
    for (int how = 0; how < kWays; ++how) expect_labels_of_all_vertices(file, g, target, how);
    for (std::size_t s = 0; s < 3; ++s)
      EXPECT_EQ(file.read_split(static_cast<Split>(s)), shifted(g.vertices[target].splits[s], type.begin));
    EXPECT_EQ(file.content().file, file.info().content.file);
  }
}

TEST(TypedFile, ATargetMustBeNamedWhereSeveralCouldBeMeant) {
  const auto path = test_folder("typed-file") + "/graph.h5";
  write_graph<std::int32_t>(test_world(), labelled_graph(), 0, path);
  const GraphFile file(test_world(), path);
  EXPECT_EQ(file.info().target, -1);
  EXPECT_EQ(file.info().classes, 0);
  const auto mine = range_of(25, 0);
  expect_error("say with graph.target which one is meant (author, journal, paper)",
               [&] { file.read_labels(mine.begin, mine.end); });
  expect_error("graph.target = \"papers\": graph file " + path +
                   " has no such vertex type; its types are author, journal, paper",
               [&] { GraphFile(test_world(), path, view_of(false, "papers")); });
  expect_error("has no /nodes/journal/labels", [&] { file.read_labels(mine.begin, mine.end, 1); });
  expect_error("has no /nodes/journal/features", [&] { file.read_features<float>(9, 9, 1); });
}

// A file of 2^31 columns and more, none of which has an entry.
TEST(TypedFile, LongColumnsThatDoNotFit32Bits) {
  const std::int64_t n = (std::int64_t{1} << 31) / 255;
  std::vector<Relation> relations;
  for (int r = 0; r < kMostRelations; ++r) relations.push_back({"r" + std::to_string(r), 0, 0});
  const auto path = test_folder("typed-file-long") + "/graph.h5";
  const auto mine = range_of(n, 0);
  {
    GraphWriter writer(test_world(), path);
    const Schema schema({{"a", 0, n}}, relations);
    Csr<std::int64_t> rows;
    rows.rows = mine.size();
    rows.columns = schema.columns();
    rows.indptr.assign(rows.rows + 1, 0);
    if (mine.end == n) {  // the very last column
      rows.indptr.back() = 1;
      rows.indices.push_back(schema.columns() - 1);
    }
    writer.write_schema(schema);
    writer.write_adjacency(rows);
    writer.commit({"wide", "", true});
  }
  const GraphFile file(test_world(), path, view_of(true));
  EXPECT_EQ(file.info().columns, n * kMostRelations);
  expect_error("columns of its relations do not fit 32-bit ids",
               [&] { file.read_rows<std::int32_t>(mine.begin, mine.end); });
  const auto rows = file.read_rows<std::int64_t>(mine.begin, mine.end);
  if (mine.end == n) EXPECT_EQ(rows.indices.back(), n * kMostRelations - 1);
  const GraphFile together(test_world(), path, view_of(false));
  const auto narrow = together.read_rows<std::int32_t>(mine.begin, mine.end);
  if (mine.end == n) EXPECT_EQ(narrow.indices.back(), n - 1);
  test_folder("typed-file-long");
}

}  // namespace
}  // namespace espalier
