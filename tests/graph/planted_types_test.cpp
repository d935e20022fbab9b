// ranks: 1 2 3 8
// long ranks: 4 6
// Laws: a generated graph with types depends on its options and seed, not on the number of ranks;
// relations have their edges and their homophily, inverses are transposes; neighbours of any type
// say what a vertex's class is; the first type is what it would be without types.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "espalier/graph/generate.hpp"
#include "graph/generated.hpp"
#include "graph/whole_graph.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

constexpr const char* kTypes = "paper=1500:8,author=900:5,field=40";
constexpr const char* kRelations = "author.writes.paper=6000,paper.cites.paper=9000,paper.about.field=4000";

// Everything in a graph file, read by `comm`, all of it on every rank.
struct TypedContent {
  GraphInfo info;
  Csr<std::int64_t> a;
  std::vector<Matrix<float>> features;  // [types]

  TypedContent(const Communicator& comm, const std::string& path) {
    const GraphFile file(comm, path, view_of(true));
    check_splits(comm, file);
    info = file.info();
    a = file.read_rows<std::int64_t>(0, info.nodes);
    for (int t = 0; t < std::ssize(info.types); ++t) {
      const auto& type = info.schema.types()[t];
      features.push_back(info.types[t].features > 0 ? file.read_features<float>(type.begin, type.end, t)
                                                    : Matrix<float>());
    }
    if (!info.multi_label) labels = file.read_labels(0, info.schema.types()[0].end);
    for (const auto split : {Split::kTrain, Split::kValid, Split::kTest})
      splits.push_back(file.read_split(split));
  }

  // The edges of a relation as (source, target).
  std::set<std::pair<std::int64_t, std::int64_t>> edges(int relation) const {
    std::set<std::pair<std::int64_t, std::int64_t>> found;
    for (std::int64_t v = 0; v < a.rows; ++v)
      for (const auto column : a.row_indices(v))
        if (info.schema.relation_of(column) == relation) found.insert({info.schema.vertex_of(column), v});
    return found;
  }

  Buffer<std::int32_t> labels;  // of the first type
  std::vector<Buffer<std::int64_t>> splits;
};

TypedContent generate_typed(const TypedGraphOptions& options, const VertexOptions& vertices) {
  const auto path = test_folder("planted-types") + "/graph.h5";
  generate_planted_types(test_world(), options, vertices, path);
  return TypedContent(test_world(), path);
}

// ---- any number of ranks ----

std::string digest_of(const TypedGraphOptions& options, const VertexOptions& vertices) {
  return same_for_every_rank_count([&](const Communicator& comm, const std::string& path) {
    generate_planted_types(comm, options, vertices, path);
  });
}

TEST(PlantedTypes, AreTheSameForEveryRankCount) {
  const auto plain = digest_of({kTypes, kRelations}, {0, 5, 42});
  EXPECT_EQ(plain, "ef1dc496b552aff2") << "pinned: what a seed means";
  std::set<std::string> seen = {plain};
  seen.insert(digest_of({kTypes, kRelations, false}, {0, 5, 42}));
  seen.insert(digest_of({kTypes, kRelations, true, 0.3}, {0, 5, 42}));
  seen.insert(digest_of({kTypes, kRelations}, {0, 6, 42}));
  seen.insert(digest_of({kTypes, kRelations}, {0, 5, 43}));
  seen.insert(digest_of({kTypes, kRelations}, {0, 5, 42, true}));
  seen.insert(digest_of({kTypes, kRelations}, {0, 5, 42, false, 4}));
  EXPECT_EQ(seen.size(), 7u) << "every option matters";
}

TEST(PlantedTypes, AFewVerticesAreTheSameForEveryRankCount) {
  digest_of({"a=2:3,b=1:1", "a.x.b=1,a.y.a=1", true, 1}, {0, 1, 7});
}

// ---- what was asked for ----

TEST(PlantedTypes, SchemasAreAsAsked) {
  const auto g = generate_typed({kTypes, kRelations}, {0, 5, 1});
  EXPECT_EQ(g.info.schema.type_names(), "paper, author, field");
  EXPECT_EQ(g.info.schema.relation_names(),
            "author.writes.paper, paper.cites.paper, paper.about.field, paper.rev_writes.author, "
            "paper.rev_cites.paper, field.rev_about.paper");
  const int inverses[] = {3, 4, 5, 0, 1, 2};
  for (int r = 0; r < 6; ++r) EXPECT_EQ(g.info.schema.relations()[r].inverse, inverses[r]);
  EXPECT_EQ(g.info.schema.types()[1].begin, 1500);
  EXPECT_EQ(g.info.nodes, 2440);
  const std::int64_t features[] = {8, 5, 0};
  for (int t = 0; t < 3; ++t) {
    EXPECT_EQ(g.info.types[t].features, features[t]);
    EXPECT_EQ(g.info.types[t].has_labels, t == 0);
    EXPECT_EQ(g.info.types[t].train > 0, t == 0);
  }
  EXPECT_EQ(g.info.target, 0);
  EXPECT_EQ(g.info.classes, 5);
  EXPECT_EQ(g.info.directed, false);
  EXPECT_EQ(
      g.info.source,
      fmt::format("espalier generate planted --types {} --relations {} --homophily 0.8 --classes 5 --seed 1",
                  kTypes, kRelations));
  EXPECT_EQ(generate_typed({kTypes, kRelations, false}, {0, 5, 1}).info.schema.relations().size(), 3u);
}

TEST(PlantedTypes, InversesAreTransposes) {
  const auto g = generate_typed({kTypes, kRelations}, {0, 5, test_seed(2)});
  for (int r = 0; r < 3; ++r) {
    std::set<std::pair<std::int64_t, std::int64_t>> reversed;
    for (const auto& [source, target] : g.edges(g.info.schema.relations()[r].inverse))
      reversed.insert({target, source});
    EXPECT_EQ(g.edges(r), reversed) << r;
  }
  const auto forward = generate_typed({kTypes, kRelations, false}, {0, 5, test_seed(2)});
  for (int r = 0; r < 3; ++r) EXPECT_EQ(g.edges(r), forward.edges(r)) << "with inverses or without";
}

// The class of a vertex is that of its position before ids were scrambled, type by type.
std::int64_t class_of(const GraphInfo& info, std::int64_t vertex, std::int64_t classes, std::uint64_t seed) {
  const auto t = info.schema.type_of(vertex);
  const auto& type = info.schema.types()[t];
  FileStream stream{seed, FilePurpose::kGenerateEdges};
  stream.layer = 1 | static_cast<std::uint64_t>(t) << 16;
  return Scramble(type.size(), stream).inverse(vertex - type.begin) % classes;
}

TEST(PlantedTypes, RelationsHaveTheirEdgesAndHomophily) {
  const auto seed = test_seed(4);
  SCOPED_TRACE(fmt::format("ESPALIER_TEST_SEED={}", seed));
  const double wanted[] = {6000, 9000, 4000};
  for (const double homophily : {0.0, 0.5, 0.8, 1.0}) {
    // 4,000 of the 12,000 pairs of a paper and a field in one class: many draws meet another.
    const auto g = generate_typed({kTypes, kRelations, true, homophily}, {0, 5, seed});
    for (int r = 0; r < 6; ++r) {
      const auto edges = g.edges(r);
      // Merged draws are made up for, so only their number varies, by less than its root.
      EXPECT_NEAR(static_cast<double>(edges.size()), wanted[r % 3], 5 * std::sqrt(wanted[r % 3] / 4)) << r;
      std::int64_t same = 0;
      for (const auto& [u, v] : edges) {
        same += class_of(g.info, u, 5, seed) == class_of(g.info, v, 5, seed);
        EXPECT_NE(u, v);
      }
      EXPECT_NEAR(static_cast<double>(same) / static_cast<double>(edges.size()), homophily, 0.02) << r;
    }
    for (std::int64_t v = 0; v < 1500; v += 7) EXPECT_EQ(g.labels[v], class_of(g.info, v, 5, seed));
  }
}

// Sources and targets are drawn evenly: no vertex, and no class, has far more edges than others.
TEST(PlantedTypes, EdgesAreSpreadEvenly) {
  const auto seed = test_seed(6);
  const auto g = generate_typed({"a=50,b=130", "a.x.b=1500,b.y.b=3000", true, 0.4}, {0, 7, seed});
  for (int r = 0; r < 4; ++r) {
    const auto& relation = g.info.schema.relations()[r];
    for (const bool of_source : {true, false}) {
      std::vector<std::int64_t> degrees(g.info.nodes, 0);
      for (const auto& [u, v] : g.edges(r)) ++degrees[of_source ? u : v];
      const auto& type = g.info.schema.types()[of_source ? relation.source : relation.target];
      const double mean = (r % 2 == 0 ? 1500.0 : 3000.0) / static_cast<double>(type.size());
      for (auto v = type.begin; v < type.end; ++v)
        EXPECT_NEAR(static_cast<double>(degrees[v]), mean, 0.2 * mean + 5 * std::sqrt(mean)) << r << " " << v;
    }
  }
}

TEST(PlantedTypes, OneTypeAndOneRelation) {
  const auto g = generate_typed({"page=600:4", "page.links.page=5000", false, 0.7}, {0, 3, test_seed(5)});
  EXPECT_TRUE(g.info.typed);
  EXPECT_TRUE(g.info.schema.plain());
  EXPECT_EQ(g.info.columns, 600);
  EXPECT_EQ(g.info.directed, true);
  std::int64_t same = 0;
  for (const auto& [u, v] : g.edges(0)) same += g.labels[u] == g.labels[v];
  EXPECT_NEAR(static_cast<double>(same) / static_cast<double>(g.a.entries()), 0.7, 0.02);
}

// ---- vertices ----

TEST(PlantedTypes, TheFirstTypeIsWhatItIsWithoutTypes) {
  for (const std::int64_t several : {0, 3}) {
    const VertexOptions vertices{8, 5, 42, false, several};
    const auto typed = generate_typed({kTypes, kRelations}, vertices);
    const auto path = test_folder("planted-types") + "/plain.h5";
    generate_planted(test_world(), {1500, 6, 0.8}, vertices, path);
    const GraphFile plain(test_world(), path);
    EXPECT_EQ(typed.features[0].data, plain.read_features<float>(0, 1500).data);
    for (const auto split : {Split::kTrain, Split::kValid, Split::kTest})
      EXPECT_EQ(typed.splits[static_cast<std::size_t>(split)], plain.read_split(split));
    EXPECT_EQ(typed.info.multi_label, several > 0);
    EXPECT_EQ(typed.info.content.datasets.at("/nodes/paper/labels"),
              plain.info().content.datasets.at("/nodes/labels"));
  }
}

TEST(PlantedTypes, TypesHaveFeaturesOfTheirOwn) {
  const auto g = generate_typed({"a=200:6,b=200:6,c=100:3", "a.x.b=400"}, {0, 4, 3});
  EXPECT_NE(g.features[0].data, g.features[1].data);
  // Where noise were shared, features would differ by centroids: 4 x 4 values, but for rounding.
  for (const int other : {1, 2}) {
    std::set<std::int64_t> differences;
    for (int v = 0; v < 100; ++v)
      differences.insert(std::llround(1000 * (g.features[other](v, 0) - g.features[0](v, 0))));
    EXPECT_GT(differences.size(), 90u);
  }
}

TEST(PlantedTypes, RelationsHaveDrawsOfTheirOwn) {
  const auto g = generate_typed({"a=300,b=200", "a.x.b=1000,a.y.b=1000", false}, {0, 4, 3});
  const auto x = g.edges(0), y = g.edges(1);
  std::int64_t both = 0;
  for (const auto& edge : x) both += y.contains(edge);
  EXPECT_LT(both, 100) << "by chance some 43: 800 of 15,000 pairs, twice";
}

// Papers have no features at all; those of their neighbours, of another type, say what they are.
TEST(PlantedTypes, NeighboursOfAnotherTypeTellTheClass) {
  const auto g = generate_typed(
      {"paper=3000,author=2000:16,field=64:16", "author.writes.paper=36000,paper.about.field=12000"},
      {0, 8, test_seed(5)});
  const auto& schema = g.info.schema;
  for (const char* name : {"author.writes.paper", "field.rev_about.paper"}) {
    const int r = schema.find_relation(name);
    const int t = schema.relations()[r].source;
    auto around = filled_matrix(3000, 16, 0.0);
    for (const auto& [u, v] : g.edges(r))
      for (std::int64_t k = 0; k < 16; ++k) around(v, k) += g.features[t](u - schema.types()[t].begin, k);
    EXPECT_GT(nearest_mean_accuracy(around, g.labels, g.info.classes, g.splits[0], g.splits[2]), 0.6)
        << name << ": chance is 0.125";
  }
}

// ---- what makes no sense ----

void refuse(const std::string& words, const TypedGraphOptions& options, std::int64_t classes = 4) {
  const auto path = test_folder("planted-types") + "/graph.h5";
  expect_refused(ExitCode::kUsage, {words}, [&] {
    generate_planted_types(test_world(), options, {0, classes, 0}, path);
  });
  test_world().barrier();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(PlantedTypes, RefuseTypes) {
  const std::string good = "a.r.a=10";
  for (const char* types :
       {"", "a", "a=", "a=x", "a=10.5", "a=-1", "a=0", "a=10:", "a=10:x", "a=10:-1", "a=10:1:1", "a=10=10",
        "a=100,", ",a=100", "a=100 ", "a=1099511627777", "a=100,b=1099511627776"})
    refuse("give NAME=VERTICES[:FEATURES],..., as paper=20000:32,author=12000", {types, good});
  refuse("--types b:3: give NAME", {"a=100,b:3", good});
  refuse("two vertex types are called a", {"a=100,a=100", good});
  refuse("names hold letters, digits", {"a=100,b c=100", good});
  refuse("a vertex type without a name", {"a=100,=100", good});
  refuse("--types a=7: give at least 2 per class (8), for relation r", {"a=7", "a.r.a=1"});
  refuse("--types b=3: give at least 1 per class (4), for relation r", {"a=100,b=3", "a.r.b=1"});
}

TEST(PlantedTypes, RefuseRelations) {
  const std::string types = "a=100,b=100";
  for (const char* relations : {"", "a.r.b", "a.r.b=", "a.r.b=x", "a.r.b=-1", "r=5", "a.r=5", "a.r.b.c=5",
                                "a.r.b=5=6", "a.r.b=5,", "a.r.b=1e3", "a.r.b=99999999999999"})
    refuse("give SOURCE.NAME.TARGET=EDGES,..., as author.writes.paper=60000", {types, relations});
  refuse("--relations a.r.c=5: there is no type c; --types has a, b", {types, "a.r.b=5,a.r.c=5"});
  refuse("there is no type ", {types, ".r.b=5"});
  refuse("two relations are called a.r.b", {types, "a.r.b=5,a.s.b=5,a.r.b=6"});
  refuse("two relations are called b.rev_r.a", {types, "a.r.b=5,b.rev_r.a=5"});
  refuse("a relation without a name", {types, "a..b=5"});
  refuse("needs 9000 edges inside classes, but there are 2500 such pairs", {types, "a.r.b=9000", true, 1});
  refuse("needs 9000 edges between classes, but there are 7500 such pairs", {types, "a.r.b=9000", true, 0});
  refuse("needs 2 edges between classes, but there are 0 such pairs", {types, "a.r.b=10"}, 1);
  refuse("--homophily 1.1", {types, "a.r.b=10", true, 1.1});
  refuse("--homophily nan", {types, "a.r.b=10", true, std::nan("")});
  refuse("--classes 0", {types, "a.r.b=10"}, 0);
}

}  // namespace
}  // namespace espalier
