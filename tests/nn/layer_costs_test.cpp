// ranks: 1
// Law: what a kind of layer says of itself before it is made (LayerKind::costs) is what the layer
// then does: the arrays that it keeps from forward to backward and works in, byte by byte; whether
// it transposes the block, asks where entries were, begins with the product of block and input.
//
// Buffers, and nothing else here, take their memory from the operator new that does not throw
// (base/buffer.cpp), which this program replaces by one that remembers what was asked for and not
// given back.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <new>

#include "../../src/nn/layers.inl.hpp"
#include "dense/relation_blocks.hpp"
#include "espalier/nn/network_work.hpp"
#include "mpi_test.hpp"
#include "network_case.hpp"
#include "user_error.hpp"

namespace {

bool remembers = false;

std::map<void*, std::size_t>& live_memory() {
  static auto* const live = new std::map<void*, std::size_t>;  // until the last object is gone
  return *live;
}

void give_back(void* memory) {
  if (remembers) live_memory().erase(memory);
  std::free(memory);
}

// Without what a buffer asks for to be aligned.
std::size_t wanted_of(std::size_t bytes) {
  constexpr std::size_t kCacheLine = 64, kHugePage = std::size_t{2} << 20;
  return bytes >= espalier::kHugeBufferBytes + kHugePage ? bytes - kHugePage : bytes - kCacheLine;
}

}  // namespace

void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  void* const memory = std::malloc(bytes);
  if (remembers && memory != nullptr) live_memory().emplace(memory, wanted_of(bytes));
  return memory;
}
void* operator new(std::size_t bytes) {
  if (void* const memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  give_back(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  give_back(memory);
}

namespace espalier {
namespace {

/// Bytes of the arrays that `work` has made and left, ascending.
template <class Work>
std::vector<std::int64_t> bytes_left_by(const Work& work) {
  live_memory().clear();
  remembers = true;
  work();
  remembers = false;
  std::vector<std::int64_t> bytes;
  for (const auto& [memory, size] : live_memory()) bytes.push_back(static_cast<std::int64_t>(size));
  std::ranges::sort(bytes);
  return bytes;
}

std::vector<std::int64_t> bytes_of(const std::vector<double>& numbers,
                                   std::vector<std::int64_t> others = {}) {
  for (const double count : numbers) others.push_back(4 * static_cast<std::int64_t>(count));
  std::erase(others, 0);
  std::ranges::sort(others);
  return others;
}

/// A layer by itself, its block and all that it is given, with room for its results.
struct LoneLayer {
  const LayerKind& kind;
  LayerShape shape;
  BlockView<> block;
  Matrix<float> x, dz, z, dx;
  std::vector<Parameter<float>> weights;
  std::vector<Matrix<float>> gradients;
  std::unique_ptr<Layer<float>> layer;
  LayerScratch<float> scratch;

  LoneLayer(const LayerKind& kind_, const LayerShape& shape_, const BlockView<>& block_)
      : kind(kind_), shape(shape_), block(block_), layer(make_layer<float, Cpu>(kind, shape)) {
    std::mt19937_64 random(1);
    x = random_matrix<float>(block.columns, shape.in, random);
    dz = z = random_matrix<float>(block.rows, shape.out, random);
    dx.resize(block.columns, shape.in);
    for (const auto& tensor : kind.tensors(shape)) {
      weights.push_back({tensor.name, 1, true, random_matrix<float>(tensor.rows, tensor.columns, random)});
      gradients.push_back(weights.back().value);
    }
  }
  bool first() const { return !shape.gives_dx; }
  void forward() { layer->forward(Cpu{1}, block, x, weights, {}, z); }
  void backward() {
    layer->backward(Cpu{1}, block, x, weights, dz, scratch, gradients, first() ? nullptr : &dx);
  }
  void evaluate(LayerScratch<float>& with) const {
    Matrix<float> result = z;
    layer->evaluate(Cpu{1}, block, x, weights, with, result);
  }
};

void expect_as_said(const LayerKind& kind, const LayerShape& shape, const BlockView<>& block) {
  const BlockSize size{static_cast<double>(block.rows), static_cast<double>(block.columns),
                       static_cast<double>(block.entries())};
  const LayerCosts said = kind.costs(shape, size);
  LoneLayer warm(kind, shape, block);  // what threads keep for any layer
  warm.forward();
  warm.backward();
  warm.evaluate(warm.scratch);

  LoneLayer lone(kind, shape, block);
  EXPECT_EQ(bytes_left_by([&] { lone.forward(); }), bytes_of(said.kept));
  std::vector<std::int64_t> of_transpose;
  if (said.transposes) of_transpose = {8 * (block.columns + 1), 4 * block.entries(), 4 * block.entries()};
  if (said.keeps_positions) of_transpose.push_back(4 * block.entries());
  EXPECT_EQ(bytes_left_by([&] { lone.backward(); }), bytes_of(said.backward_scratch, of_transpose));
  LayerScratch<float> scratch;
  EXPECT_EQ(bytes_left_by([&] { lone.evaluate(scratch); }), bytes_of(said.scratch));
}

TEST(LayerCosts, AreWhatTheLayerDoes) {
  std::mt19937_64 random(test_seed(3));
  int aggregate = 0, multiply = 0;
  for (const auto& kind : layer_kinds())
    for (const auto* aggregator : {"mean", "max", "sum"})
      for (const bool gives_dx : {false, true})
        for (const bool averages : {false, true})
          for (const auto& [in, out] : {std::pair{40, 6}, {6, 12}, {12, 12}})
            for (const auto& [columns, rows, most] : {std::array{61, 53, 2}, {200, 30, 30}}) {
              if (std::string_view(aggregator) != "mean" && !kind.takes_aggregator) continue;
              if (averages && !kind.takes_heads) continue;
              // Both ways back.
              const std::int64_t bases = !kind.takes_bases ? 1 : in == 40 ? 3 : 2;
              SCOPED_TRACE(testing::Message() << kind.name << " " << aggregator << ", dx " << gives_dx << ", "
                                              << in << " to " << out << ", " << columns << " sources");
              const LayerShape shape{.in = in,
                                     .out = out,
                                     .gives_dx = gives_dx,
                                     .heads = kind.takes_heads ? 3 : 1,
                                     .averages_heads = averages,
                                     .aggregator = aggregator,
                                     .relations = kind.takes_relations ? 7 : 1,
                                     .bases = bases};
              const Block block = random_block_matrix(rows, columns, most, random);
              const auto relations = random_relations(block, shape.relations, random);
              expect_as_said(kind, shape, with_relations<Cpu>(block, relations));
              const BlockSize size{static_cast<double>(block.rows), static_cast<double>(block.columns),
                                   static_cast<double>(block.entries())};
              ++(cheaper_order(size, in, out, gives_dx) == ProductOrder::kMultiplyFirst ? multiply
                                                                                        : aggregate);
            }
  EXPECT_GT(aggregate, 10) << "both orders must have been tried";
  EXPECT_GT(multiply, 10);
}

// What a whole network holds after a step is what plans count for it.
TEST(NetworkWork, ActivationsAreWhatAStepHolds) {
  const std::vector<std::int64_t> frontiers = {9000, 4000, 1500, 700};
  for (const auto& kind : layer_kinds())
    for (const char* normalize : {"none", "batch", "layer"})
      for (const char* jumping : {"none", "concat", "max"}) {
        if (normalize != std::string("none") && jumping != std::string("none")) continue;
        NetworkShape shape{std::string(kind.name), 3, 40, 64, 9, 0.4, 0.3, normalize};
        if (kind.takes_heads) shape.heads = 4;
        if (kind.takes_relations) shape.relations = 5;
        shape.jumping = jumping;
        SCOPED_TRACE(shape.kind + " " + normalize + " " + jumping);
        const auto left = [&](NetworkCase<float>& c) {
          Matrix<float> dlogits(frontiers.back(), shape.classes);
          std::vector<Matrix<float>> gradients;
          for (const auto& parameter : c.network.parameters())
            gradients.emplace_back(parameter.value.rows, parameter.value.columns);
          std::int64_t sum = 0;
          for (const auto bytes : bytes_left_by([&] {
                 c.network.forward(Cpu{1}, c.blocks, c.input, c.pass);
                 c.network.backward(Cpu{1}, c.blocks, c.input, c.pass, dlogits, gradients);
               }))
            sum += bytes;
          return static_cast<double>(sum);
        };
        NetworkCase<float> warm(shape, frontiers, 1), measured(shape, frontiers, 1);
        left(warm);  // what threads keep for any network
        std::vector<double> entries = {0};
        for (const auto& block : measured.blocks) entries.push_back(static_cast<double>(block.entries()));
        const std::vector<double> rows(frontiers.begin(), frontiers.end());
        const auto said = activations_footprint(measured.network.shape(), rows, entries, 40);
        EXPECT_NEAR(said.bytes() / left(measured), 1, 0.05);
      }
}

}  // namespace
}  // namespace espalier
