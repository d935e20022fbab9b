// FastGCN (Chen et al. 2018): per batch and layer, s vertices out of one global distribution.
//
//     weight of vertex u    the squared norm of column u of M, sum over v of M_vu^2, in fixed
//                           point; mode reference: the norm itself, as in the authors' code
//     P                     has the same row for every batch, so no product with A is needed: a
//                           SAMPLE from weights that are spread over the grid (spread_weights.hpp)
//     factor of a picked column, with q_u = weight / total:
//                           paper, reference   1 / (s q_u)
//                           debiased           Des Raj's, as in LADIES: E[B H] = M H; 1 when
//                                              all is taken
//
// Draws are made one after another without replacement, in rounds: while picks are missing, as many
// points are drawn on the axis without the vertices taken in earlier rounds and resolved together;
// a vertex that was hit before in the round is dropped. That is the law of drawing with replacement
// and dropping duplicates, and each round brings at least one pick per batch. Points are words of
// the batch's stream in order, so the picks do not depend on the grid. A support of at most s is
// taken whole. With a fanout for each relation each has a part of the axis.
#include "fastgcn.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "espalier/base/id_map.hpp"
#include "espalier/sample/draw.hpp"
#include "samplers.inl.hpp"

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
      sums[view.indices[k] - first] += weight(view.values == nullptr ? nullptr : view.values + k);
  }
}

// The squared norms of the columns of my range (weight_ranges). Range by range, so that no rank
// holds a weight for every vertex. Collective over the process column.
template <class Index>
std::vector<std::uint64_t> squared_column_norms(const DistCsr<Index>& m) {
  const auto weight = square_weight(m);
  std::vector<std::uint64_t> mine;
  const auto ranges = weight_ranges(m);
  for (int part = 0; part < m.parts(); ++part) {
    std::vector<std::uint64_t> sums(ranges.size(part), 0);
    add_squares(m.local, weight, ranges.begin(part), sums);
    if (m.parts() > 1)
      m.grid->column_comm().all_reduce(std::span<std::uint64_t>(sums), Reduction::kSum, "setup");
    if (part == m.part) mine = std::move(sums);
  }
  return mine;
}

// Norms in fixed point with the bits that their sum allows; at least 1 where a column is not empty.
void take_roots(std::vector<std::uint64_t>& squares, std::int64_t vertices) {
  const int shift = std::clamp(shift_for_sum(0x1p31, vertices), 0, 20);
  for (auto& weight : squares) weight = fixed_point_weight(std::sqrt(static_cast<double>(weight)), shift);
}

// The draws of one list.
class ListDraws {
 public:
  ListDraws(const KeyedStream& stream, std::int64_t picks, const AxisPart& part)
      : words_(stream), missing_(picks), part_(part) {}

  std::int64_t missing() const { return missing_; }
  const std::vector<Interval>& in_order() const { return in_order_; }
  std::uint64_t total() const { return part_.total; }

  // A point for each missing pick: of the part without what was removed, on the whole axis.
  void next_points(std::uint64_t* points) {
    for (std::int64_t k = 0; k < missing_; ++k)
      points[k] = part_.begin + axis_.on_whole_axis(words_.next_below(part_.total - axis_.removed()));
  }

  // Takes the vertices that the points of a round hit, in the order of the points.
  void take(const Interval* hits) {
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
    for (const auto& interval : removed_) axis_.cut(interval.start - part_.begin, interval.weight);
  }

 private:
  RandomWords words_;
  std::int64_t missing_;
  AxisPart part_;
  std::vector<Interval> in_order_;
  std::vector<Interval> removed_;  // ascending: what earlier rounds took
  CutAxis axis_;                   // the part without them
};

// Appends the columns of draws made in this order, ascending, and their factors.
template <class Index>
void add_picks(std::span<const Interval> in_order, std::span<const double> factors,
               LayerPicks<Index>& picks) {
  std::vector<std::pair<Index, double>> ascending;
  for (std::size_t j = 0; j < in_order.size(); ++j)
    ascending.emplace_back(static_cast<Index>(in_order[j].vertex), factors[j]);
  std::sort(ascending.begin(), ascending.end());
  for (const auto& [column, factor] : ascending) {
    picks.columns.push_back(column);
    picks.factors.push_back(factor);
  }
}

std::vector<double> factors_of(std::span<const Interval> in_order, SamplerMode mode, std::uint64_t total) {
  std::vector<std::uint64_t> weights;
  for (const auto& interval : in_order) weights.push_back(interval.weight);
  return pick_factors(mode, total, weights, static_cast<double>(in_order.size()));
}

}  // namespace

struct DrawRoundsOn<Cpu>::State {
  SharedList<std::int64_t> offsets;
  std::vector<ListDraws> lists;
  std::vector<std::int64_t> begins;  // [lists + 1] of the points of a round

  void begin_round() {
    begins.assign(1, 0);
    for (const auto& list : lists) begins.push_back(begins.back() + list.missing());
  }
};

DrawRoundsOn<Cpu>::DrawRoundsOn(const Cpu&, std::span<const KeyedStream> streams,
                                const SharedList<std::int64_t>& offsets, const std::vector<AxisPart>& parts,
                                std::int64_t)
    : state_(new State{offsets, {}, {}}) {
  for (std::int64_t k = 0; k < std::ssize(streams); ++k)
    state_->lists.emplace_back(streams[k], offsets[k + 1] - offsets[k], parts[k % std::ssize(parts)]);
  state_->begin_round();
}
DrawRoundsOn<Cpu>::~DrawRoundsOn() = default;

std::int64_t DrawRoundsOn<Cpu>::missing() const {
  return state_->begins.back();
}

Buffer<std::uint64_t> DrawRoundsOn<Cpu>::next_points(const Cpu& cpu) {
  Buffer<std::uint64_t> points(missing());
#pragma omp parallel for num_threads(cpu.threads) schedule(dynamic, 1)
  for (std::int64_t k = 0; k < std::ssize(state_->lists); ++k)
    state_->lists[k].next_points(points.data() + state_->begins[k]);
  return points;
}

void DrawRoundsOn<Cpu>::take(const Cpu& cpu, const Buffer<Interval>& hits) {
#pragma omp parallel for num_threads(cpu.threads) schedule(dynamic, 1)
  for (std::int64_t k = 0; k < std::ssize(state_->lists); ++k)
    state_->lists[k].take(hits.data() + state_->begins[k]);
  state_->begin_round();
}

template <class Index>
LayerPicks<Index, Cpu> DrawRoundsOn<Cpu>::picks(const Cpu&, SamplerMode mode) const {
  LayerPicks<Index, Cpu> picks = {state_->offsets, {}, {}};
  for (const auto& list : state_->lists)
    add_picks<Index>(list.in_order(), factors_of(list.in_order(), mode, list.total()), picks);
  return picks;
}

template <class Index>
std::vector<std::uint64_t> fastgcn_weights(const DistCsr<Index>& m, SamplerMode mode) {
  auto weights = squared_column_norms(m);
  if (mode == SamplerMode::kReference) take_roots(weights, m.local.columns);
  return weights;
}

template <class Index>
void add_whole_support(std::span<const Interval> all, SamplerMode mode, std::uint64_t total,
                       LayerPicks<Index>& picks) {
  add_picks<Index>(
      all,
      mode == SamplerMode::kDebiased ? std::vector<double>(all.size(), 1.0) : factors_of(all, mode, total),
      picks);
}

template <class Index>
std::unique_ptr<Sampler> make_fastgcn(const Cpu& cpu, const DistCsr<Index>& m, const SamplerShape& shape) {
  return make_layer_wise<Index, Cpu>("fastgcn", m, shape,
                                     std::make_unique<FastGcnDistribution<Index, Cpu>>(cpu, m, shape));
}

#define ESPALIER_INSTANTIATE(Index)                                                        \
  template LayerPicks<Index, Cpu> DrawRoundsOn<Cpu>::picks(const Cpu&, SamplerMode) const; \
  template std::vector<std::uint64_t> fastgcn_weights(const DistCsr<Index>&, SamplerMode); \
  template void add_whole_support(std::span<const Interval>, SamplerMode, std::uint64_t, LayerPicks<Index>&);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE
ESPALIER_INSTANTIATE_SAMPLER(fastgcn, Cpu)

}  // namespace espalier
