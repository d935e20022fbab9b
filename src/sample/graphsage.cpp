// GraphSAGE as matrices (Hamilton et al. 2017; Tripathy et al. 2024, section 4.1), for k batches stacked row
// under row:
//
//     Q      one row per frontier vertex v with a 1 in column v
//     P      = Q A                       row v of P is the neighbourhood of v
//     picks  = SAMPLE(P, s)              exact integer weights: 1, or fixed-point entries of A
//     B      = EXTRACT(A, F, picks)      batch by batch, F[l-1] = F[l] + new vertices in ascending id
//
// NORM divides nothing: a draw takes a point below the integer total of its row (sample/draw.hpp).
//
// Block values. Mean: 1/|picked|. Matrix (GCN): the diagonal entry is kept exactly and outside of the draw; a
// uniform pick is worth a_vu * deg/|picked| with deg the off-diagonal entries of the row. A pick drawn in
// proportion to a_vu is weighted by Des Raj's estimator, a_vu (r_j / p_j + s - j) / s for the j-th of s
// draws, r_j = 1 - the probabilities drawn before: unbiased for draws without replacement, which deg/|picked|
// would not be.
#include <algorithm>
#include <numeric>

#include "espalier/base/fixed_point.hpp"
#include "espalier/dist/product.hpp"
#include "espalier/sample/block_value.hpp"
#include "espalier/sample/draw.hpp"
#include "espalier/sample/sampler.hpp"
#include "extract.hpp"

namespace espalier {

namespace {

// The frontiers of all batches of a bulk, one under the other.
struct StackedFrontier {
  Buffer<std::int64_t> vertices;
  Buffer<std::int64_t> batch;         // [vertices]: index into the bulk
  std::vector<std::int64_t> offsets;  // [batches + 1]
};

StackedFrontier stack(const std::vector<Minibatch>& minibatches) {
  StackedFrontier frontier;
  frontier.offsets.push_back(0);
  for (std::size_t b = 0; b < minibatches.size(); ++b) {
    const auto& vertices = minibatches[b].vertices;
    frontier.vertices.insert(frontier.vertices.end(), vertices.begin(), vertices.end());
    frontier.batch.insert(frontier.batch.end(), vertices.size(), static_cast<std::int64_t>(b));
    frontier.offsets.push_back(std::ssize(frontier.vertices));
  }
  return frontier;
}

// Scratch of one thread; grows to the longest row it met.
struct Scratch {
  std::vector<std::uint64_t> prefix;
  std::vector<std::int64_t> chosen;
  std::vector<std::int64_t> in_order;
};

template <class Index>
class GraphSage final : public Sampler {
 public:
  using Row = typename SelectedRows<Index>::Row;

  GraphSage(const DistCsr<Index>& a, const SamplerShape& shape) : a_(a), shape_(shape) {
    float largest = 0;
    for (const float value : a.local.values) largest = std::max(largest, value);
    largest = a.grid->world().all_reduce(largest, Reduction::kMax, "setup");
    if (largest > 0) shift_ = weight_shift(largest);
  }

  std::vector<Minibatch> sample(const Cpu& cpu, std::span<const SeedBatch> batches, std::uint64_t seed,
                                std::uint64_t epoch) override {
    std::vector<Minibatch> minibatches(batches.size());
    for (std::size_t b = 0; b < batches.size(); ++b) {
      minibatches[b].number = batches[b].number;
      minibatches[b].vertices.assign(batches[b].seeds.begin(), batches[b].seeds.end());
      minibatches[b].blocks.resize(shape_.fanout.size());
    }
    const auto layers = std::ssize(shape_.fanout);
    for (auto layer = layers; layer >= 1; --layer)
      sample_layer(cpu, layer, shape_.fanout[static_cast<std::size_t>(layers - layer)],
                   {.seed = seed, .purpose = Purpose::kSample, .epoch = epoch}, minibatches);
    return minibatches;
  }

 private:
  void sample_layer(const Cpu& cpu, std::int64_t layer, std::int64_t fanout, const RandomStream& stream,
                    std::vector<Minibatch>& minibatches) const {
    const auto frontier = stack(minibatches);
    const auto p = select_rows_pull(cpu, std::span<const std::int64_t>(frontier.vertices), a_, shape_.label);
    const auto rows = std::ssize(p.rows);

    Buffer<std::int64_t> offsets(static_cast<std::size_t>(rows) + 1);
    offsets[0] = 0;
#pragma omp parallel for num_threads(cpu.threads) schedule(dynamic, 1024)
    for (std::int64_t q = 0; q < rows; ++q)
      offsets[static_cast<std::size_t>(q) + 1] =
          block_row_size(p.rows[static_cast<std::size_t>(q)], fanout, vertex(frontier, q));
    std::inclusive_scan(offsets.begin(), offsets.end(), offsets.begin());

    Buffer<std::int64_t> picks(static_cast<std::size_t>(offsets.back()));
    Buffer<float> values(picks.size());
#pragma omp parallel num_threads(cpu.threads)
    {
      Scratch scratch;
#pragma omp for schedule(dynamic, 256)
      for (std::int64_t q = 0; q < rows; ++q) {
        const auto i = static_cast<std::size_t>(q);
        RandomStream of_row = stream;
        of_row.batch =
            static_cast<std::uint64_t>(minibatches[static_cast<std::size_t>(frontier.batch[i])].number);
        of_row.layer = static_cast<std::uint64_t>(layer);
        of_row.row = static_cast<std::uint64_t>(frontier.vertices[i]);
        sample_row(p.rows[i], fanout, frontier.vertices[i], of_row, offsets[i + 1] - offsets[i],
                   picks.data() + offsets[i], values.data() + offsets[i], scratch);
      }
    }

#pragma omp parallel for num_threads(cpu.threads) schedule(dynamic, 1)
    for (std::int64_t b = 0; b < std::ssize(minibatches); ++b) {
      auto& minibatch = minibatches[static_cast<std::size_t>(b)];
      const auto first = frontier.offsets[static_cast<std::size_t>(b)],
                 last = frontier.offsets[static_cast<std::size_t>(b) + 1];
      const std::span<const std::int64_t> of_batch(offsets.data() + first,
                                                   static_cast<std::size_t>(last - first + 1));
      const auto from = static_cast<std::size_t>(of_batch.front()),
                 count = static_cast<std::size_t>(of_batch.back()) - from;
      minibatch.blocks[static_cast<std::size_t>(layer - 1)] = extract_block(
          of_batch, {picks.data() + from, count}, {values.data() + from, count}, minibatch.vertices);
    }
  }

  static std::int64_t vertex(const StackedFrontier& frontier, std::int64_t q) {
    return frontier.vertices[static_cast<std::size_t>(q)];
  }

  // The position of the diagonal entry in a row that keeps it out of the draw; -1 otherwise.
  std::int64_t diagonal(const Row& row, std::int64_t self) const {
    if (shape_.aggregation != Aggregation::kMatrix) return -1;
    const auto* found = std::lower_bound(row.indices, row.indices + row.size, static_cast<Index>(self));
    return found != row.indices + row.size && *found == self ? found - row.indices : -1;
  }

  // Entries that can be drawn: all but the diagonal, with positive weight when the draw is weighted.
  std::int64_t support(const Row& row, std::int64_t self_position) const {
    if (!shape_.weighted) return row.size - (self_position >= 0);
    std::int64_t positive = 0;
    for (std::int64_t k = 0; k < row.size; ++k) positive += row.values[k] > 0 && k != self_position;
    return positive;
  }

  std::int64_t block_row_size(const Row& row, std::int64_t fanout, std::int64_t self) const {
    const auto self_position = diagonal(row, self);
    const auto available = support(row, self_position);
    return (self_position >= 0) + (fanout < 0 ? available : std::min(fanout, available));
  }

  void sample_row(const Row& row, std::int64_t fanout, std::int64_t self, const RandomStream& stream,
                  std::int64_t size, std::int64_t* picks, float* values, Scratch& scratch) const {
    const auto self_position = diagonal(row, self);
    const std::int64_t excluded = self_position >= 0;
    const auto drawn = size - excluded;
    const auto available = support(row, self_position);
    if (fanout < 0 || available <= fanout) {
      take_whole_row(row, self_position, drawn, picks, values);
      return;
    }
    scratch.chosen.resize(static_cast<std::size_t>(size));
    if (excluded > 0) scratch.chosen[0] = self_position;
    if (shape_.weighted) {
      fill_prefix(row, scratch.prefix);
      scratch.in_order.resize(static_cast<std::size_t>(drawn));
      draw_weighted(stream, scratch.prefix.data(), row.size, drawn, excluded, scratch.chosen.data(),
                    scratch.in_order.data());
    } else {
      draw_uniform(stream, row.size, drawn, excluded, scratch.chosen.data());
    }
    for (std::int64_t k = 0; k < size; ++k) {
      const auto position = scratch.chosen[static_cast<std::size_t>(k)];
      picks[k] = row.indices[position];
      values[k] = shape_.aggregation == Aggregation::kMean ? mean_value(drawn)
                  : position == self_position              ? row.values[position]
                                              : uniform_value(row.values[position], available, drawn);
    }
    if (shape_.weighted && shape_.aggregation == Aggregation::kMatrix)
      weigh_by_des_raj(row, self_position, scratch, values);
  }

  void take_whole_row(const Row& row, std::int64_t self_position, std::int64_t drawn, std::int64_t* picks,
                      float* values) const {
    std::int64_t out = 0;
    for (std::int64_t k = 0; k < row.size; ++k) {
      if (shape_.weighted && !(row.values[k] > 0) && k != self_position) continue;
      picks[out] = row.indices[k];
      values[out++] = shape_.aggregation == Aggregation::kMean ? mean_value(drawn) : row.values[k];
    }
  }

  void fill_prefix(const Row& row, std::vector<std::uint64_t>& prefix) const {
    prefix.resize(static_cast<std::size_t>(row.size) + 1);
    prefix[0] = 0;
    for (std::int64_t k = 0; k < row.size; ++k)
      prefix[static_cast<std::size_t>(k) + 1] =
          prefix[static_cast<std::size_t>(k)] + fixed_point_weight(row.values[k], shift_);
  }

  // r_j / p_j of the estimator above is a ratio of exact integers: the weight left before draw j over the
  // weight drawn.
  void weigh_by_des_raj(const Row& row, std::int64_t self_position, const Scratch& scratch,
                        float* values) const {
    const auto weight = [&](std::int64_t k) {
      return scratch.prefix[static_cast<std::size_t>(k) + 1] - scratch.prefix[static_cast<std::size_t>(k)];
    };
    const auto s = std::ssize(scratch.in_order);
    std::uint64_t remaining = scratch.prefix.back() - (self_position >= 0 ? weight(self_position) : 0);
    for (std::int64_t j = 1; j <= s; ++j) {
      const auto position = scratch.in_order[static_cast<std::size_t>(j - 1)];
      const auto at =
          std::lower_bound(scratch.chosen.begin(), scratch.chosen.end(), position) - scratch.chosen.begin();
      values[at] = des_raj_value(row.values[position], remaining, weight(position), j, s);
      remaining -= weight(position);
    }
  }

  const DistCsr<Index>& a_;
  SamplerShape shape_;
  int shift_ = 0;
};

}  // namespace

template <class Index>
std::unique_ptr<Sampler> make_graphsage(const DistCsr<Index>& a, const SamplerShape& shape) {
  if (shape.weighted && !a.has_values)
    input_error(
        "sampler.weighted = true, but the graph has no edge weights; import it with --edge-weight, or draw "
        "uniformly");
  return std::make_unique<GraphSage<Index>>(a, shape);
}

template std::unique_ptr<Sampler> make_graphsage(const DistCsr<std::int32_t>&, const SamplerShape&);
template std::unique_ptr<Sampler> make_graphsage(const DistCsr<std::int64_t>&, const SamplerShape&);

}  // namespace espalier
