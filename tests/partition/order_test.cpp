// ranks: 1 2 3 4
// Laws: what is written is read; an order whose numbers do not fit together is refused; of all cuts
// into stretches none has a smaller largest excess. (Formats, versions and digests:
// tests/file/archive_test.cpp; bytes on any number of ranks: tests/app/partition_test.py; damage:
// tests/faults/flips_test.py.)
#include "espalier/partition/order.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "espalier/base/error.hpp"
#include "espalier/base/philox.hpp"
#include "espalier/base/row_range.hpp"
#include "espalier/file/hdf5.hpp"
#include "files.hpp"
#include "mpi_test.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

constexpr std::int64_t kKinds = std::ssize(kBalanceNames);

Order random_order(std::int64_t nodes, int clusters, std::uint64_t seed) {
  Order order{{nodes, "a method", 0x0123456789abcdef, std::vector<ClusterWeights>(clusters)}, {}};
  for (std::int64_t v = 0; v < nodes; ++v) {
    const auto cluster =
        static_cast<std::uint16_t>(random_below({.seed = seed}, static_cast<std::uint64_t>(v), clusters));
    order.cluster.push_back(cluster);
    auto& weights = order.info.weights[cluster];
    ++weights[0];
    weights[1] += v % 7;
    ++weights[2 + v % 3];
  }
  return order;
}

std::span<const std::uint16_t> mine_of(const Order& order, const Communicator& comm) {
  const auto range = even_range(order.info.nodes, comm.size(), comm.rank());
  return std::span(order.cluster).subspan(range.begin, range.size());
}

void expect_equal(const Order& a, const Order& b) {
  EXPECT_EQ(a.info.nodes, b.info.nodes);
  EXPECT_EQ(a.info.method, b.info.method);
  EXPECT_EQ(a.info.pattern, b.info.pattern);
  EXPECT_EQ(a.info.weights, b.info.weights);
  EXPECT_EQ(a.info.types, b.info.types);
  EXPECT_EQ(a.info.type_weights, b.info.type_weights);
  EXPECT_EQ(a.cluster, b.cluster);
}

TEST(Order, IsReadAsItWasWritten) {
  const auto folder = test_folder("order");
  for (const auto& [nodes, clusters] : {std::pair<std::int64_t, int>{1, 1}, {23, 5}, {70'000, 65'536}}) {
    auto order = random_order(nodes, clusters, 3);
    if (nodes == 23) order.info.pattern.reset();
    if (nodes > 1) order.info.types = {"paper", "author-of", "field_3"};
    for (std::size_t k = 0; k < 6 * order.info.weights.size() && nodes > 1; ++k)
      order.info.type_weights.push_back(static_cast<std::int64_t>(7 * k % 101));
    const auto path = fmt::format("{}/{}.h5", folder, nodes);
    write_order(test_world(), path, order.info, mine_of(order, test_world()));
    expect_equal(read_order(test_world(), path), order);
  }
}

// What the message of a refusal says.
std::string refusal(const std::string& path) {
  const auto said = message_of(ExitCode::kInput, [&] { read_order(test_world(), path); });
  if (!said.empty()) expect_words(said, {path, "espalier partition"});
  return said;
}

// An order that another program wrote, with this changed.
using Change = std::function<void(const hdf5::Handle& file, Order& order)>;

void write_by_hand(const std::string& path, Order order, const Change& change) {
  const hdf5::Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
  hdf5::write_text_attribute(file, "format", "espalier-order");
  hdf5::write_integer_attribute(file, "version", 1);
  hdf5::write_text_attribute(file, "method", "by hand");
  change(file, order);
  const auto cluster =
      hdf5::create_dataset(file, "/cluster", hdf5::file_type<std::uint16_t>(), {std::ssize(order.cluster)});
  hdf5::write_slab(cluster, hdf5::memory_type<std::uint16_t>(), {0, std::ssize(order.cluster), 1},
                   order.cluster.data());
  const auto clusters = std::ssize(order.info.weights);
  const auto weights =
      hdf5::create_dataset(file, "/weights", hdf5::file_type<std::int64_t>(), {clusters, kKinds});
  hdf5::write_slab(weights, hdf5::memory_type<std::int64_t>(), {0, clusters, kKinds},
                   order.info.weights[0].data());
}

TEST(Order, OfAnotherProgramIsReadAndWhatIsNoneRefused) {
  const auto folder = test_folder("order_bad");
  const auto order = random_order(30, 4, 6);
  const auto with = [&](const char* name, const Change& change) {
    const auto path = fmt::format("{}/{}.h5", folder, name);
    if (test_world().rank() == 0) write_by_hand(path, order, change);
    test_world().barrier();
    return refusal(path);
  };
  const auto expect = [](const std::string& message, const char* words) { expect_words(message, {words}); };
  EXPECT_EQ(with("good", [](const auto&, Order&) {}), "");
  expect(with("pattern", [](const auto& file, Order&) { hdf5::write_text_attribute(file, "pattern", "x"); }),
         "not 16 hex digits");
  expect(with("cluster", [](const auto&, Order& o) { o.cluster[7] = 4; }), "vertex 7 is in cluster 4 of 4");
  expect(with("missing", [](const auto&, Order& o) { o.info.weights.pop_back(); }), "is in cluster 3 of 3");
  expect(with("weights", [](const auto&, Order& o) { ++o.info.weights[2][0]; }), "that cluster 2 has");
  expect(with("negative", [](const auto&, Order& o) { o.info.weights[1][4] = -1; }), "out of range");
}

TEST(Order, KnowsTheGraphByBothArrays) {
  ContentDigests content;
  content.datasets = {{"/graph/indptr", 1}, {"/nodes/labels", 9}};
  EXPECT_FALSE(pattern_digest(content));
  content.datasets["/graph/indices"] = 2;
  const auto digest = pattern_digest(content);
  ASSERT_TRUE(digest);
  content.datasets["/nodes/labels"] = 10;
  EXPECT_EQ(pattern_digest(content), digest);
  std::swap(content.datasets["/graph/indptr"], content.datasets["/graph/indices"]);
  EXPECT_NE(pattern_digest(content), digest);
}

// ---- cuts ----

double excess_of(const ClusterContents& contents, std::span<const std::int64_t> ends, int parts) {
  constexpr std::array<double, kKinds> kSlack = {1, 2.5, 1, 2.5, 2.5};
  const auto count = std::ssize(contents.weights),
             of_types = static_cast<std::int64_t>(contents.kinds()) - kKinds;
  double worst = -1;
  for (int part = 0; part < parts; ++part)
    for (std::int64_t k = 0; k < kKinds + of_types; ++k) {
      std::int64_t total = 0, sum = 0, heaviest = 0;
      for (std::int64_t i = 0; i < count; ++i) {
        const auto weight =
            k < kKinds ? contents.weights[i][k] : contents.of_types[i * of_types + k - kKinds];
        total += weight;
        heaviest = std::max(heaviest, weight);
        if (i >= ends[part] && i < ends[part + 1]) sum += weight;
      }
      const double mean = static_cast<double>(total) / parts,
                   even = k < kKinds ? mean : std::max(mean, static_cast<double>(heaviest)),
                   slack = k < kKinds              ? kSlack[k]
                           : (k - kKinds) % 2 == 0 ? 1
                                                   : 4;
      if (total > 0) worst = std::max(worst, (static_cast<double>(sum) / even - 1) / slack);
    }
  return worst;
}

// The least over all ascending ends.
double best_excess(const ClusterContents& weights, int parts) {
  double best = 1e9;
  std::vector<std::int64_t> ends = {0};
  const std::function<void()> extend = [&] {
    if (std::ssize(ends) == parts) {
      ends.push_back(std::ssize(weights.weights));
      best = std::min(best, excess_of(weights, ends, parts));
      ends.pop_back();
      return;
    }
    for (auto end = ends.back(); end <= std::ssize(weights.weights); ++end) {
      ends.push_back(end);
      extend();
      ends.pop_back();
    }
  };
  extend();
  return best;
}

std::vector<ClusterWeights> random_weights(int clusters, std::uint64_t seed) {
  std::vector<ClusterWeights> weights(static_cast<std::size_t>(clusters));
  std::uint64_t word = 0;
  for (auto& of_cluster : weights)
    for (std::int64_t k = 0; k < kKinds; ++k) {
      of_cluster[k] = static_cast<std::int64_t>(random_below({.seed = seed}, word++, k == 4 ? 2 : 12));
      if (k == 1 && random_below({.seed = seed}, word++, 5) == 0) of_cluster[k] *= 9;
    }
  return weights;
}

TEST(CutOrder, NoCutHasLessExcess) {
  const auto seed = test_seed(11);
  SCOPED_TRACE(fmt::format("ESPALIER_TEST_SEED={}", seed));
  for (std::uint64_t trial = 0; trial < 150; ++trial) {
    VertexPartitionInfo order;
    const auto& weights = order.weights = random_weights(1 + static_cast<int>(trial % 9), seed + trial);
    // Every other one has two types.
    for (std::uint64_t k = 0; k < 4 * weights.size() && trial % 2 == 1; ++k)
      order.type_weights.push_back(static_cast<std::int64_t>(
          random_below({.seed = seed + trial, .row = 1}, k, k % 2 == 0 ? 4 : 90) / (k % 2 == 0 ? 3 : 30)));
    for (int parts = 1; parts <= 5; ++parts) {
      const auto cuts = cut_order(order, parts);
      ASSERT_EQ(cuts.parts(), parts);
      std::vector<std::int64_t> ends = {0};
      for (int i = 0; i < parts; ++i) {
        ASSERT_EQ(cuts.begin(i), ends.back());
        ASSERT_GE(cuts.size(i), 0);
        ends.push_back(cuts.end(i));
      }
      ASSERT_EQ(ends.back(), std::ssize(weights));
      EXPECT_NEAR(excess_of(order, ends, parts), best_excess(order, parts), 1e-12) << trial << " " << parts;
      if (parts <= std::ssize(weights))
        for (int i = 0; i < parts; ++i) EXPECT_GT(cuts.size(i), 0) << trial << " " << parts << " " << i;
    }
  }
}

// One cluster has a fifth of the edges: its part is smaller, and the others, which could be filled
// as far as it is, are even.
TEST(CutOrder, IsEvenAlsoWhereOneClusterIsLarge) {
  std::vector<ClusterWeights> weights(64, {10, 10, 1, 1, 1});
  weights[20][1] = 150;
  const auto cuts = cut_order(weights, 4);
  EXPECT_LT(cuts.size(cuts.owner(20)), 14);
  std::int64_t least = 64, most = 0;
  for (int i = 0; i < 4; ++i) {
    if (i == cuts.owner(20)) continue;
    least = std::min(least, cuts.size(i));
    most = std::max(most, cuts.size(i));
  }
  EXPECT_LE(most - least, 2);
}

TEST(CutOrder, BalancesOfTypesAreLargestOverMean) {
  VertexPartitionInfo order;
  order.weights.resize(3);
  order.type_weights = {1, 0, 5, 7, 2, 0, 5, 0, 3, 0, 0, 0};
  EXPECT_EQ(balances_of(order, RowPartition({0, 1, 3})),
            (std::vector<double>{1, 1, 1, 1, 1, 10.0 / 6, 1, 1, 2}));
}

TEST(CutOrder, BalancesAreLargestOverMean) {
  const std::vector<ClusterWeights> weights = {{4, 1, 0, 0, 2}, {2, 1, 0, 3, 0}, {2, 4, 0, 3, 0}};
  const auto balances = balances_of(weights, RowPartition({0, 1, 3}));
  EXPECT_EQ(balances, (std::vector<double>{1, 10.0 / 6, 1, 2, 2}));
}

TEST(CutOrder, OwnsWholeClusters) {
  const auto order = random_order(500, 40, 8);
  for (const int parts : {1, 3, 7, 50}) {
    const auto cuts = cut_order(order.info.weights, parts);
    const auto ownership = own_by(order, parts);
    ASSERT_EQ(ownership.parts(), parts);
    ASSERT_EQ(ownership.rows(), 500);
    for (std::int64_t v = 0; v < 500; ++v) EXPECT_EQ(ownership.owner(v), cuts.owner(order.cluster[v]));
  }
}

}  // namespace
}  // namespace espalier
