// ranks: 1 2 3
// Law of an order that is made of a graph in a file: it is the same on every number of ranks, with
// what the file has in its clusters. (Orders of other graphs: tests/app/order_test.py.)
#include "espalier/partition/partition_methods.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "espalier/graph/generate.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

TEST(MakeOrder, HasWhatTheFileHas) {
  const auto path = test_folder("make-order") + "/graph.h5";
  generate_planted(test_world(), {.nodes = 400, .degree = 8, .homophily = 0.8},
                   {.features = 2, .classes = 3, .seed = 1}, OutputFile(path, true));
  const GraphFile file(test_world(), path);
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

}  // namespace
}  // namespace espalier
