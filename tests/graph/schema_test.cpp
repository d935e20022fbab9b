// Laws: columns are the pairs (relation, source), once each, ascending as the pairs do; a name
// finds what has it; what does not fit together is refused in words.
#include "espalier/graph/schema.hpp"

#include <gtest/gtest.h>

#include <random>
#include <stdexcept>

#include "mpi_test.hpp"

namespace espalier {
namespace {

// Types of these sizes, called t0, t1, ..., one behind the other.
std::vector<VertexType> types_of(const std::vector<std::int64_t>& sizes) {
  std::vector<VertexType> types;
  std::int64_t end = 0;
  for (const auto size : sizes) {
    types.push_back({"t" + std::to_string(types.size()), end, end + size});
    end += size;
  }
  return types;
}

// Every vertex has its type; every column is met once, in the order of (relation, source), and says
// what it is.
void expect_bijection(const Schema& schema) {
  for (int t = 0; t < std::ssize(schema.types()); ++t)
    for (auto v = schema.types()[t].begin; v < schema.types()[t].end; ++v) EXPECT_EQ(schema.type_of(v), t);
  EXPECT_EQ(schema.nodes(), schema.types().back().end);
  std::int64_t column = 0;
  for (int r = 0; r < std::ssize(schema.relations()); ++r) {
    EXPECT_EQ(schema.begin(r), column);
    const auto& source = schema.types()[schema.relations()[r].source];
    for (auto u = source.begin; u < source.end; ++u, ++column) {
      EXPECT_EQ(schema.column(r, u), column);
      EXPECT_EQ(schema.relation_of(column), r) << column;
      EXPECT_EQ(schema.vertex_of(column), u) << column;
    }
  }
  EXPECT_EQ(schema.columns(), column);
}

// Types and relations without any column in front, between and behind.
TEST(Schema, RandomSchemas) {
  const auto seed = test_seed(11);
  SCOPED_TRACE("ESPALIER_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::int64_t> sizes(1 + random() % 6);
    for (auto& size : sizes) size = static_cast<std::int64_t>(random() % 5);
    std::vector<Relation> relations(1 + random() % 9);
    for (std::size_t r = 0; r < relations.size(); ++r)
      relations[r] = {"r" + std::to_string(r), static_cast<int>(random() % sizes.size()),
                      static_cast<int>(random() % sizes.size())};
    expect_bijection(Schema(types_of(sizes), relations));
  }
}

TEST(Schema, AsManyAsThereMayBe) {
  std::vector<Relation> relations;
  for (int r = 0; r < kMostRelations; ++r) relations.push_back({"r" + std::to_string(r), r, (r * 7) % 256});
  expect_bijection(Schema(types_of(std::vector<std::int64_t>(kMostTypes, 2)), relations));
}

// A graph without types is one whose columns are vertices, whether it was written so or not.
TEST(Schema, OneTypeAndOneRelationArePlain) {
  for (const auto& schema : {Schema(7), Schema(types_of({7}), {{"x", 0, 0}})}) {
    EXPECT_TRUE(schema.plain());
    EXPECT_EQ(schema.columns(), 7);
    EXPECT_EQ(schema.nodes(), 7);
    EXPECT_EQ(schema.on_host().begins, nullptr);
    expect_bijection(schema);
  }
  EXPECT_FALSE(Schema(types_of({7}), {{"x", 0, 0}, {"y", 0, 0}}).plain());
  EXPECT_FALSE(Schema(types_of({7, 0}), {{"x", 0, 0}}).plain());
  EXPECT_EQ(Schema(7).full_name(0), "vertex.edge.vertex");
  EXPECT_EQ(Schema().nodes(), 0);
}

TEST(Schema, NamesFindWhatHasThem) {
  const Schema schema({{"author", 0, 3}, {"paper", 3, 8}},
                      {{"writes", 0, 1}, {"cites", 1, 1}, {"near", 0, 0}, {"near", 1, 1}, {"near", 0, 1}});
  EXPECT_EQ(schema.find_type("author"), 0);
  EXPECT_EQ(schema.find_type("paper"), 1);
  for (const char* name : {"", "pape", "papers", "Paper"}) EXPECT_EQ(schema.find_type(name), -1) << name;
  for (int r = 0; r < 5; ++r) EXPECT_EQ(schema.find_relation(schema.full_name(r)), r);
  EXPECT_EQ(schema.full_name(0), "author.writes.paper");
  EXPECT_EQ(schema.find_relation("writes"), 0);
  EXPECT_EQ(schema.find_relation("cites"), 1);
  EXPECT_EQ(schema.find_relation("near"), -1) << "three have it";
  for (const char* name : {"", "write", "paper.writes.author", "author.writes", "writes.paper"})
    EXPECT_EQ(schema.find_relation(name), -1) << name;
  EXPECT_EQ(schema.type_names(), "author, paper");
  EXPECT_EQ(Schema(types_of({1}), {{"a", 0, 0}, {"b", 0, 0}}).relation_names(), "t0.a.t0, t0.b.t0");
}

TEST(Schema, InversesPointAtEachOther) {
  const Schema schema(types_of({3, 5}), {{"writes", 0, 1, 2}, {"like", 1, 1, 1}, {"rev_writes", 1, 0, 0}});
  EXPECT_EQ(schema.relations()[0].inverse, 2);
  EXPECT_EQ(schema.relations()[1].inverse, 1) << "one that is its own";
}

void expect_refusal(const std::string& words, std::vector<VertexType> types,
                    std::vector<Relation> relations) {
  try {
    const Schema schema(std::move(types), std::move(relations));
    ADD_FAILURE() << "accepted, wanted: " << words;
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos)
        << error.what() << "\nlacks: " << words;
  }
}

TEST(Schema, RefusesTypesThatAreNoCover) {
  const std::vector<Relation> one = {{"r", 0, 0}};
  expect_refusal("0 vertex types, give 1 to 256", {}, one);
  expect_refusal("257 vertex types", types_of(std::vector<std::int64_t>(257, 1)), one);
  expect_refusal("the vertices of type a are [1, 3), but 0 is the next", {{"a", 1, 3}}, one);
  expect_refusal("the vertices of type b are [4, 5), but 3 is the next", {{"a", 0, 3}, {"b", 4, 5}}, one);
  expect_refusal("the vertices of type b are [2, 5), but 3 is the next", {{"a", 0, 3}, {"b", 2, 5}}, one);
  expect_refusal("the vertices of type b are [3, 2), but 3 is the next", {{"a", 0, 3}, {"b", 3, 2}}, one);
}

TEST(Schema, RefusesNames) {
  const std::vector<Relation> one = {{"r", 0, 0}};
  expect_refusal("two vertex types are called a", {{"a", 0, 3}, {"a", 3, 5}}, one);
  expect_refusal("a vertex type without a name", {{"", 0, 3}}, one);
  expect_refusal("a relation without a name", types_of({3}), {{"", 0, 0}});
  for (const char* name : {"a.b", "a/b", "a b", "a=b", "a,b", "caf\xc3\xa9", "a\"b", "a\n"}) {
    expect_refusal("names hold letters, digits, '_' and '-'", {{name, 0, 3}}, one);
    expect_refusal("names hold letters, digits, '_' and '-'", types_of({3}), {{name, 0, 0}});
  }
  expect_refusal("two relations are called t0.r.t1", types_of({3, 3}),
                 {{"r", 0, 1}, {"r", 1, 0}, {"r", 0, 1}});
  const Schema fits({{"A-z_09", 0, 3}}, {{"rev_B-2", 0, 0}});
  EXPECT_EQ(fits.full_name(0), "A-z_09.rev_B-2.A-z_09");
}

TEST(Schema, RefusesRelationsThatDoNotFit) {
  expect_refusal("0 relations, give 1 to 256", types_of({3}), {});
  expect_refusal("257 relations", types_of({3}), std::vector<Relation>(257, {"r", 0, 0}));
  expect_refusal("relation r is of type 2, of 2", types_of({3, 3}), {{"r", 2, 0}});
  expect_refusal("relation r is of type 7, of 2", types_of({3, 3}), {{"r", 0, 7}});
  expect_refusal("relation r is of type -1, of 2", types_of({3, 3}), {{"r", 0, -1}});
}

TEST(Schema, RefusesInversesThatDoNotFit) {
  const auto types = types_of({3, 3});
  expect_refusal("the inverse of relation t0.a.t1 is 1, of 1", types, {{"a", 0, 1, 1}});
  expect_refusal("the inverse of relation t0.a.t1 is -2, of 1", types, {{"a", 0, 1, -2}});
  expect_refusal("relation t0.a.t1 cannot be the inverse of t0.a.t1", types, {{"a", 0, 1, 0}});
  expect_refusal("relation t1.b.t0 cannot be the inverse of t0.a.t1", types,
                 {{"a", 0, 1, 1}, {"b", 1, 0, -1}});
  expect_refusal("relation t0.b.t1 cannot be the inverse of t0.a.t1", types,
                 {{"a", 0, 1, 1}, {"b", 0, 1, 0}});
  expect_refusal("relation t1.b.t1 cannot be the inverse of t0.a.t1", types,
                 {{"a", 0, 1, 1}, {"b", 1, 1, 0}});
  expect_refusal("relation t1.b.t0 cannot be the inverse of t0.a.t1", types,
                 {{"a", 0, 1, 1}, {"b", 1, 0, 2}, {"c", 0, 1, 1}});
}

}  // namespace
}  // namespace espalier
