// ranks: 1 2 3
// Laws of an order that is made of a graph in a file: the same on every number of ranks, with what
// the file has in its clusters; it fits that graph, and no other.
#include "espalier/partition/partition_methods.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "espalier/graph/generate.hpp"
#include "mpi_test.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

std::string planted(const char* name, std::int64_t nodes, std::uint64_t seed) {
  const auto path = test_folder(std::string("make-order-") + name) + "/graph.h5";
  generate_planted(test_world(), {.nodes = nodes, .degree = 8, .homophily = 0.8},
                   {.features = 2, .classes = 3, .seed = seed}, OutputFile(path, true));
  return path;
}

TEST(MakeOrder, HasWhatTheFileHas) {
  const GraphFile file(test_world(), planted("one", 400, 1));
  const auto self = test_world().split(test_world().rank(), 0);
  const GraphFile alone(self, file.path());
  for (const std::string name : {"streaming", "multilevel"}) {
    const OrderOptions options = {.method = &partition_method(name), .clusters = 16, .seed = 3};
    const auto order = make_order(test_world(), file, options);
    EXPECT_EQ(order.cluster, make_order(self, alone, options).cluster) << name;
    EXPECT_EQ(std::ssize(order.cluster), 400);
    EXPECT_LE(order.info.clusters(), 16);
    const auto total = std::accumulate(order.info.weights.begin(), order.info.weights.end(), ClusterWeights{},
                                       [](auto sum, const auto& more) { return sum += more; });
    const auto& info = file.info();
    EXPECT_EQ(total, (ClusterWeights{info.nodes, info.edges, info.train, info.valid, info.test})) << name;
    EXPECT_NO_THROW(check_order(order.info, file, "an order"));
  }
}

TEST(MakeOrder, IsOfThatGraphAlone) {
  const GraphFile file(test_world(), planted("one", 400, 1)), fewer(test_world(), planted("fewer", 399, 1)),
      other(test_world(), planted("other", 400, 2));
  const auto order =
      make_order(test_world(), file, {.method = &partition_method("streaming"), .clusters = 8});
  expect_refused(ExitCode::kInput, {"an order", "400", "399"},
                 [&] { check_order(order.info, fewer, "an order"); });
  expect_refused(ExitCode::kInput, {"an order", "other edges"},
                 [&] { check_order(order.info, other, "an order"); });
}

}  // namespace
}  // namespace espalier
