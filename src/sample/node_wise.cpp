#include "node_wise.hpp"

#include "espalier/sample/block_value.hpp"
#include "expected_work.hpp"
#include "extract.hpp"

namespace espalier {

namespace {

// A RowDraw as the operation that the product applies where the row lies.
template <class Index>
class DrawOperation final : public RowOperation<Index> {
 public:
  DrawOperation(const RowDraw<Index>& draw, const LayerDraw& layer) : draw_(draw), layer_(layer) {}
  bool has_values() const override { return draw_.has_values(); }
  void apply(std::span<const RowView<Index>> rows, std::span<const RowKey> keys,
             RowEntries<Index>& out) const override {
    draw_.draw(layer_, rows, keys, out);
  }

 private:
  const RowDraw<Index>& draw_;
  LayerDraw layer_;
};

template <class Index>
class NodeWise final : public Sampler {
 public:
  NodeWise(const DistCsr<Index>& a, const SamplerShape& shape, std::unique_ptr<RowDraw<Index>> draw)
      : a_(a), shape_(shape), draw_(std::move(draw)) {
    const auto moments = degree_moments(a, shape.fanout);
    schedules_ = choose_schedules(a, shape, node_wise_work(moments, shape, draw_->has_values()));
  }

  std::vector<Minibatch> sample(const Cpu& cpu, std::span<const SeedBatch> batches, std::uint64_t seed,
                                std::uint64_t epoch) override {
    auto minibatches = begin_minibatches(batches, shape_.fanout.size());
    const auto layers = std::ssize(shape_.fanout);
    for (auto layer = layers; layer >= 1; --layer) {
      const LayerDraw draw = {{.seed = seed,
                               .purpose = Purpose::kSample,
                               .epoch = epoch,
                               .layer = static_cast<std::uint64_t>(layer)},
                              shape_.fanout[static_cast<std::size_t>(layers - layer)]};
      sample_layer(cpu, static_cast<std::size_t>(layer - 1), draw, minibatches);
    }
    return minibatches;
  }

  const std::vector<Schedule>& schedules() const override { return schedules_; }

 private:
  void sample_layer(const Cpu& cpu, std::size_t block, const LayerDraw& layer,
                    std::vector<Minibatch>& minibatches) const {
    const auto frontier = stack(minibatches);
    const auto schedule = schedules_[schedules_.size() - 1 - block];
    auto picks = open_product(cpu, frontier, a_, schedule, shape_.label)
                     ->apply(cpu, DrawOperation<Index>(*draw_, layer));
    if (!draw_->has_values()) fill_with_means(cpu, picks);
#pragma omp parallel for num_threads(cpu.threads) schedule(dynamic, 1)
    for (std::int64_t b = 0; b < std::ssize(minibatches); ++b) {
      auto& minibatch = minibatches[static_cast<std::size_t>(b)];
      const std::span<const std::int64_t> offsets(
          picks.offsets.data() + frontier.begin(b),
          static_cast<std::size_t>(frontier.end(b) - frontier.begin(b)) + 1);
      const auto from = static_cast<std::size_t>(offsets.front()),
                 count = static_cast<std::size_t>(offsets.back()) - from;
      minibatch.blocks[block] =
          extract_block(offsets, std::span<const Index>(picks.indices).subspan(from, count),
                        std::span<const float>(picks.values).subspan(from, count), minibatch.vertices);
    }
  }

  static void fill_with_means(const Cpu& cpu, RowEntries<Index>& picks) {
    picks.values.resize(picks.indices.size());
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
    for (std::int64_t row = 0; row < picks.rows(); ++row)
      if (picks.size(row) > 0)
        std::fill_n(picks.values.begin() + picks.begin(row), picks.size(row), mean_value(picks.size(row)));
  }

  const DistCsr<Index>& a_;
  SamplerShape shape_;
  std::unique_ptr<RowDraw<Index>> draw_;
  std::vector<Schedule> schedules_;
};

}  // namespace

template <class Index>
std::unique_ptr<Sampler> make_node_wise(const DistCsr<Index>& a, const SamplerShape& shape,
                                        std::unique_ptr<RowDraw<Index>> draw) {
  return std::make_unique<NodeWise<Index>>(a, shape, std::move(draw));
}

template std::unique_ptr<Sampler> make_node_wise(const DistCsr<std::int32_t>&, const SamplerShape&,
                                                 std::unique_ptr<RowDraw<std::int32_t>>);
template std::unique_ptr<Sampler> make_node_wise(const DistCsr<std::int64_t>&, const SamplerShape&,
                                                 std::unique_ptr<RowDraw<std::int64_t>>);

}  // namespace espalier
