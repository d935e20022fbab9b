// One training step of a 3-layer GraphSAGE network on one rank, stage by stage, against what its
// arithmetic and its bytes take at the rates of the machine.
//
//     step_bench [--scale N]      a symmetrised R-MAT of 2^N vertices (rmat.hpp; default 17)
//
// 128 features, hidden 256, 47 classes, dropout 0.5, fanout 15,10,5, one batch of 1024 seeds, Adam.
//
// Derivation, stage by stage, with rates measured beside:
//
//     sample      2 random gathers per sampled edge (graphsage_bench.cpp says why)
//     fetch       a row is read and written, 8 f bytes, at the copy rate
//     forward     its GEMMs (2 m k n operations each) at OpenBLAS's sgemm rate for the same shapes,
//                 its SpMMs (entries (4 f + 8) + result rows (4 f + 8) bytes, spmm_bench.cpp) at
//                 the copy rate
//     backward    the same
//     optimizer   4 reads and 3 writes of 4 bytes per parameter, at the copy rate: in cache, so the
//                 ratio may pass 1
//     step        the sum of these
//
// The bound of a stage leaves out what is neither product: activations, dropout, bias, loss, the
// transpose of a block. `GEMMs` and `SpMMs` repeat the calls of the step by themselves, forward and
// backward, and are its shares of the machine's rates. Which calls these are follows from the
// formulas in nn/sage.inl.hpp and nn/product_order.hpp.
//
// Verification: the loss equals that of plain loops in double, dropout masks included, to 1e-6 of
// it; on a batch of 32 seeds the derivative of that loss along the gradient, by differences,
// equals the gradient's square to 1e-4; after a step all parameters have the bits that 1 thread
// gives them.
#include <cblas.h>

#include <cmath>

#include "espalier/comm/session.hpp"
#include "espalier/dense/gemm.hpp"
#include "espalier/dense/spmm.hpp"
#include "espalier/feature/row_store.hpp"
#include "espalier/nn/cross_entropy.hpp"
#include "espalier/nn/dropout.hpp"
#include "espalier/nn/network.hpp"
#include "espalier/sparse/transpose.hpp"
#include "espalier/train/optimizer.hpp"
#include "plain_network.hpp"
#include "rates.hpp"
#include "rmat.hpp"
#include "step_products.hpp"

namespace espalier::bench {
namespace {

constexpr std::int64_t kBatchSize = 1024, kFewSeeds = 32;
constexpr double kLearningRate = 1e-3;
const std::vector<std::int64_t> kFanout = {15, 10, 5};
const NetworkShape kShape = {
    .kind = "sage", .layers = 3, .inputs = 128, .hidden = 256, .classes = 47, .dropout = 0.5};

RowStore make_features(const Grid& grid, std::int64_t vertices) {
  Matrix<float> rows(vertices, kShape.inputs);
  const RandomStream stream = {.seed = kSeed};
  for (std::size_t e = 0; e < rows.data.size(); e += 4) {
    const auto words = random_block(stream, e / 4);
    for (std::size_t k = 0; k < 4; ++k)
      rows.data[e + k] = static_cast<float>(2 * to_unit_double(words.v[k]) - 1);
  }
  return RowStore(grid, block_partition(vertices, grid.rows()), std::move(rows));
}

/// The stages of one step, each to be called after the one before.
class Step {
 public:
  Step(const DistCsr<std::int32_t>& a, const RowStore& features, std::int64_t seeds, int threads)
      : cpu_{threads},
        sampler_(make_sampler("graphsage", a, {.fanout = kFanout})),
        features_(features),
        batches_(a.local, seeds, 1),
        network_(kShape, kSeed),
        optimizer_(Cpu{}, {}, network_.parameters()) {
    for (std::size_t s = 0; s < batches_.all().front().seeds().size(); ++s)
      labels_.push_back(static_cast<std::int32_t>(s % static_cast<std::size_t>(kShape.classes)));
  }

  void sample() { minibatch_ = std::move(sampler_->sample(cpu_, batches_.all(), kSeed, 1).front()); }
  void fetch() { features_.fetch(cpu_, {&minibatch_.vertices, 1}, inputs_, "bench"); }
  void forward() {
    const auto& logits = network_.forward(cpu_, minibatch_.blocks, inputs_[0], kPass);
    loss_ = softmax_cross_entropy<float>(cpu_, logits, labels_, 1 / seeds(), dlogits_) / seeds();
  }
  void backward() { network_.backward(cpu_, minibatch_.blocks, inputs_[0], kPass, dlogits_, gradients_); }
  void update() { optimizer_.step(cpu_, kLearningRate, gradients_, network_.parameters()); }
  void all() { sample(), fetch(), forward(), backward(), update(); }

  const Minibatch& minibatch() const { return minibatch_; }
  double parameters() const { return static_cast<double>(network_.parameter_count()); }
  const std::vector<Parameter<float>>& values() const { return network_.parameters(); }

  // After forward and backward.
  bool loss_is_wrong() const {
    const double plain = plain_loss(network_, minibatch_.blocks, inputs_[0], labels_, kPass, {}, 0);
    return !(std::abs(loss_ - plain) <= 1e-6 * plain);
  }
  bool gradient_is_wrong() const {
    constexpr double kStep = 1e-5;  // parameters move by so many gradients
    const auto loss = [&](double along) {
      return plain_loss(network_, minibatch_.blocks, inputs_[0], labels_, kPass, gradients_, along);
    };
    double square = 0;
    for (const auto& gradient : gradients_)
      for (const float g : gradient.data) square += static_cast<double>(g) * static_cast<double>(g);
    const double difference = (loss(kStep) - loss(-kStep)) / (2 * kStep);
    return !(std::abs(difference - square) <= 1e-4 * square);
  }

 private:
  static constexpr Pass kPass = {kSeed, 1, 0};
  double seeds() const { return static_cast<double>(labels_.size()); }

  Cpu cpu_;
  std::unique_ptr<Sampler> sampler_;
  const RowStore& features_;
  FirstBatches batches_;
  Network<float> network_;
  Optimizer<float> optimizer_;
  std::vector<std::int32_t> labels_;
  Minibatch minibatch_;
  std::vector<Matrix<float>> inputs_, gradients_;
  Matrix<float> dlogits_;
  double loss_ = 0;
};

std::int64_t count_wrong(const Step& step, const Step& expected) {
  std::int64_t wrong = 0;
  for (std::size_t p = 0; p < step.values().size(); ++p) {
    const auto &ours = step.values()[p].value.data, &theirs = expected.values()[p].value.data;
    for (std::size_t e = 0; e < ours.size(); ++e)
      wrong += std::memcmp(&ours[e], &theirs[e], sizeof(float)) != 0;
  }
  return wrong;
}

/// Seconds that a step would take at the rates of the machine.
class Bounds {
 public:
  Bounds(const Csr<std::int32_t>& a, const Step& step, std::shared_ptr<StepProducts> products, int threads)
      : a_(a), step_(step), products_(std::move(products)), threads_(threads) {}
  double sample() const {
    return 2e-9 * static_cast<double>(step_.minibatch().sampled_edges()) / gather_rate(threads_, a_.indices);
  }
  double fetch() const {
    return 8e-9 * static_cast<double>(step_.minibatch().blocks[0].columns * kShape.inputs) /
           copy_rate(threads_);
  }
  double products(Part part) const {
    return products_->blas_seconds(part, threads_) + 1e-9 * products_->spmm_bytes(part) / copy_rate(threads_);
  }
  double update() const { return 28e-9 * step_.parameters() / copy_rate(threads_); }
  double all() const {
    return sample() + fetch() + products(Part::kForward) + products(Part::kBackward) + update();
  }

 private:
  const Csr<std::int32_t>& a_;
  const Step& step_;
  std::shared_ptr<StepProducts> products_;
  int threads_;
};

template <class Work>
double milliseconds(const Work& work) {
  std::vector<double> seconds;
  for (int k = 0; k < 5; ++k) seconds.push_back(seconds_of(work));
  return 1e3 * median(seconds);
}

std::string describe(Step& step, StepProducts& products, int threads) {
  const double sample = milliseconds([&] { step.sample(); }), fetch = milliseconds([&] { step.fetch(); }),
               forward = milliseconds([&] { step.forward(); });
  double both = milliseconds([&] { step.forward(), step.backward(); });
  const double update = milliseconds([&] { step.update(); });
  const double gemms = milliseconds([&] { products.multiply(Part::kBoth, threads); }),
               spmms = milliseconds([&] { products.aggregate(Part::kBoth, threads); });
  return fmt::format(
      "\n# {} thr: {:.1f} ms = sample {:.1f} + fetch {:.1f} + forward {:.1f} + backward {:.1f} + optimizer "
      "{:.2f}; "
      "its GEMMs alone {:.1f}, its SpMMs alone {:.1f}",
      threads, sample + fetch + both + update, sample, fetch, forward, both - forward, update, gemms, spmms);
}

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier;
  using namespace espalier::bench;
  const auto scale = take_scale(argc, argv, 17);
  const Session session(&argc, &argv);
  const Grid grid(session.world(), 1);
  const auto a = distribute(grid, make_rmat(scale), Topology::kReplicated);
  const auto features = make_features(grid, a.rows());

  Step few(a, features, kFewSeeds, 1);
  few.sample(), few.fetch(), few.forward(), few.backward();
  const bool wrong_gradient = few.gradient_is_wrong();
  Step first(a, features, kBatchSize, 1);
  first.all();
  const auto products = std::make_shared<StepProducts>(kShape, first.minibatch().blocks);

  std::vector<Comparison> comparisons;
  std::string text;
  for (const int threads : thread_counts()) {
    const auto step = std::make_shared<Step>(a, features, kBatchSize, threads);
    step->sample(), step->fetch(), step->forward(), step->backward();
    std::int64_t wrong = step->loss_is_wrong() + wrong_gradient;
    step->update();
    wrong += count_wrong(*step, first);
    const Bounds bounds(a.local, *step, products, threads);
    text += describe(*step, *products, threads);

    // One step, or one stage of it; `before` is run and not timed.
    const auto add = [&](const char* name, auto before, auto work, auto bound) {
      comparisons.push_back({fmt::format("{} {} thr", name, threads), 1,
                             [=] { return before(), seconds_of(work); }, [=] { return 1 / bound(); }, wrong,
                             threads, "1/s"});
    };
    const auto nothing = [] {};
    add(
        "step", nothing, [=] { step->all(); }, [=] { return bounds.all(); });
    add(
        "  sample", nothing, [=] { step->sample(); }, [=] { return bounds.sample(); });
    add(
        "  fetch", nothing, [=] { step->fetch(); }, [=] { return bounds.fetch(); });
    add(
        "  forward", nothing, [=] { step->forward(); }, [=] { return bounds.products(Part::kForward); });
    add(
        "  backward", [=] { step->forward(); }, [=] { step->backward(); },
        [=] { return bounds.products(Part::kBackward); });
    add(
        "  optimizer", nothing, [=] { step->update(); }, [=] { return bounds.update(); });

    const double gflop = 1e-9 * products->flops(Part::kBoth),
                 gigabytes = 1e-9 * products->spmm_bytes(Part::kBoth);
    comparisons.push_back({fmt::format("GEMMs of the step {} thr", threads), gflop,
                           [=] { return seconds_of([&] { products->multiply(Part::kBoth, threads); }); },
                           [=] { return gflop / products->blas_seconds(Part::kBoth, threads); },
                           products->count_wrong(threads), threads, "GFLOP/s"});
    comparisons.push_back({fmt::format("SpMMs of the step {} thr", threads), gigabytes,
                           [=] { return seconds_of([&] { products->aggregate(Part::kBoth, threads); }); },
                           [=] { return copy_rate(threads); }, products->count_wrong(threads), threads,
                           "GB/s"});
  }
  const auto title = fmt::format(
      "Training step, R-MAT scale {}, {} seeds, {} input rows, {} sampled edges; {:.2f} GFLOP of GEMM, "
      "{:.3f} GB of SpMM{}",
      scale, kBatchSize, first.minibatch().vertices.size(), first.minibatch().sampled_edges(),
      1e-9 * products->flops(Part::kBoth), 1e-9 * products->spmm_bytes(Part::kBoth), text);
  return compare(argc, argv, title, "1/s", comparisons);
}
