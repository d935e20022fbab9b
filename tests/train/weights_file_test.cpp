// ranks: 1 3
// Laws: a weights.h5 gives back what was put in, to the last bit, and so does a checkpoint its best
// weights; every byte that changes is noticed; a network takes the tensors of its own shape only.
#include "espalier/train/weights_file.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "espalier/base/error.hpp"
#include "espalier/train/checkpoint.hpp"
#include "espalier/train/network_tensors.hpp"
#include "mpi_test.hpp"
#include "train/checkpoint_bytes.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

const NetworkShape kShape = {"sage", 2, 5, 4, 3, 0, 0, "batch"};

Network<float> some_network(std::uint64_t seed) {
  Network<float> network(kShape, seed);
  for (auto& statistic : network.running_statistics())
    for (float& x : statistic.data) x += static_cast<float>(seed);
  network.parameters()[0].value.data[0] = -0.0f;
  return network;
}

TrainedWeights some_weights() {
  TrainedWeights weights;
  weights.tensors = trained_tensors(Cpu{1}, some_network(1));
  weights.epoch = 7;
  weights.config = "[train]\nepochs = 7 # \"quoted\" \\ and \xc3\xa9\n";
  weights.graph.nodes = (std::int64_t{1} << 40) + 1;
  weights.graph.features = 5, weights.graph.classes = 3;
  weights.graph.content.complete = true;
  weights.graph.content.datasets["/graph/indptr"] = 0x8000000000000001u;
  weights.graph.feature_columns["/nodes/"] = {{"a", "b=\xc3\xa9"}, std::vector<double>(10, std::nan(""))};
  weights.graph.feature_columns["/edges/a.to.a/"] = {{"when"}};
  weights.standardization = {{0.1, 1.0 / 3, 0, -1e300, 5}, {1, 2, 1, 5e-324, std::nextafter(1.0, 2.0)}};
  return weights;
}

void expect_same(const std::vector<StateTensor>& a, const std::vector<StateTensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& tensor : a) {
    const auto other = std::ranges::find(b, tensor.name, &StateTensor::name);
    ASSERT_NE(other, b.end()) << tensor.name;
    EXPECT_EQ(other->rows, tensor.rows);
    EXPECT_EQ(other->columns, tensor.columns);
    EXPECT_EQ(std::memcmp(other->all().data(), tensor.all().data(), tensor.size() * sizeof(float)), 0);
  }
}

TEST(WeightsFile, GivesBackWhatWasPutIn) {
  const auto weights = some_weights();
  const auto bytes = weights_bytes(weights);
  const auto found = weights_from(bytes, "here");
  expect_same(weights.tensors, found.tensors);
  EXPECT_EQ(found.epoch, 7);
  EXPECT_TRUE(found.best);
  EXPECT_EQ(found.config, weights.config);
  EXPECT_EQ(found.graph.nodes, weights.graph.nodes);
  EXPECT_EQ(found.graph.content.datasets, weights.graph.content.datasets);
  EXPECT_EQ(found.standardization, weights.standardization);
  const auto &there = weights.graph.feature_columns, &here = found.graph.feature_columns;
  ASSERT_EQ(here.size(), there.size());
  for (const auto& [group, columns] : there) {
    EXPECT_EQ(difference_of_names(columns, here.at(group)), "");
    EXPECT_TRUE(have_same_scales(columns, here.at(group)));
  }

  auto plain = weights;
  plain.standardization = {};
  EXPECT_EQ(weights_from(weights_bytes(plain), "here").standardization, Standardization());
}

TEST(WeightsFile, ACheckpointGivesItsBestWeightsOrThoseOfItsMoment) {
  const auto now = trained_tensors(Cpu{1}, some_network(1)), best = trained_tensors(Cpu{1}, some_network(2));
  for (const bool has_best : {true, false}) {
    Checkpoint checkpoint;
    checkpoint.state.cursor = {4, 0};
    auto tensors = now;
    tensors.push_back(kept_tensor("optimizer/layer1.self/first_moment", 1, 1, {1}));
    if (has_best) {
      checkpoint.state.best_epoch = 2;
      for (auto tensor : best) {
        tensor.name = "best/" + tensor.name;
        tensors.push_back(tensor);
      }
    }
    // As earlier versions named them.
    for (auto& tensor : tensors) {
      if (tensor.name.ends_with("statistics/layer1.mean"))
        tensor.name.replace(tensor.name.size() - 11, 11, "0");
      if (tensor.name.ends_with("statistics/layer1.variance"))
        tensor.name.replace(tensor.name.size() - 15, 15, "1");
      checkpoint.state.tensors.push_back(
          tensor_with(tensor.name, tensor.rows, tensor.columns, tensor.all(),
                      even_range(tensor.rows, test_world().size(), test_world().rank())));
    }
    checkpoint.graph.features = 5;
    checkpoint.config = "a config";
    checkpoint.standardization = some_weights().standardization;
    expect_same(has_best ? best : now, weights_of(test_world(), checkpoint.state).tensors);
    const auto path = path_of_checkpoint_bytes();
    write_checkpoint(test_world(), checkpoint, path);
    EXPECT_FALSE(is_weights_file(path));
    const auto found = read_weights(test_world(), path);
    test_world().barrier();
    if (test_world().rank() == 0) std::filesystem::remove(path);
    expect_same(has_best ? best : now, found.tensors);
    EXPECT_EQ(found.best, has_best);
    EXPECT_EQ(found.epoch, has_best ? 2 : 3);
    EXPECT_EQ(found.config, "a config");
    EXPECT_EQ(found.standardization, checkpoint.standardization);
  }
}

// What an inference reads decides, whether its file has digests or not, and whatever else was read.
TEST(WeightsFile, OneRuleSaysWhetherAGraphIsAnother) {
  GraphInfo there;
  there.nodes = 9, there.edges = 20, there.features = 4;
  std::uint64_t digest = 1;
  for (const char* name : {"/graph/indptr", "/graph/indices", "/nodes/features", "/nodes/labels",
                           "/split/train", "/edges/features", "/edges/time"})
    there.content.datasets[name] = digest++;
  const auto difference = [&](const ContentDigests& content, bool edge_features = false, int nodes = 9) {
    auto here = there;
    here.nodes = nodes;
    return difference_of_inputs(there, here, content, edge_features);
  };
  const auto changed = [&](const char* name, bool unread) {
    auto content = there.content;
    content.datasets[name] ^= 1;
    if (unread) {
      content.datasets.erase(name);
    }
    return content;
  };
  EXPECT_EQ(difference(there.content), "");
  for (const bool unread : {false, true})
    for (const char* name : {"/nodes/labels", "/split/train", "/edges/time", "/edges/features"})
      EXPECT_EQ(difference(changed(name, unread)), "") << name;
  EXPECT_NE(difference(changed("/edges/features", false), true), "");
  EXPECT_EQ(difference(changed("/edges/features", true), true), "");
  // The last is not there.
  for (const char* name : {"/graph/indices", "/nodes/features", "/graph/weights"}) {
    EXPECT_NE(difference(changed(name, false)).find(name), std::string::npos) << name;
    EXPECT_EQ(difference(changed(name, true)), "") << name;
  }
  auto without = there.content;
  without.datasets.erase("/nodes/labels");
  without.datasets.erase("/split/train");
  EXPECT_EQ(difference(without), "");
  EXPECT_EQ(difference(without, false, 8), "9 nodes there, 8 here");
  there.content = {};
  EXPECT_EQ(difference(without), "");
  EXPECT_NE(difference(without, false, 8), "");
}

TEST(WeightsFile, NamesOfRelationsComeBack) {
  auto weights = some_weights();
  auto& links = weights.graph.links;
  links.exist = true;
  weights.graph.typed = true;
  weights.graph.schema = Schema({{"a", 0, 2}, {"b", 2, 5}}, {{"of", 0, 1}, {"to", 1, 1}});
  links.graph_relations = {1, 0};
  links.names = {"\"to\"", "of \xff"};  // the last is no UTF-8
  const auto found = weights_from(weights_bytes(weights), "here").graph;
  EXPECT_EQ(found.links.names, (std::vector<std::string>{"\"to\"", "of \xef\xbf\xbd"}));
  EXPECT_EQ(found.links.graph_relations, links.graph_relations);
  EXPECT_EQ(found.schema.relation_names(), "a.of.b, b.to.b");
  EXPECT_EQ(found.schema.types()[1].end, 5);
}

// Rows are taken where the run is the same: config, epoch, graph and digest of the weights; what a
// file of an earlier version does not say is not asked for.
TEST(WeightsFile, EmbeddingsAreOfTheSameRun) {
  auto weights = some_weights();
  const Buffer<float> rows = {1, 2, 3, 4, 5, 6};
  const auto& world = test_world();
  weights.embeddings = {
      tensor_with("weights/embedding.a", 3, 2, rows, even_range(3, world.size(), world.rank()))};
  weights.digest = hex(weights_digest(world, weights));
  EXPECT_NE(weights_digest(world, weights), weights_digest(weights.tensors));
  const auto folder = path_of_checkpoint_bytes() + ".d";
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  world.barrier();
  const auto read = [&](const auto& change) {
    auto others = weights;
    change(others);
    if (world.rank() == 0) write_file(folder + "/weights.h5", weights_bytes(weights));
    write_checkpoint(world, embeddings_of(others, world.size()), folder + "/" + kEmbeddingsFile);
    const auto found = read_weights(world, folder + "/weights.h5");
    EXPECT_EQ(found.embeddings.empty(), found.no_embeddings.find("of another run") != std::string::npos);
    world.barrier();
    return found.embeddings.empty() ? found.no_embeddings : "";
  };
  EXPECT_EQ(read([](auto&) {}), "");
  EXPECT_EQ(read([](auto& of) { of.digest.clear(), of.graph.content = {}; }), "");
  EXPECT_NE(read([](auto& of) { of.epoch = 6; }).find("of epoch 6"), std::string::npos);
  EXPECT_NE(read([](auto& of) { of.config += " "; }).find("another config"), std::string::npos);
  EXPECT_NE(read([](auto& of) { of.digest[3] ^= 1; }).find(weights.digest), std::string::npos);
  EXPECT_NE(read([](auto& of) { of.graph.content.datasets["/graph/indptr"] = 1; }).find("/graph/indptr"),
            std::string::npos);
  if (world.rank() == 0) std::filesystem::remove_all(folder);
}

// Whoever has which rows, and of types one after another.
TEST(WeightsFile, ADigestIsThatOfOneLoopOverAllNumbers) {
  auto weights = some_weights();
  const auto& world = test_world();
  const Buffer<float> a = {1, 2, 3, 4, 5, 6}, b = {7, -0.0f, 9, 10};
  const auto mine = [&](std::int64_t rows) { return even_range(rows, world.size(), world.rank()); };
  weights.embeddings = {tensor_with("weights/embedding.a", 3, 2, a, mine(3)),
                        tensor_with("weights/embedding.b", 4, 1, b, mine(4))};
  std::uint64_t digest = 0xcbf29ce484222325u, rows = 0;
  const auto add = [](std::uint64_t& to, std::uint64_t word) { to = (to ^ word) * 0x100000001b3u; };
  for (const auto& tensor : weights.tensors)
    if (tensor.name.starts_with("weights/"))
      for (const float x : tensor.all()) add(digest, std::bit_cast<std::uint32_t>(x));
  for (std::uint64_t row = 0; row < 7; ++row) {
    std::uint64_t of_row = 0xcbf29ce484222325u;
    add(of_row, row);
    for (std::uint64_t j = 0; j < (row < 3 ? 2u : 1u); ++j)
      add(of_row, std::bit_cast<std::uint32_t>(row < 3 ? a[2 * row + j] : b[row - 3]));
    rows += of_row;
  }
  add(digest, rows);
  EXPECT_EQ(weights_digest(world, weights), digest);
}

TEST(WeightsFile, DamageIsNoticedWhereverItIs) {
  const auto whole = weights_bytes(some_weights());
  const auto seed = test_seed(31);
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int k = 0; k < 300; ++k) {
    auto bytes = whole;
    bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    expect_refused(ExitCode::kInput, {"here.h5"}, [&] { weights_from(bytes, "here.h5"); });
  }
  for (const std::size_t length : {std::size_t{0}, std::size_t{3}, std::size_t{512}, whole.size() - 1})
    expect_refused(ExitCode::kInput, {"here.h5"}, [&] { weights_from(whole.substr(0, length), "here.h5"); });
  expect_refused(ExitCode::kInput, {"here.h5", "damaged"}, [&] { weights_from(whole + "x", "here.h5"); });
  expect_refused(ExitCode::kInput, {"other.h5"}, [&] { weights_from("\x89HDF\r\n\x1a\n", "other.h5"); });
}

TEST(NetworkTensors, ANetworkTakesThoseOfItsShapeOnly) {
  const auto from = some_network(5);
  auto to = some_network(6);
  EXPECT_NE(weights_digest(trained_tensors(Cpu{1}, to)), weights_digest(trained_tensors(Cpu{1}, from)));
  take_tensors(Cpu{1}, trained_tensors(Cpu{1}, from), "here", to);
  EXPECT_EQ(weights_digest(trained_tensors(Cpu{1}, to)), weights_digest(trained_tensors(Cpu{1}, from)));
  expect_same(trained_tensors(Cpu{1}, from), trained_tensors(Cpu{1}, to));

  const auto refused = [&](const std::vector<std::string>& words, const auto& change) {
    auto shape = kShape;
    change(shape);
    Network<float> other(shape, 1);
    expect_refused(ExitCode::kInput, words,
                   [&] { take_tensors(Cpu{1}, trained_tensors(Cpu{1}, from), "here", other); });
  };
  refused({"weights/layer1.self", "5 x 4", "here", "9 x 4"}, [](auto& s) { s.inputs = 9; });
  refused({"weights/layer2.self", "4 x 3", "4 x 4"}, [](auto& s) { s.layers = 3; });
  refused({"weights/layer2"}, [](auto& s) { s.layers = 3, s.hidden = 4, s.classes = 4; });
  refused({"here has no weights/layer1.weight"}, [](auto& s) { s.kind = "gcn"; });
  // The same parameters, and no statistics.
  refused({"here has statistics/layer1.mean"}, [](auto& s) { s.normalize = "layer"; });
}

}  // namespace
}  // namespace espalier
