// FastGCN (Chen et al. 2018): per batch and layer, s vertices out of one global distribution.
//
//     weight of vertex u    the squared norm of column u of M, sum over v of M_vu^2, in fixed point; mode
//                           reference: the norm itself, as in the authors' code
//     P                     has the same row for every batch, so no product with A is needed: a SAMPLE from weights
//                           that are spread over the grid (spread_weights.hpp)
//     factor of a picked column, with q_u = weight / total:
//                           paper, reference   1 / (s q_u)
//                           debiased           Des Raj's, as in LADIES: E[B H] = M H; 1 when all is taken
//
// Draws are made one after another without replacement, in rounds: while picks are missing, as many points are
// drawn on the axis without the vertices taken in earlier rounds and resolved together; a vertex that was hit
// before in the round is dropped. That is the law of drawing with replacement and dropping duplicates, and each
// round brings at least one pick per batch. Points are words of the batch's stream in order, so the picks do not
// depend on the grid. A support of at most s is taken whole.
#include "fastgcn.hpp"

#include <algorithm>
#include <cmath>

#include "espalier/base/id_map.hpp"

namespace espalier {

namespace {

// Adds the squares of the entries of `m` in the columns [first, first + sums.size()).
template <class Index>
void add_squares(const Csr<Index>& m, const EntryWeight& weight, std::int64_t first,
                 std::span<std::uint64_t> sums) {
  const auto last = first + std::ssize(sums);
  for (std::int64_t row = 0; row < m.rows; ++row) {
    const auto view = row_view(m, row);
    auto k =
        std::lower_bound(view.indices, view.indices + view.size, static_cast<Index>(first)) - view.indices;
    for (; k < view.size && view.indices[k] < last; ++k)
      sums[static_cast<std::size_t>(view.indices[k] - first)] +=
          weight(view.values == nullptr ? nullptr : view.values + k);
  }
}

// The squared norms of the columns of my block row's range. Block by block, so that no rank holds a weight for
// every vertex. Collective over the process column.
template <class Index>
std::vector<std::uint64_t> squared_column_norms(const DistCsr<Index>& m) {
  const auto weight = square_weight(m);
  std::vector<std::uint64_t> mine;
  for (int part = 0; part < m.partition.parts(); ++part) {
    std::vector<std::uint64_t> sums(static_cast<std::size_t>(m.partition.size(part)), 0);
    add_squares(m.local, weight, m.partition.begin(part), sums);
    if (m.partition.parts() > 1)
      m.grid->column_comm().all_reduce(std::span<std::uint64_t>(sums), Reduction::kSum, "setup");
    if (part == m.part) mine = std::move(sums);
  }
  return mine;
}

// Norms in fixed point with as many bits as their sum over all vertices allows; at least 1 for a column that is
// not empty.
void take_roots(std::vector<std::uint64_t>& squares, std::int64_t vertices) {
  const int shift = std::clamp(weight_shift_for_sum(0x1p31, vertices), 0, 20);
  for (auto& weight : squares) weight = fixed_point_weight(std::sqrt(static_cast<double>(weight)), shift);
}

template <class Index>
class FastGcnDistribution final : public LayerDistribution<Index> {
 public:
  FastGcnDistribution(const DistCsr<Index>& m, const SamplerShape& shape) : draws_(m, shape) {}

  void begin(const Cpu& cpu, std::span<const RandomStream> streams,
             std::span<const std::int64_t> fanout) override {
    draws_.begin(cpu, streams, fanout);
  }

  std::vector<LayerPicks<Index>> pick(const Cpu&, Product<Index>&,
                                      const std::vector<OwnedMinibatch>& minibatches,
                                      std::span<const RandomStream>, std::int64_t layer,
                                      std::int64_t fanout) override {
    std::vector<LayerPicks<Index>> picks;
    for (std::size_t b = 0; b < minibatches.size(); ++b) picks.push_back(draws_.picks(b, layer, fanout));
    return picks;
  }

  bool normalizes_rows() const override { return false; }
  bool uses_sums() const override { return false; }

 private:
  FastGcnDraws<Index> draws_;
};

}  // namespace

void BatchDraws::next_points(std::uint64_t total, std::uint64_t* points) {
  for (std::int64_t k = 0; k < missing_; ++k)
    points[k] = axis_.on_whole_axis(mulhi(words_.next(), total - axis_.removed()));
}

void BatchDraws::take(const Interval* hits) {
  IdMap seen(missing_);
  const auto middle = std::ssize(removed_);
  for (std::int64_t k = 0, round = missing_; k < round; ++k) {
    const auto distinct = seen.size();
    seen.insert(hits[k].vertex);
    if (seen.size() == distinct) continue;  // hit before in this round
    in_order_.push_back(hits[k]);
    removed_.push_back(hits[k]);
    --missing_;
  }
  const auto before = [](const Interval& x, const Interval& y) { return x.start < y.start; };
  std::sort(removed_.begin() + middle, removed_.end(), before);
  std::inplace_merge(removed_.begin(), removed_.begin() + middle, removed_.end(), before);
  axis_.clear();
  for (const auto& interval : removed_) axis_.cut(interval.start, interval.weight);
}

template <class Index>
FastGcnDraws<Index>::FastGcnDraws(const DistCsr<Index>& m, const SamplerShape& shape)
    : m_(m), mode_(shape.mode), label_(shape.label + "/draws") {
  auto weights = squared_column_norms(m);
  if (mode_ == SamplerMode::kReference) take_roots(weights, m.rows());
  weights_ = SpreadWeights(m, weights);
  for (const auto fanout : shape.fanout)
    if (takes_all(fanout) && all_.empty()) all_ = weights_.all("setup");
}

template <class Index>
void FastGcnDraws<Index>::begin(const Cpu& cpu, std::span<const RandomStream> streams,
                                std::span<const std::int64_t> fanout) {
  const auto layers = std::ssize(fanout);
  batches_ = streams.size();
  draws_.clear();
  points_ = rounds_ = 0;
  for (std::int64_t layer = 1; layer <= layers; ++layer) {
    const auto picks = fanout[static_cast<std::size_t>(layers - layer)];
    for (auto stream : streams) {
      stream.layer = static_cast<std::uint64_t>(layer);
      draws_.emplace_back(stream, takes_all(picks) ? 0 : picks);
    }
  }
  while (draw_round(cpu)) {
  }
}

template <class Index>
LayerPicks<Index> FastGcnDraws<Index>::picks(std::size_t batch, std::int64_t layer,
                                             std::int64_t fanout) const {
  return takes_all(fanout)
             ? whole_support()
             : picks_of(draws_[static_cast<std::size_t>(layer - 1) * batches_ + batch].in_order(), false);
}

template <class Index>
bool FastGcnDraws<Index>::draw_round(const Cpu& cpu) {
  std::vector<std::int64_t> begin = {0};
  for (const auto& draws : draws_) begin.push_back(begin.back() + draws.missing());
  std::int64_t missing = begin.back();
  if (const int parts = m_.partition.parts(); parts > 1) {
    missing = m_.grid->column_comm().all_reduce(missing, Reduction::kMax, label_);
    m_.grid->traffic().predict(label_, 2.0 * (parts - 1), 2 * 8 * crossing(parts));
  }
  if (missing == 0) return false;
  ++rounds_;
  points_ += begin.back();
  std::vector<std::uint64_t> points(static_cast<std::size_t>(begin.back()));
#pragma omp parallel for num_threads(cpu.threads) schedule(dynamic, 1)
  for (std::size_t k = 0; k < draws_.size(); ++k)
    draws_[k].next_points(weights_.total(), points.data() + begin[k]);
  const auto found = weights_.find(points, label_);
#pragma omp parallel for num_threads(cpu.threads) schedule(dynamic, 1)
  for (std::size_t k = 0; k < draws_.size(); ++k) draws_[k].take(found.data() + begin[k]);
  return true;
}

template <class Index>
LayerPicks<Index> FastGcnDraws<Index>::picks_of(const std::vector<Interval>& in_order, bool whole) const {
  std::vector<std::uint64_t> weights;
  for (const auto& interval : in_order) weights.push_back(interval.weight);
  auto factors = whole && mode_ == SamplerMode::kDebiased
                     ? std::vector<double>(in_order.size(), 1.0)
                     : pick_factors(mode_, weights_.total(), weights, static_cast<double>(in_order.size()));
  std::vector<std::pair<Index, double>> ascending;
  for (std::size_t j = 0; j < in_order.size(); ++j)
    ascending.emplace_back(static_cast<Index>(in_order[j].vertex), factors[j]);
  std::sort(ascending.begin(), ascending.end());
  LayerPicks<Index> picks;
  for (const auto& [column, factor] : ascending) {
    picks.columns.push_back(column);
    picks.factors.push_back(factor);
  }
  return picks;
}

template <class Index>
std::unique_ptr<Sampler> make_fastgcn(const DistCsr<Index>& m, const SamplerShape& shape) {
  return make_layer_wise<Index>(m, shape, std::make_unique<FastGcnDistribution<Index>>(m, shape));
}

template class FastGcnDraws<std::int32_t>;
template class FastGcnDraws<std::int64_t>;
template std::unique_ptr<Sampler> make_fastgcn(const DistCsr<std::int32_t>&, const SamplerShape&);
template std::unique_ptr<Sampler> make_fastgcn(const DistCsr<std::int64_t>&, const SamplerShape&);

}  // namespace espalier
