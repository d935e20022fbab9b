// GraphSAGE (Hamilton et al. 2017; Tripathy et al. 2024, section 4.1): every frontier vertex draws
// s of its neighbours, uniformly or in proportion to the entries of A (exact integer weights: 1, or
// entries in a fixed point of the row's own, RowWeights). A draw takes a point below the integer
// total of its row (its: inverse transform sampling, draw.hpp), or the entries run a race
// (draw_race.hpp): one law, other picks.
//
// Block values. Matrix (GCN): the diagonal entry is kept exactly and outside of the draw. A uniform
// pick is worth 1/|picked| of a mean, a_vu * deg/|picked| of a matrix with deg the off-diagonal
// entries of the row. A pick drawn in proportion to a_vu is weighted by Des Raj's estimator (Des
// Raj 1956, decision 023), unbiased without replacement: a_vu (r_j / p_j + s - j) / s of a matrix
// for the j-th of s draws, r_j = 1 - the probabilities drawn before; (r_j + (s - j) p_j) / s of a
// mean, which is that of the matrix p: the weighted mean, a_vu over the row's sum. A row that is
// taken whole has the entries of the matrix, or p.
#include <array>
#include <numeric>

#include "espalier/base/error.hpp"
#include "espalier/base/random_blocks.hpp"
#include "espalier/sample/block_value.hpp"
#include "espalier/sample/draw.hpp"
#include "espalier/sample/draw_few.hpp"
#include "espalier/sample/draw_race.hpp"
#include "node_wise.hpp"
#include "samplers.inl.hpp"

namespace espalier {

namespace {

constexpr std::size_t kWindow = 32;  // rows whose picks are on their way from memory together

// Scratch of one call; grows to the longest row it met.
struct Scratch {
  std::vector<std::uint64_t> prefix;
  std::vector<std::int64_t> chosen;
  std::vector<std::int64_t> in_order;
  Race race;
};

// The total weight of a row, known or not.
template <class Index>
std::uint64_t total_of(const RowView<Index>& row, const RowWeights& weights, const RowSupport& support) {
  return support.total > 0 ? support.total : total_weight(row, weights.self_position, weights.shift);
}

// The ways to draw by weight: `s` positions of a row, in the order drawn and ascending, into
// scratch.in_order and chosen. They return the row's total weight.
template <class Index>
using WeightedDraw = std::uint64_t (*)(const KeyedStream& stream, const RowView<Index>& row,
                                       const RowWeights& weights, const RowSupport& support, std::int64_t s,
                                       Scratch& scratch);

template <class Index>
std::uint64_t draw_by_its(const KeyedStream& stream, const RowView<Index>& row, const RowWeights& weights,
                          const RowSupport&, std::int64_t s, Scratch& scratch) {
  auto& prefix = scratch.prefix;
  prefix.resize(row.size + 1);
  prefix[0] = 0;
  for (std::int64_t k = 0; k < row.size; ++k) prefix[k + 1] = prefix[k] + weights(row, k);
  scratch.chosen.resize(s);
  scratch.in_order.resize(s);
  draw_weighted(stream, prefix.data(), row.size, s, 0, scratch.chosen.data(), scratch.in_order.data());
  return prefix.back();
}

template <class Index>
void run_race(const KeyedStream& stream, const RowView<Index>& row, const RowWeights& weights, std::int64_t s,
              Scratch& scratch) {
  auto& race = scratch.race;
  race.start(stream, s);
  without_place(row.size, weights.self_position, [&](std::int64_t begin, std::int64_t end) {
    race.enter(
        row.indices + begin, end - begin, [&](std::int64_t k) { return weights.of(row.values[begin + k]); },
        [&](std::int64_t k) { return begin + k; });
  });
  scratch.in_order.clear();
  for (const auto& candidate : race.arrivals()) scratch.in_order.push_back(candidate.place);
  scratch.chosen = scratch.in_order;
  std::ranges::sort(scratch.chosen);
}

template <class Index>
std::uint64_t draw_by_race(const KeyedStream& stream, const RowView<Index>& row, const RowWeights& weights,
                           const RowSupport& support, std::int64_t s, Scratch& scratch) {
  run_race(stream, row, weights, s, scratch);
  return total_of(row, weights, support);
}

// The random words of a window of rows, drawn together.
class WordQueue {
 public:
  explicit WordQueue(const LayerDraw& layer) : layer_(layer) {}
  void clear() { asked_ = taken_ = 0; }
  /// The row's first `count` <= kFewDraws words will be wanted.
  void ask(const RowKey& key, std::int64_t count) {
    for (std::int64_t block = 0; 4 * block < count; ++block, ++asked_) {
      const auto at = asked_ % kBlocksAtOnce;
      auto& counters = counters_[asked_ / kBlocksAtOnce];
      counters.block[at] = static_cast<std::uint64_t>(block);
      counters.row[at] = static_cast<std::uint64_t>(key.vertex);
      counters.batch[at] = static_cast<std::uint64_t>(key.batch);
      if (layer_.keys == nullptr) continue;
      auto& keys = keys_[asked_ / kBlocksAtOnce];
      keys.low[at] = layer_.keys[key.relation].low;
      keys.high[at] = layer_.keys[key.relation].high;
    }
  }
  void fill() {
    for (std::size_t k = 0; k * kBlocksAtOnce < asked_; ++k) {
      auto* const words = words_.data() + 4 * kBlocksAtOnce * k;
      if (layer_.keys == nullptr)
        random_blocks(layer_.stream.key, counters_[k], words);
      else
        random_blocks(keys_[k], counters_[k], words);
    }
  }
  /// The high halves of the words of the next row that asked.
  const std::uint32_t* take(std::int64_t count) {
    const auto* words = words_.data() + 4 * taken_;
    taken_ += static_cast<std::size_t>(count + 3) / 4;
    return words;
  }

 private:
  static constexpr std::size_t kMostBlocks = kWindow * (kFewDraws / 4);
  const LayerDraw& layer_;
  std::array<BlockCounters, kMostBlocks / kBlocksAtOnce> counters_;
  std::array<BlockKeys, kMostBlocks / kBlocksAtOnce> keys_;
  alignas(64) std::array<std::uint32_t, 4 * kMostBlocks> words_;
  std::size_t asked_ = 0, taken_ = 0;
};

template <class Index>
class GraphSageDraw final : public RowDraw<Index> {
 public:
  using Row = RowView<Index>;

  explicit GraphSageDraw(const SamplerShape& shape)
      : weighted_(shape.weighted),
        purpose_(purpose_of_draws(shape)),
        join_(join_of_draws(shape, false)),
        draw_by_weight_(shape.draw == DrawLaw::kRace ? draw_by_race<Index> : draw_by_its<Index>),
        aggregation_(shape.aggregation) {}

  bool has_values() const override { return weighted_ || aggregation_ == Aggregation::kMatrix; }
  Purpose purpose() const override { return purpose_; }
  bool scans() const override { return weighted_; }
  bool keeps_small_rows() const override { return !has_values(); }

  void draw(const Cpu&, const LayerDraw& layer, const Row* first_row, const RowKey* keys, std::int64_t count,
            Entries<Index>& out) const override {
    const std::span<const Row> rows(first_row, static_cast<std::size_t>(count));
    if (draws_few(layer, rows)) return draw_few(layer, rows, keys, out);
    Scratch scratch;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      draw_row(layer, rows[r], keys[r], nullptr, out, scratch);
      out.end_row();
    }
  }

  // Uniform draws are of places in the whole row; a piece gives those that are its own. Of a race
  // it gives its own first.
  JoinPieces join() const override { return join_; }
  void draw_pieces(const LayerDraw& layer, const Row* rows, const HeldWholeRows& wholes, const RowKey* keys,
                   std::int64_t count, Entries<Index>& out) const override {
    Scratch scratch;
    std::int64_t from = 0;  // rows from here on are here whole
    for (std::int64_t r = 0; r <= count; ++r) {
      const auto whole = r < count ? wholes(keys[r].vertex, rows[r].size) : WholeRow();
      if (r < count && whole.is_here) continue;
      if (r > from) draw(Cpu{1}, layer, rows + from, keys + from, r - from, out);
      from = r + 1;
      if (r == count) return;
      const auto stream = layer.stream_of(keys[r]);
      if (weighted_)
        take_candidates(rows[r], *whole.support, layer.fanout_of(keys[r]), keys[r].vertex, stream, out,
                        scratch);
      else
        draw_piece(rows[r], whole, layer.fanout_of(keys[r]), stream, out, scratch.chosen);
      out.end_row();
    }
  }
  void merge(const LayerDraw& layer, const Row* rows, const RowSupport* supports, const RowKey* keys,
             std::int64_t count, Entries<Index>& out) const override {
    Scratch scratch;
    for (std::int64_t r = 0; r < count; ++r) {
      if (supports[r].size > 0) {
        draw_row(layer, rows[r], keys[r], &supports[r], out, scratch);
      } else {
        for (std::int64_t k = 0; k < rows[r].size; ++k) take(rows[r], k, out);
      }
      out.end_row();
    }
  }

 private:
  // What may be picked of a piece: with it alone the whole row's picks that are in it are the same.
  void take_candidates(const Row& row, const RowSupport& support, std::int64_t fanout, std::int64_t self,
                       const KeyedStream& stream, Entries<Index>& out, Scratch& scratch) const {
    if (fanout == 0) return;
    const auto self_position = diagonal_position(row, self, fanout, aggregation_);
    auto& chosen = scratch.chosen;
    if (GraphSageRow{self_position, support.size, fanout}.whole()) {
      chosen.clear();
      for (std::int64_t k = 0; k < row.size; ++k)
        if (row.values[k] > 0 || k == self_position) chosen.push_back(k);
    } else {
      run_race(stream, row, {self_position, support.shift()}, fanout, scratch);
      if (self_position >= 0) chosen.insert(std::ranges::lower_bound(chosen, self_position), self_position);
    }
    for (const auto position : chosen) take(row, position, out);
  }
  static void take(const Row& row, std::int64_t position, Entries<Index>& out) {
    out.ids.push_back(row.indices[position]);
    out.values.push_back(row.values[position]);
  }

  void draw_piece(const Row& row, WholeRow whole, std::int64_t fanout, const KeyedStream& stream,
                  Entries<Index>& out, std::vector<std::int64_t>& chosen) const {
    const auto self_position = aggregation_ == Aggregation::kMatrix && fanout != 0 ? whole.diagonal : -1;
    const GraphSageRow rule = {self_position, whole.size - (self_position >= 0), fanout};
    const auto take = [&](std::int64_t k, std::int64_t place) {
      out.ids.push_back(row.indices[k]);
      if (has_values()) out.values.push_back(rule.value_of(row.values[k], place));
    };
    if (rule.whole()) {
      for (std::int64_t k = 0; k < row.size; ++k) take(k, -1);
      return;
    }
    chosen.resize(rule.picks());
    if (rule.excluded() > 0) chosen[0] = self_position;
    draw_uniform(stream, whole.size, fanout, rule.excluded(), chosen.data());
    for (const auto place : chosen)
      if (const auto k = whole.find(place); k >= 0) take(k, place);
  }

  bool draws_few(const LayerDraw& layer, std::span<const Row> rows) const {
    return !weighted_ && layer.fanout >= 0 && layer.fanout < kFewDraws &&
           std::ranges::all_of(rows, [](const Row& row) { return row.size <= kMostForFewDraws; });
  }

  // A few uniform picks, the usual case. A window of rows at a time: the positions of all picks are
  // drawn and their entries, which lie anywhere in memory, are asked for; then they are read.
  void draw_few(const LayerDraw& layer, std::span<const Row> rows, const RowKey* keys,
                Entries<Index>& out) const {
    struct Drawn {
      std::int32_t chosen[kFewDraws];
      GraphSageRow rule;
    };
    std::array<Drawn, kWindow> window;
    WordQueue words(layer);
    for (std::size_t from = 0; from < rows.size(); from += kWindow) {
      const auto here = rows.subspan(from, std::min(kWindow, rows.size() - from));
      words.clear();
      for (std::size_t r = 0; r < here.size(); ++r) {
        auto& drawn = window[r];
        const auto fanout = layer.fanout_of(keys[from + r]);
        const auto self_position = diagonal_position(here[r], keys[from + r].vertex, fanout, aggregation_);
        drawn.rule = {self_position, here[r].size - (self_position >= 0), fanout};
        if (!drawn.rule.whole()) words.ask(keys[from + r], fanout);
        out.offsets.push_back(out.offsets.back() + drawn.rule.picks());
      }
      words.fill();
      for (std::size_t r = 0; r < here.size(); ++r) {
        auto& [chosen, rule] = window[r];
        if (rule.whole())
          std::iota(chosen, chosen + kFewDraws, 0);
        else
          draw_few_uniform(
              words.take(rule.fanout),
              [&](std::int64_t t) {
                return low_random32(layer.stream_of(keys[from + r]), static_cast<std::uint64_t>(t));
              },
              here[r].size, rule.fanout, rule.self_position, chosen);
        const auto count = rule.picks();
        for (std::int64_t k = 0; k < count; ++k) __builtin_prefetch(here[r].indices + chosen[k]);
      }
      auto at = out.ids.size();
      out.ids.resize(out.offsets.back());
      if (has_values()) out.values.resize(out.ids.size());
      for (std::size_t r = 0; r < here.size(); ++r) {
        const auto& [chosen, rule] = window[r];
        const auto count = rule.picks();
        if (has_values())
          for (std::int64_t k = 0; k < count; ++k)
            out.values[at + static_cast<std::size_t>(k)] = rule.value(here[r], chosen[k]);
        for (std::int64_t k = 0; k < count; ++k) out.ids[at++] = here[r].indices[chosen[k]];
      }
    }
  }

  // `known`: the support of a row of which candidates are here; null: of the row.
  void draw_row(const LayerDraw& layer, const Row& row, const RowKey& key, const RowSupport* known,
                Entries<Index>& out, Scratch& scratch) const {
    const auto fanout = layer.fanout_of(key);
    const auto stream = layer.stream_of(key);
    const auto self_position = diagonal_position(row, key.vertex, fanout, aggregation_);
    const auto support = known != nullptr ? *known
                         : weighted_      ? support_of(row, self_position)
                                          : RowSupport{.size = row.size - (self_position >= 0)};
    const GraphSageRow rule = {self_position, support.size, fanout};
    const RowWeights weights = {self_position, weighted_ ? support.shift() : 0};
    if (rule.whole()) return take_whole_row(row, weights, support, out);
    auto &chosen = scratch.chosen, &in_order = scratch.in_order;
    std::uint64_t total = 0;
    if (weighted_) {
      total = draw_by_weight_(stream, row, weights, support, fanout, scratch);
      if (rule.excluded() > 0) chosen.insert(std::ranges::lower_bound(chosen, self_position), self_position);
    } else {
      chosen.resize(rule.picks());
      if (rule.excluded() > 0) chosen[0] = self_position;
      draw_uniform(stream, row.size, fanout, rule.excluded(), chosen.data());
    }
    for (const auto position : chosen) out.ids.push_back(row.indices[position]);
    if (!has_values()) return;
    const auto first = std::ssize(out.values);
    for (const auto position : chosen) out.values.push_back(rule.value(row, position));
    if (weighted_)
      weigh_by_des_raj(
          row, aggregation_, weights, total, [&](std::int64_t j) { return in_order[j]; }, fanout,
          chosen.data(), std::ssize(chosen), out.values.data() + first);
  }

  void take_whole_row(const Row& row, const RowWeights& weights, const RowSupport& support,
                      Entries<Index>& out) const {
    const bool shares = weighted_ && aggregation_ == Aggregation::kMean;
    const auto total = shares ? total_of(row, weights, support) : 0;
    for (std::int64_t k = 0; k < row.size; ++k) {
      if (weighted_ && !(row.values[k] > 0) && k != weights.self_position) continue;
      out.ids.push_back(row.indices[k]);
      if (has_values()) out.values.push_back(shares ? weight_share(weights(row, k), total) : row.values[k]);
    }
  }

  bool weighted_;
  Purpose purpose_;
  JoinPieces join_;
  WeightedDraw<Index> draw_by_weight_;
  Aggregation aggregation_;
};

}  // namespace

template <class Index>
void check_weights(const DistCsr<Index>& a, const SamplerShape& shape) {
  if (shape.weighted && !a.has_values)
    input_error(
        "sampler.weighted = true, but the graph has no edge weights; import it with --edge-weight, or draw "
        "uniformly");
  ESPALIER_CHECK(purpose_of_draws(shape) != Purpose::kRace || a.local.columns <= kMostRaceColumns,
                 "a race over {} columns: sampler.draw = \"race\" knows at most {}", a.local.columns,
                 kMostRaceColumns);
}

template <class Index>
std::unique_ptr<Sampler> make_graphsage(const Cpu&, const DistCsr<Index>& a, const SamplerShape& shape) {
  check_weights(a, shape);
  return make_node_wise<Index, Cpu>("graphsage", a, shape, std::make_unique<GraphSageDraw<Index>>(shape));
}

template void check_weights(const DistCsr<std::int32_t>&, const SamplerShape&);
template void check_weights(const DistCsr<std::int64_t>&, const SamplerShape&);
ESPALIER_INSTANTIATE_SAMPLER(graphsage, Cpu)

}  // namespace espalier
