// ranks: 1 2 3 8
// long ranks: 4 6
// Laws: a generated graph depends on its options and seed, not on the number of ranks; R-MAT's
// quadrants, the planted degree and homophily, and the splits are as asked; features alone are a
// poor guide to the class, neighbourhoods a good one.
#include "espalier/graph/generate.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <set>

#include "espalier/base/row_range.hpp"
#include "espalier/file/hdf5_output.hpp"
#include "graph/generated.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

// Everything in a graph file.
struct Content {
  Csr<std::int64_t> a;
  Matrix<float> features;
  Buffer<std::int32_t> labels;          // none where there are several per vertex
  Matrix<std::uint8_t> several_labels;  // the other way round
  Buffer<std::int64_t> train, valid, test;
  GraphInfo info;
};

Content read_all(const Communicator& comm, const std::string& path) {
  const GraphFile file(comm, path);
  check_splits(comm, file);
  const auto n = file.info().nodes;
  return {file.read_rows<std::int64_t>(0, n),
          file.read_features<float>(0, n),
          file.info().multi_label ? Buffer<std::int32_t>() : file.read_labels(0, n),
          file.info().multi_label ? file.read_multi_labels(0, n) : Matrix<std::uint8_t>(),
          file.read_split(Split::kTrain),
          file.read_split(Split::kValid),
          file.read_split(Split::kTest),
          file.info()};
}

TEST(Generate, GraphsAreTheSameForEveryRankCount) {
  for (const auto& [options, vertices] :
       std::vector<std::pair<RmatOptions, VertexOptions>>{{{9, 8, false, false}, {5, 3, 42, false}},
                                                          {{1, 3, true, true}, {1, 1, 7, true}},
                                                          {{6, 8, false, false}, {5, 3, 42, false, 2}}})
    same_for_every_rank_count([&](const Communicator& comm, const std::string& path) {
      generate_rmat(comm, options, vertices, path);
    });
  for (const auto& [options, vertices] :
       std::vector<std::pair<PlantedOptions, VertexOptions>>{{{1001, 7, 0.7}, {6, 5, 42, false}},
                                                             {{5, 1, 0.5}, {2, 2, 3, true}},
                                                             {{1001, 7, 0.7}, {6, 5, 42, false, 4}}})
    same_for_every_rank_count([&](const Communicator& comm, const std::string& path) {
      generate_planted(comm, options, vertices, path);
    });
}

// Each rank makes all of a graph in its own memory, and all read it together.
TEST(Generate, InMemoryIsTheSameGraph) {
  const auto& world = test_world();
  const auto path = test_folder("generate") + "/graph.h5";
  const PlantedOptions options = {501, 7, 0.7};
  const VertexOptions vertices = {6, 5, 42, false, 0, 3};
  generate_planted(world, options, vertices, path);
  hdf5::WrittenBytes bytes;
  generate_planted(world.split(world.rank(), 0), options, vertices, bytes);
  const GraphFile on_disk(world, path), in_memory(world, "in memory", bytes, {});
  read_everything(world, on_disk);
  read_everything(world, in_memory);
  ASSERT_TRUE(in_memory.has_digest());
  EXPECT_EQ(in_memory.content().datasets, on_disk.content().datasets);
  EXPECT_EQ(in_memory.content().file, on_disk.content().file);
}

TEST(Generate, AGraphThatIsCutOffInMemoryIsRefused) {
  hdf5::WrittenBytes damaged;
  generate_planted(test_world().split(test_world().rank(), 0), {501, 7, 0.7}, {6, 5, 42, false}, damaged);
  damaged.resize(damaged.size() / 2);
  EXPECT_THROW(GraphFile(test_world(), "in memory", damaged, {}), UserError);
}

// The graph is the same with one label and with several, so classes are known.
TEST(Generate, AClassImpliesMostOfItsVerticesLabels) {
  const auto path = test_folder("generate") + "/graph.h5";
  generate_planted(test_world(), {6000, 7, 0.7}, {6, 4, 9, false}, path);
  const auto one = read_all(test_world(), path);
  generate_planted(test_world(), {6000, 7, 0.7}, {6, 4, 9, false, 10}, {path, true});
  const auto several = read_all(test_world(), path);
  EXPECT_EQ(one.a.indices, several.a.indices);
  EXPECT_EQ(one.features.data, several.features.data);
  ASSERT_TRUE(several.info.multi_label);
  ASSERT_EQ(several.info.classes, 10);
  std::map<std::pair<std::int32_t, std::int64_t>, std::array<std::int64_t, 3>> counts;
  for (std::int64_t v = 0; v < 6000; ++v)
    for (std::int64_t k = 0; k < 10; ++k) {
      const auto label = several.several_labels(v, k);
      ++counts[{one.labels[static_cast<std::size_t>(v)], k}][label == kUnknownLabel ? 2 : label];
    }
  std::int64_t implied = 0;
  for (const auto& [key, count] : counts) {
    EXPECT_NEAR(static_cast<double>(count[2]) / 1500, 0.05, 0.03) << "five deviations";
    const auto most = std::max(count[0], count[1]), least = std::min(count[0], count[1]);
    EXPECT_NEAR(static_cast<double>(least) / 1500, 0.1, 0.04);
    EXPECT_GT(most, 1150);
    implied += count[1] > count[0];
  }
  EXPECT_GT(implied, 8);
  EXPECT_LT(implied, 32) << "of 40 pairs of class and label, about half";
}

TEST(Generate, SymmetrizedRmatIsSymmetricWithoutLoops) {
  const auto path = test_folder("generate") + "/graph.h5";
  generate_rmat(test_world(), {8, 8, true, true}, {4, 3, 1, false}, path);
  const auto g = read_all(test_world(), path);
  EXPECT_EQ(g.info.directed, false);
  for (std::int64_t v = 0; v < g.a.rows; ++v)
    for (const auto u : g.a.row_indices(v)) {
      const auto back = g.a.row_indices(u);
      EXPECT_TRUE(std::binary_search(back.begin(), back.end(), v)) << u << " " << v;
      EXPECT_NE(u, v);
    }
}

// Each level of each edge picks A, B, C, D with .57, .19, .19, .05, independently of the
// other levels.
TEST(Generate, RmatQuadrantsHaveTheirProbabilities) {
  if (test_world().rank() != 0) return;
  const std::int64_t edges = 200000, scale = 20;
  const double wanted[] = {0.57, 0.19, 0.19, 0.05};
  std::int64_t counts[20][4] = {}, both_a = 0;
  for (std::int64_t e = 0; e < edges; ++e) {
    const auto edge = rmat_edge(test_seed(3), e, scale);
    for (std::int64_t level = 0; level < scale; ++level)
      ++counts[level]
              [2 * (edge.source >> (scale - 1 - level) & 1) + (edge.target >> (scale - 1 - level) & 1)];
    both_a += ((edge.source | edge.target) >> (scale - 2)) == 0;
  }
  const auto within = [&](std::int64_t count, double p) {
    return std::abs(static_cast<double>(count) - edges * p) < 5 * std::sqrt(edges * p * (1 - p));
  };
  for (std::int64_t level = 0; level < scale; ++level)
    for (int q = 0; q < 4; ++q)
      EXPECT_TRUE(within(counts[level][q], wanted[q])) << level << " " << q << " " << counts[level][q];
  EXPECT_TRUE(within(both_a, 0.57 * 0.57)) << both_a;
}

TEST(Generate, RmatDegreesDoNotFollowIds) {
  const auto path = test_folder("generate") + "/graph.h5";
  generate_rmat(test_world(), {12, 16, false, false}, {0, 3, 1, false}, path);
  const GraphFile file(test_world(), path);
  const auto a = file.read_rows<std::int32_t>(0, file.info().nodes);
  // Before scrambling the lower half of the ids has 76 % of the edges.
  EXPECT_NEAR(static_cast<double>(a.indptr[2048]) / static_cast<double>(a.entries()), 0.5, 0.06);
  EXPECT_EQ(file.info().features, 0);
}

TEST(Generate, PlantedHasItsDegreeAndHomophily) {
  const auto path = test_folder("generate") + "/graph.h5";
  for (const double homophily : {0.0, 0.35, 0.8, 1.0}) {
    generate_planted(test_world(), {3000, 40, homophily}, {1, 7, test_seed(5), false}, {path, true});
    const auto g = read_all(test_world(), path);
    std::int64_t same = 0, loops = 0;
    std::vector<std::int64_t> sizes(7, 0);
    for (std::int64_t v = 0; v < g.a.rows; ++v) {
      ++sizes[static_cast<std::size_t>(g.labels[static_cast<std::size_t>(v)])];
      for (const auto u : g.a.row_indices(v)) {
        same += g.labels[static_cast<std::size_t>(u)] == g.labels[static_cast<std::size_t>(v)];
        loops += u == v;
      }
    }
    // 60,000 edges; merged draws are made up for, so only their number varies, by less
    // than its root.
    EXPECT_NEAR(static_cast<double>(g.a.entries()) / 3000, 40, 0.25);
    EXPECT_NEAR(static_cast<double>(same) / static_cast<double>(g.a.entries()), homophily, 0.006);
    EXPECT_EQ(loops, 0);
    for (const auto size : sizes) EXPECT_NEAR(static_cast<double>(size), 3000.0 / 7, 1);
    EXPECT_NEAR(static_cast<double>(g.train.size()), 1800, 135);
    EXPECT_NEAR(static_cast<double>(g.valid.size()), 600, 110);
    EXPECT_EQ(g.train.size() + g.valid.size() + g.test.size(), 3000u);
  }
}

TEST(Generate, TheGraphHelpsWhereFeaturesAloneDoNot) {
  const auto path = test_folder("generate") + "/graph.h5";
  for (const std::int64_t columns : {8, 64}) {
    generate_planted(test_world(), {4000, 12, 0.8}, {columns, 8, test_seed(5), false}, {path, true});
    const auto g = read_all(test_world(), path);
    auto around = g.features;
    for (std::int64_t v = 0; v < g.a.rows; ++v)
      for (const auto u : g.a.row_indices(v))
        for (std::int64_t k = 0; k < columns; ++k) around(v, k) += g.features(u, k);
    const auto accuracy = [&](const Matrix<float>& h) {
      return nearest_mean_accuracy(h, g.labels, g.info.classes, g.train, g.test);
    };
    const double alone = accuracy(g.features), together = accuracy(around);
    EXPECT_GT(alone, 0.25) << "above chance, 0.125";
    EXPECT_LT(alone, 0.70);
    EXPECT_GT(together, 0.80);
    EXPECT_GT(together, alone + 0.2);
  }
}

TEST(Generate, SeedsMatterAndHalfIsRoundedFloat) {
  const auto folder = test_folder("generate");
  const PlantedOptions options{200, 6, 0.8};
  generate_planted(test_world(), options, {4, 3, 1, false}, folder + "/a.h5");
  generate_planted(test_world(), options, {4, 3, 2, false}, folder + "/b.h5");
  generate_planted(test_world(), options, {4, 3, 1, true}, folder + "/c.h5");
  const auto a = read_all(test_world(), folder + "/a.h5"), b = read_all(test_world(), folder + "/b.h5"),
             c = read_all(test_world(), folder + "/c.h5");
  EXPECT_NE(a.a.indices, b.a.indices);
  EXPECT_NE(a.labels, b.labels);
  EXPECT_NE(a.train, b.train);
  EXPECT_EQ(a.a.indices, c.a.indices);
  for (std::size_t i = 0; i < a.features.data.size(); ++i)
    EXPECT_EQ(to_float(to_half(a.features.data[i])), c.features.data[i]);
}

TEST(Generate, RefusesNumbersThatMakeNoSense) {
  const auto path = test_folder("generate") + "/graph.h5";
  const auto& world = test_world();
  const VertexOptions good{4, 4, 0, false};
  const auto expect_usage = [](const auto& run) { expect_refused(ExitCode::kUsage, {}, run); };
  for (const std::int64_t scale : {0, 41, -1})
    expect_usage([&] { generate_rmat(world, {scale, 16, false, false}, good, path); });
  expect_usage([&] { generate_rmat(world, {5, 0, false, false}, good, path); });
  expect_usage([&] { generate_rmat(world, {5, 1, false, false}, {-1, 4, 0, false}, path); });
  expect_usage([&] { generate_rmat(world, {5, 1, false, false}, {4, 0, 0, false}, path); });
  expect_usage([&] { generate_planted(world, {7, 2, 0.5}, good, path); });
  expect_usage([&] { generate_planted(world, {100, -1, 0.5}, good, path); });
  expect_usage([&] { generate_planted(world, {100, 200, 0.5}, good, path); });
  expect_usage([&] { generate_planted(world, {100, 5, 1.01}, good, path); });
  expect_usage([&] { generate_planted(world, {100, std::nan(""), 0.5}, good, path); });
  // No other class.
  expect_usage([&] { generate_planted(world, {100, 5, 0.5}, {4, 1, 0, false}, path); });
  world.barrier();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Scramble, IsABijectionAndItsInverse) {
  for (std::int64_t n = 1; n <= 130; ++n) {
    const Scramble scramble(n, {test_seed(9), FilePurpose::kTest});
    std::set<std::int64_t> ids;
    for (std::int64_t x = 0; x < n; ++x) {
      const auto id = scramble(x);
      EXPECT_GE(id, 0);
      EXPECT_LT(id, n);
      EXPECT_EQ(scramble.inverse(id), x);
      ids.insert(id);
    }
    EXPECT_EQ(static_cast<std::int64_t>(ids.size()), n);
  }
  const std::int64_t large = (std::int64_t{1} << 40) - 12345;
  const Scramble scramble(large, {1, FilePurpose::kTest});
  for (std::int64_t x = 0; x < large; x += large / 1000) EXPECT_EQ(scramble.inverse(scramble(x)), x);
}

TEST(RowRange, RangesCoverAllRowsAndOwnersKnowThem) {
  for (const std::int64_t n : {1, 2, 7, 8, 100, 1001})
    for (const std::int64_t p : {1, 2, 3, 7, 8, 16}) {
      std::int64_t next = 0;
      for (std::int64_t r = 0; r < p; ++r) {
        const auto range = even_range(n, p, r);
        EXPECT_EQ(range.begin, next);
        next = range.end;
        for (auto v = range.begin; v < range.end; ++v) EXPECT_EQ(even_owner(n, p, v), r);
      }
      EXPECT_EQ(next, n);
    }
}

}  // namespace
}  // namespace espalier
