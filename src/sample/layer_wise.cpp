#include "layer_wise.hpp"

#include <algorithm>

#include "espalier/sample/block_value.hpp"
#include "expected_work.hpp"

namespace espalier {

namespace {

template <class Index>
class LayerWise final : public Sampler {
 public:
  LayerWise(const DistCsr<Index>& m, const SamplerShape& shape,
            std::unique_ptr<LayerDistribution<Index>> distribution)
      : m_(m), shape_(shape), distribution_(std::move(distribution)) {
    schedules_ = layer_wise_schedules(m, shape, distribution_->uses_sums());
  }

  std::vector<Minibatch> sample(const Cpu& cpu, std::span<const SeedBatch> batches, std::uint64_t seed,
                                std::uint64_t epoch) override {
    auto minibatches = begin_minibatches(batches, shape_.fanout.size());
    std::vector<RandomStream> streams;
    for (const auto& batch : batches)
      streams.push_back({.seed = seed,
                         .purpose = Purpose::kSample,
                         .epoch = epoch,
                         .batch = static_cast<std::uint64_t>(batch.number)});
    distribution_->begin(cpu, streams, shape_.fanout);
    const auto layers = std::ssize(shape_.fanout);
    for (auto layer = layers; layer >= 1; --layer) {
      for (auto& stream : streams) stream.layer = static_cast<std::uint64_t>(layer);
      sample_layer(cpu, layer, shape_.fanout[static_cast<std::size_t>(layers - layer)], streams, minibatches);
    }
    return finish_minibatches(std::move(minibatches));
  }

  const std::vector<Schedule>& schedules() const override { return schedules_; }

 private:
  void sample_layer(const Cpu& cpu, std::int64_t layer, std::int64_t fanout,
                    std::span<const RandomStream> streams, std::vector<OwnedMinibatch>& minibatches) const {
    const auto frontier = stack(minibatches);
    const auto schedule = schedules_[schedules_.size() - static_cast<std::size_t>(layer)];
    const auto product = open_product(cpu, frontier, m_, schedule, shape_.label);
    const auto picks = distribution_->pick(cpu, *product, minibatches, streams, layer, fanout);
    std::vector<std::span<const Index>> columns;
    for (const auto& of_batch : picks) columns.emplace_back(of_batch.columns);
    const auto entries = product->columns(cpu, columns);
#pragma omp parallel for num_threads(cpu.threads) schedule(dynamic, 1)
    for (std::int64_t b = 0; b < std::ssize(minibatches); ++b)
      minibatches[static_cast<std::size_t>(b)].blocks[static_cast<std::size_t>(layer - 1)] =
          make_block(entries, frontier.begin(b), frontier.end(b), picks[static_cast<std::size_t>(b)],
                     minibatches[static_cast<std::size_t>(b)].vertices);
  }

  // Rows first .. last-1 of `entries` are F[l] of one batch; vertices: in F[l], out F[l-1].
  Block make_block(const RowEntries<std::int32_t>& entries, std::int64_t first, std::int64_t last,
                   const LayerPicks<Index>& picks, Buffer<std::int64_t>& vertices) const {
    Buffer<std::int32_t> place(picks.columns.size());
    LocalIds(m_.rows()).extend(Cpu{1}, std::span<const Index>(picks.columns), vertices, place.data());
    Block block;
    block.rows = last - first;
    block.columns = std::ssize(vertices);
    block.indptr.resize(static_cast<std::size_t>(block.rows) + 1);
    for (auto row = first; row <= last; ++row)
      block.indptr[static_cast<std::size_t>(row - first)] =
          entries.offsets[static_cast<std::size_t>(row)] - entries.begin(first);
    block.indices.resize(static_cast<std::size_t>(block.indptr.back()));
    block.values.resize(block.indices.size());
    for (auto row = first; row < last; ++row) {
      const auto from = entries.begin(row), to = from + entries.size(row);
      double sum = 1;
      if (distribution_->normalizes_rows()) {
        sum = 0;
        for (auto k = from; k < to; ++k) sum += product_of(entries, k, picks);
      }
      for (auto k = from; k < to; ++k) {
        const auto out = static_cast<std::size_t>(k - entries.begin(first));
        block.indices[out] = place[static_cast<std::size_t>(entries.indices[static_cast<std::size_t>(k)])];
        block.values[out] = layer_value(product_of(entries, k, picks), sum);
      }
    }
    return block;
  }

  // Entry k times the factor of its column, in float64.
  static double product_of(const RowEntries<std::int32_t>& entries, std::int64_t k,
                           const LayerPicks<Index>& picks) {
    const auto i = static_cast<std::size_t>(k);
    const float value = entries.values.empty() ? 1.0f : entries.values[i];
    return layer_product(value, picks.factors[static_cast<std::size_t>(entries.indices[i])]);
  }

  const DistCsr<Index>& m_;
  SamplerShape shape_;
  std::unique_ptr<LayerDistribution<Index>> distribution_;
  std::vector<Schedule> schedules_;
};

// The largest square of an entry, over all ranks; 1 for a matrix without values. Collective.
template <class Index>
double largest_square(const DistCsr<Index>& m) {
  double largest = m.has_values ? 0 : 1;
  for (const float value : m.local.values)
    largest = std::max(largest, static_cast<double>(value) * static_cast<double>(value));
  return m.grid->world().all_reduce(largest, Reduction::kMax, "setup");
}

}  // namespace

std::vector<double> pick_factors(SamplerMode mode, std::uint64_t total,
                                 std::span<const std::uint64_t> in_order, double divisor) {
  std::vector<double> factors;
  const auto s = std::ssize(in_order);
  std::uint64_t remaining = total;
  for (std::int64_t j = 1; j <= s; ++j) {
    const auto weight = in_order[static_cast<std::size_t>(j - 1)];
    factors.push_back(pick_factor(mode, total, remaining, weight, j, s, divisor));
    remaining -= weight;
  }
  return factors;
}

template <class Index>
EntryWeight square_weight(const DistCsr<Index>& m) {
  std::int64_t entries = m.local.entries();
  if (m.partition.parts() > 1) entries = m.grid->column_comm().all_reduce(entries, Reduction::kSum, "setup");
  const auto largest = largest_square(m);
  return {.squared = true, .shift = largest > 0 ? weight_shift_for_sum(largest, entries) : 0};
}

template <class Index>
std::vector<Schedule> layer_wise_schedules(const DistCsr<Index>& m, const SamplerShape& shape,
                                           bool uses_sums) {
  return choose_schedules(
      m, shape, layer_wise_work(degree_moments(m, shape.fanout), shape, m.partition.parts(), uses_sums));
}

template <class Index>
std::unique_ptr<Sampler> make_layer_wise(const DistCsr<Index>& m, const SamplerShape& shape,
                                         std::unique_ptr<LayerDistribution<Index>> distribution) {
  return std::make_unique<LayerWise<Index>>(m, shape, std::move(distribution));
}

#define ESPALIER_INSTANTIATE(Index)                                                                      \
  template EntryWeight square_weight(const DistCsr<Index>&);                                             \
  template std::vector<Schedule> layer_wise_schedules(const DistCsr<Index>&, const SamplerShape&, bool); \
  template std::unique_ptr<Sampler> make_layer_wise(const DistCsr<Index>&, const SamplerShape&,          \
                                                    std::unique_ptr<LayerDistribution<Index>>);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
