// ranks: 1 2 3 4
// Laws: links and their negatives that ranks wrote in parts are what is read, in whatever parts;
// names of vertices are kept, of types too. (Damaged files: tests/app/link_file_test.py; a graph
// without links: links_test.py.)
#include "espalier/graph/link_file.hpp"

#include <gtest/gtest.h>

#include "graph/whole_graph.hpp"

namespace espalier {
namespace {

constexpr std::int64_t kNodes = 40;

// All links of a split, the same on every rank.
struct SplitLinks {
  Links links;
  Matrix<std::int64_t> negative_heads, negative_tails;  // no column: none
};

SplitLinks make_links(std::int64_t count, std::int64_t relations, std::int64_t negatives,
                      std::mt19937_64& random) {
  SplitLinks whole;
  const auto vertex = [&] { return static_cast<std::int64_t>(random() % kNodes); };
  for (std::int64_t e = 0; e < count; ++e) {
    whole.links.heads.push_back(vertex());
    whole.links.tails.push_back(vertex());
    if (relations > 1) whole.links.relations.push_back(static_cast<std::int32_t>(random() % relations));
  }
  whole.negative_heads.resize(count, negatives);
  whole.negative_tails.resize(count, negatives > 0 ? negatives + 1 : 0);
  for (auto& id : whole.negative_heads.data) id = vertex();
  for (auto& id : whole.negative_tails.data) id = vertex();
  return whole;
}

Links part(const Links& whole, RowRange range) {
  const auto of = [&](const auto& all) { return all.empty() ? all : part(all, range.begin, range.end); };
  return {of(whole.heads), of(whole.tails), of(whole.relations)};
}

// A graph without edges.
Csr<std::int32_t> my_rows(std::int64_t nodes = kNodes) {
  const auto rows = even_range(nodes, test_world().size(), test_world().rank()).size();
  return matrix_of<std::int32_t>({}, rows, nodes, false);
}

void round_trip(std::int64_t count, std::vector<std::string> names, bool directed, std::int64_t negatives,
                int cut) {
  const auto seed = test_seed(5);
  SCOPED_TRACE(fmt::format("ESPALIER_TEST_SEED={} {} links, cut {}", seed, count, cut));
  std::mt19937_64 random(seed);
  LinkInfo info;
  info.directed = directed;
  info.names = std::move(names);
  const SplitLinks whole[] = {make_links(3 * count, info.relations(), 0, random),
                              make_links(count, info.relations(), negatives, random),
                              make_links(count / 2, info.relations(), 0, random)};
  const auto& world = test_world();
  const auto path = test_folder("link-file") + "/graph.h5";
  {
    GraphWriter writer(world, {path, true});
    writer.write_adjacency(my_rows());
    writer.write_link_relations(info);
    for (const auto split : {Split::kTrain, Split::kValid, Split::kTest}) {
      const auto& of = whole[static_cast<int>(split)];
      const auto mine = range_of(std::ssize(of.links.heads), cut);
      writer.write_links(split, part(of.links, mine));
      if (of.negative_heads.columns == 0) continue;
      writer.write_rows(Column::kNegativeHeads, static_cast<int>(split),
                        rows_of(of.negative_heads, mine.begin, mine.end));
      writer.write_rows(Column::kNegativeTails, static_cast<int>(split),
                        rows_of(of.negative_tails, mine.begin, mine.end));
    }
    writer.commit({"links", "a test", directed});
  }
  const GraphFile file(world, path);
  const auto& links = file.info().links;
  EXPECT_TRUE(links.exist);
  EXPECT_EQ(links.directed, directed);
  EXPECT_EQ(links.names, info.names);
  EXPECT_EQ(links.splits[1].negative_heads, negatives);
  EXPECT_EQ(links.splits[1].negative_tails, negatives > 0 ? negatives + 1 : 0);
  EXPECT_EQ(links.splits[0].negative_heads, 0);
  for (int other = 0; other < kWays; ++other)
    for (const auto split : {Split::kTrain, Split::kValid, Split::kTest}) {
      const auto& of = whole[static_cast<int>(split)];
      const auto all = std::ssize(of.links.heads);
      EXPECT_EQ(links.splits[static_cast<int>(split)].links, all);
      const auto mine = range_of(all, other);
      const auto got = file.read_links(split, mine.begin, mine.end), wanted = part(of.links, mine);
      EXPECT_EQ(got.heads, wanted.heads);
      EXPECT_EQ(got.tails, wanted.tails);
      EXPECT_EQ(got.relations, wanted.relations);
      if (of.negative_heads.columns == 0) continue;
      EXPECT_EQ(
          file.read<std::int64_t>(Column::kNegativeHeads, static_cast<int>(split), mine.begin, mine.end).data,
          rows_of(of.negative_heads, mine.begin, mine.end).data);
      EXPECT_EQ(
          file.read<std::int64_t>(Column::kNegativeTails, static_cast<int>(split), mine.begin, mine.end).data,
          rows_of(of.negative_tails, mine.begin, mine.end).data);
    }
  check_links(world, file);
  EXPECT_EQ(file.content().datasets, file.info().content.datasets);
  const GraphFile again(world, path, Verify::kRenew);
  read_everything(world, again);
  EXPECT_EQ(again.content().file, file.info().content.file);
}

TEST(LinkFile, RoundTrip) {
  for (int cut = 0; cut < kWays; ++cut) {
    round_trip(30, {}, false, 0, cut);
    round_trip(31, {"likes", "knows of", "\xc3\xa4hnelt"}, true, 5, cut);
  }
}
TEST(LinkFile, FewerLinksThanRanks) {
  round_trip(1, {"a"}, true, 1, 0);
  round_trip(2, {"a", "b"}, true, 2, 2);
}

// Names of the vertices [begin, end), of many lengths up to so many more letters than digits.
std::vector<std::string> names_of(std::int64_t begin, std::int64_t end, std::int64_t letters) {
  std::vector<std::string> names;
  for (auto v = begin; v < end; ++v)
    names.push_back(std::string(static_cast<std::size_t>(v % (letters + 1)), 'x') + fmt::format("{}", v));
  return names;
}

void check_names(std::int64_t nodes, std::int64_t letters) {
  const auto path = test_folder("names") + "/graph.h5";
  const auto& world = test_world();
  const auto mine = even_range(nodes, world.size(), world.rank());
  {
    GraphWriter writer(world, {path, true});
    writer.write_adjacency(my_rows(nodes));
    writer.write_texts(Column::kIds, 0, names_of(mine.begin, mine.end, letters));
    writer.commit({"names", "a test", true});
  }
  const GraphFile file(world, path);
  EXPECT_TRUE(file.info().ids == IdKind::kTexts);
  for (int cut = 0; cut < kWays; ++cut) {
    const auto range = range_of(nodes, cut);
    EXPECT_TRUE(file.read_texts(Column::kIds, 0, range.begin, range.end) ==
                names_of(range.begin, range.end, letters))
        << cut;
  }
  EXPECT_TRUE(file.other_datasets().empty());
}

TEST(LinkFile, NamesOfVertices) {
  check_names(kNodes, 6);
  if (test_world().size() < 3) check_names(40000, 1000);  // 40 MB, more than is written at once
}

}  // namespace
}  // namespace espalier
