// The draws of graphsage.cpp for rows in device memory. First positions are drawn, a thread those
// of its row; then a thread for each pick turns its position into a vertex and a value, so that as
// many of these reads, which go anywhere in memory, are under way as the GPU has threads. Where a
// row has few picks, drawn uniformly, a block does both for its rows, and positions stay in memory
// that its threads share; else a kernel does each, and positions stand where picks belong.
//
// Draws by weight need prefix sums of each row's integer weights, which are in a scale of the row's
// own: differences of one sum over many rows, exact modulo 2^64 though that sum wraps, in groups
// whose weights fit kMostWeights. A race (device_race.hpp) needs no more than each row's total.
#include "device_race.hpp"
#include "device_row_draw.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/sample/draw.hpp"
#include "kept_entries.hpp"
#include "samplers.inl.hpp"

namespace espalier {

namespace {

constexpr std::int64_t kMostInLanes = std::numeric_limits<std::uint32_t>::max() - 64;
constexpr std::int64_t kMostWeights = std::int64_t{1} << 25;  // of one group of rows: 16 bytes each
// Rows that are not divided among groups.
constexpr std::int64_t kRowsTogether = 256;

// draw_uniform for a list that stays below kLanes positions, in the way of draw_few_uniform
// (sample/draw_few.hpp). Loops over `below` are unrolled: it is registers.
template <int kLanes>
__device__ void draw_in_lanes(const KeyedStream& stream, std::int64_t support, std::int64_t picks,
                              std::int64_t excluded_position, std::uint32_t* chosen) {
  std::uint32_t below[kLanes];
#pragma unroll
  for (int i = 0; i < kLanes; ++i) below[i] = static_cast<std::uint32_t>(kMostInLanes + kLanes);
  const bool excluded = excluded_position >= 0;
  if (excluded) below[0] = static_cast<std::uint32_t>(excluded_position);
  const auto bound = static_cast<std::uint64_t>(support - excluded);
  for (std::int64_t four = 0; four < picks; four += 4) {
    const auto words = random_block(stream, static_cast<std::uint64_t>(four / 4));
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (four + k < picks) {  // no break: it would keep a list for each way out
        const auto left = bound - static_cast<std::uint64_t>(four + k);
        const auto point = static_cast<std::uint32_t>(
            point_below(words.v[k], left, [&] { return std::uint64_t{low_random32(stream, four + k)}; }));
#pragma unroll
        for (int i = kLanes - 1; i >= 0; --i) {
          const auto behind = i == 0 || below[i - 1] <= point ? point : below[i - 1] - 1;
          below[i] = below[i] <= point ? below[i] : behind;
        }
      }
  }
  const auto count = picks + excluded;
#pragma unroll
  for (int i = 0; i < kLanes; ++i)
    if (i < count) chosen[i] = below[i] + i;
}

// ---- Uniform ------------------------------------------------------------------------------------

template <class Index>
__device__ inline GraphSageRow uniform_rule(const RowsToDraw<Index>& rows, std::int64_t row,
                                            const LayerDraw& layer) {
  const auto self_position = rows.self_position(row);
  return {self_position, rows.views[row].size - (self_position >= 0), layer.fanout_of(rows.keys[row])};
}

// Of draw_uniform_kernel on a multiprocessor; where more are to fit ptxas spills.
template <int kLanes>
constexpr int kBlocksAtOnce = kLanes > 16  ? 3
                              : kLanes > 8 ? 4
                                           : 5;

// Rows of at most kLanes picks each.
template <int kLanes, class Index>
__global__ void __launch_bounds__(kBlockThreads, kBlocksAtOnce<kLanes>)
    draw_uniform_kernel(LayerDraw layer, RowsToDraw<Index> rows, const std::int64_t* offsets, Index* ids,
                        float* values) {
  __shared__ std::int64_t begins[kBlockThreads + 1];
  __shared__ std::uint32_t drawn[kBlockThreads * kLanes];
  const auto first = static_cast<std::int64_t>(blockIdx.x) * kBlockThreads;
  const auto count = rows.count - first < kBlockThreads ? rows.count - first : kBlockThreads;
  for (std::int64_t k = threadIdx.x; k <= count; k += kBlockThreads) begins[k] = offsets[first + k];
  __syncthreads();
  if (threadIdx.x < count) {
    const auto row = first + threadIdx.x;
    const auto rule = uniform_rule(rows, row, layer);
    if (!rule.whole())
      draw_in_lanes<kLanes>(layer.stream_of(rows.keys[row]), rows.views[row].size, rule.fanout,
                            rule.self_position, drawn + (begins[threadIdx.x] - begins[0]));
  }
  __syncthreads();
  for (auto at = begins[0] + threadIdx.x; at < begins[count]; at += kBlockThreads) {
    const auto k = row_of_entry(begins, 0, count - 1, at);
    const auto view = rows.views[first + k];
    const auto rule = uniform_rule(rows, first + k, layer);
    const auto position = rule.whole() ? at - begins[k] : drawn[at - begins[0]];
    ids[at] = view.indices[position];
    if (values != nullptr) values[at] = rule.value(view, position);
  }
}

template <int kLanes, class Index>
void draw_in_registers(const Cuda& cuda, const LayerDraw& layer, const RowsToDraw<Index>& rows,
                       Entries<Index, Cuda>& out) {
  launch(cuda, "draw_uniform", draw_uniform_kernel<kLanes, Index>, dim3(blocks_for(rows.count)),
         dim3(kBlockThreads), layer, rows, out.offsets.data(), out.ids.data(),
         out.values.empty() ? nullptr : out.values.data());
}

// Any number of picks: positions are drawn where the picks belong.
template <class Index>
void draw_in_memory(const Cuda& cuda, const LayerDraw& layer, const RowsToDraw<Index>& rows,
                    Entries<Index, Cuda>& out) {
  const auto* offsets = out.offsets.data();
  auto* positions = out.ids.data();
  for_each(cuda, "draw_uniform", rows.count, [=] __device__(std::int64_t row) {
    const auto rule = uniform_rule(rows, row, layer);
    if (rule.whole()) return;
    auto* chosen = positions + offsets[row];
    if (rule.excluded() > 0) chosen[0] = static_cast<Index>(rule.self_position);
    draw_uniform(layer.stream_of(rows.keys[row]), rows.views[row].size, rule.fanout, rule.excluded(), chosen);
  });
}

template <class Index>
void take_uniform(const Cuda& cuda, const LayerDraw& layer, const RowsToDraw<Index>& rows, std::int64_t total,
                  Entries<Index, Cuda>& out) {
  const auto* offsets = out.offsets.data();
  auto* indices = out.ids.data();
  auto* values = out.values.empty() ? nullptr : out.values.data();
  for_each_entry(
      cuda, "take_picks", offsets, rows.count, 0, total, [=] __device__(std::int64_t at, std::int64_t row) {
        const auto view = rows.views[row];
        const auto rule = uniform_rule(rows, row, layer);
        const auto position = rule.whole() ? at - offsets[row] : static_cast<std::int64_t>(indices[at]);
        indices[at] = view.indices[position];
        if (values != nullptr) values[at] = rule.value(view, position);
      });
}

// By the fewest registers that hold a row's picks; `in_registers`: no row exceeds kMostInLanes.
template <class Index>
void draw_uniform_rows(const Cuda& cuda, const LayerDraw& layer, const RowsToDraw<Index>& rows, bool values,
                       bool in_registers, Entries<Index, Cuda>& out) {
  const auto picks_of = [=] __device__(std::int64_t row) { return uniform_rule(rows, row, layer).picks(); };
  const auto total = make_room(cuda, rows.count, values, picks_of, out);
  const auto most = layer.fanout + (rows.diagonal != nullptr);
  if (in_registers && layer.fanout >= 0) {
    if (most <= 8) return draw_in_registers<8>(cuda, layer, rows, out);
    if (most <= 16) return draw_in_registers<16>(cuda, layer, rows, out);
    if (most <= 32) return draw_in_registers<32>(cuda, layer, rows, out);
  }
  if (layer.draws()) draw_in_memory(cuda, layer, rows, out);
  take_uniform(cuda, layer, rows, total, out);
}

// ---- Weighted -----------------------------------------------------------------------------------

// Rows of a weighted draw. Kept are entries of positive weight, and diagonals.
template <class Index>
struct WeightedRows {
  RowsToDraw<Index> rows;
  KeptBits kept;
  LayerDraw layer;
  Aggregation aggregation;
  const RowWeights* weights = nullptr;           // [rows]; null where none are needed
  const std::uint64_t* weight_before = nullptr;  // [words + 1], beside kept.before; or null

  __device__ GraphSageRow rule(std::int64_t row) const {
    const auto self_position = rows.self_position(row);
    return {self_position, kept.in_row(row) - (self_position >= 0), layer.fanout_of(rows.keys[row])};
  }
  __device__ std::uint64_t weight(std::int64_t row, std::int64_t position) const {
    return weights[row](rows.views[row], position);
  }
  __device__ std::uint64_t total(std::int64_t row) const {
    return weight_before[kept.words[row + 1]] - weight_before[kept.words[row]];
  }
  // Of an entry of a row that is taken whole.
  __device__ float whole_value(std::int64_t row, std::int64_t position) const {
    if (aggregation == Aggregation::kMatrix) return rows.views[row].values[position];
    return weight_share(weight(row, position), total(row));
  }
};

template <class Index>
KeptEntries find_positive(const Cuda& cuda, const RowsToDraw<Index>& rows) {
  const auto size_of = [=] __device__(std::int64_t row) { return rows.views[row].size; };
  const auto keeps = [=] __device__(std::int64_t row, std::int64_t position) {
    return rows.views[row].values[position] > 0 || position == rows.self_position(row);
  };
  return find_kept(cuda, rows.count, size_of, keeps);
}

// [rows] the integer weights of each, by its largest. Bits of numbers that are not negative ascend
// with them.
template <class Index>
DeviceArray<RowWeights> weights_of_rows(const Cuda& cuda, const WeightedRows<Index>& rows,
                                        std::int64_t words) {
  const auto count = rows.rows.count;
  DeviceArray<unsigned long long> largest(count);
  fill_zero(cuda, largest);
  auto* bits = largest.data();
  for_each_entry(cuda, "largest_weights", rows.kept.words, count, 0, words,
                 [=] __device__(std::int64_t word, std::int64_t row) {
                   const auto& view = rows.rows.views[row];
                   const auto first = (word - rows.kept.words[row]) * kWarp,
                              self_position = rows.rows.self_position(row);
                   float most = 0;
                   for (auto k = first; k < first + kWarp && k < view.size; ++k)
                     if (k != self_position && view.values[k] > most) most = view.values[k];
                   atomicMax(bits + row, static_cast<unsigned long long>(bit_cast<std::uint32_t>(most)));
                 });
  DeviceArray<RowWeights> weights(count);
  auto* to = weights.data();
  for_each(cuda, "scales_of_rows", count, [=] __device__(std::int64_t row) {
    const auto rule = rows.rule(row);
    const auto largest_weight = bit_cast<float>(static_cast<std::uint32_t>(bits[row]));
    to[row] = {rule.self_position, RowSupport{rule.available, largest_weight}.shift()};
  });
  return weights;
}

// [words + 1] the weights before each word of kept entries, of all rows: a row's are a difference.
template <class Index>
DeviceArray<std::uint64_t> weights_before(const Cuda& cuda, const WeightedRows<Index>& rows,
                                          std::int64_t words) {
  DeviceArray<std::uint64_t> of_word(words), before(static_cast<std::size_t>(words) + 1);
  auto* to = of_word.data();
  for_each_entry(cuda, "weights_of_words", rows.kept.words, rows.rows.count, 0, words,
                 [=] __device__(std::int64_t word, std::int64_t row) {
                   const auto first = (word - rows.kept.words[row]) * kWarp, size = rows.rows.views[row].size;
                   std::uint64_t sum = 0;
                   for (auto k = first; k < first + kWarp && k < size; ++k) sum += rows.weight(row, k);
                   to[word] = sum;
                 });
  exclusive_sum(cuda, of_word.data(), before.data(), words);
  return before;
}

template <class Index>
std::int64_t make_room(const Cuda& cuda, const WeightedRows<Index>& rows, Entries<Index, Cuda>& out) {
  const auto picks_of = [=] __device__(std::int64_t row) { return rows.rule(row).picks(); };
  return make_room(cuda, rows.rows.count, true, picks_of, out);
}

// [count + 1] where the weights of each row begin: a row that is taken whole needs none.
template <class Index>
DeviceArray<std::int64_t> weight_offsets(const Cuda& cuda, const WeightedRows<Index>& rows) {
  const auto count = rows.rows.count;
  DeviceArray<std::int64_t> sizes(count), offsets(static_cast<std::size_t>(count) + 1);
  auto* to = sizes.data();
  for_each(cuda, "weights_of_rows", count, [=] __device__(std::int64_t row) {
    to[row] = rows.rule(row).whole() ? 0 : rows.rows.views[row].size;
  });
  exclusive_sum(cuda, sizes.data(), offsets.data(), count);
  return offsets;
}

// Consecutive rows, and their weights among those of all rows.
struct RowGroup {
  std::int64_t first_row, last_row, first_weight, last_weight;
};

// Groups of rows with at most kMostWeights weights each, or of kRowsTogether rows.
std::vector<RowGroup> groups_of_rows(const Cuda& cuda, const DeviceArray<std::int64_t>& offsets) {
  const auto rows = std::ssize(offsets) - 1, pieces = (rows + kRowsTogether - 1) / kRowsTogether;
  DeviceArray<std::int64_t> at_pieces(pieces + 1);
  auto* to = at_pieces.data();
  const auto* from = offsets.data();
  for_each(cuda, "weights_of_pieces", pieces + 1, [=] __device__(std::int64_t piece) {
    to[piece] = from[piece * kRowsTogether < rows ? piece * kRowsTogether : rows];
  });
  const auto weights = download(cuda, at_pieces);
  std::vector<RowGroup> groups;
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    const auto begin = weights[piece], end = weights[piece + 1];
    const auto last_row = std::min(rows, (piece + 1) * kRowsTogether);
    if (groups.empty() || end - groups.back().first_weight > kMostWeights)
      groups.push_back({piece * kRowsTogether, last_row, begin, end});
    groups.back().last_row = last_row;
    groups.back().last_weight = end;
  }
  return groups;
}

// Prefix sums of the weights of a group's rows.
template <class Index>
DeviceArray<std::uint64_t> prefix_sums(const Cuda& cuda, const WeightedRows<Index>& rows,
                                       const RowGroup& group, const std::int64_t* offsets) {
  const auto count = group.last_weight - group.first_weight;
  DeviceArray<std::uint64_t> weights(count), sums(static_cast<std::size_t>(count) + 1);
  auto* to = weights.data();
  for_each_entry(cuda, "integer_weights", offsets, rows.rows.count, group.first_weight, count,
                 [=] __device__(std::int64_t at, std::int64_t row) {
                   to[at - group.first_weight] = rows.weight(row, at - offsets[row]);
                 });
  exclusive_sum(cuda, weights.data(), sums.data(), count);
  return sums;
}

// The positions and values of a group's rows that are not taken whole; in_order: as `out`.
template <class Index>
void draw_group(const Cuda& cuda, const LayerDraw& layer, const WeightedRows<Index>& rows,
                const RowGroup& group, const std::int64_t* weight_offsets, const std::uint64_t* sums,
                Index* in_order, Entries<Index, Cuda>& out) {
  const auto* offsets = out.offsets.data();
  auto* positions = out.ids.data();
  auto* values = out.values.data();
  for_each(cuda, "draw_weighted", group.last_row - group.first_row, [=] __device__(std::int64_t k) {
    const auto row = group.first_row + k;
    const auto rule = rows.rule(row);
    if (rule.whole()) return;
    const auto view = rows.rows.views[row];
    const PrefixOfPart prefix = {sums + (weight_offsets[row] - group.first_weight)};
    auto* chosen = positions + offsets[row];
    auto* order = in_order + offsets[row];
    if (rule.excluded() > 0) chosen[0] = static_cast<Index>(rule.self_position);
    draw_weighted(layer.stream_of(rows.rows.keys[row]), prefix, view.size, rule.fanout, rule.excluded(),
                  chosen, order);
    weigh_by_des_raj(
        view, rows.aggregation, rows.weights[row], prefix[view.size],
        [=](std::int64_t j) { return order[j]; }, rule.fanout, chosen, rule.picks(), values + offsets[row]);
  });
}

// The ways to draw by weight: the positions and values of rows that are not taken whole.
template <class Index>
void draw_by_its(const Cuda& cuda, const LayerDraw& layer, const WeightedRows<Index>& rows,
                 Entries<Index, Cuda>& out) {
  DeviceArray<Index> in_order(std::ssize(out.ids));
  const auto offsets = weight_offsets(cuda, rows);
  for (const auto& group : groups_of_rows(cuda, offsets)) {
    const auto sums = prefix_sums(cuda, rows, group, offsets.data());
    draw_group(cuda, layer, rows, group, offsets.data(), sums.data(), in_order.data(), out);
  }
}

template <class Index>
void draw_by_race(const Cuda& cuda, const LayerDraw& layer, const WeightedRows<Index>& rows,
                  Entries<Index, Cuda>& out) {
  const auto* offsets = out.offsets.data();
  const auto winners = race_of_rows(
      cuda, rows.rows.count, [=] __device__(std::int64_t row) { return rows.rows.views[row].size; },
      [=] __device__(std::int64_t row) {
        const auto rule = rows.rule(row);
        return rule.whole() ? std::int64_t{0} : rule.fanout;
      },
      [=] __device__(std::int64_t row, std::int64_t position) -> Runner {
        const auto neighbour = static_cast<std::int64_t>(rows.rows.views[row].indices[position]);
        return {exponential(race_word(layer.stream_of(rows.rows.keys[row]), neighbour)),
                rows.weight(row, position), position};
      },
      offsets, std::ssize(out.ids));
  const auto* first = winners.data();
  auto* positions = out.ids.data();
  auto* values = out.values.data();
  for_each(cuda, "weigh_arrivals", rows.rows.count, [=] __device__(std::int64_t row) {
    const auto rule = rows.rule(row);
    if (rule.whole()) return;
    const auto* order = first + offsets[row];
    auto* chosen = positions + offsets[row];
    if (rule.excluded() > 0) chosen[0] = static_cast<Index>(rule.self_position);
    for (std::int64_t j = 0; j < rule.fanout; ++j)
      insert_ascending(chosen, rule.excluded() + j, 0, order[j].place);
    weigh_by_des_raj(
        rows.rows.views[row], rows.aggregation, rows.weights[row], rows.total(row),
        [=](std::int64_t j) { return order[j].place; }, rule.fanout, chosen, rule.picks(),
        values + offsets[row]);
  });
}

// Positions become vertices; the diagonal is worth its entry.
template <class Index>
void take_weighted(const Cuda& cuda, const WeightedRows<Index>& rows, Entries<Index, Cuda>& out) {
  auto* indices = out.ids.data();
  auto* values = out.values.data();
  for_each_entry(cuda, "take_picks", out.offsets.data(), rows.rows.count, 0, std::ssize(out.ids),
                 [=] __device__(std::int64_t at, std::int64_t row) {
                   const auto rule = rows.rule(row);
                   if (rule.whole()) return;
                   const auto& view = rows.rows.views[row];
                   const auto position = static_cast<std::int64_t>(indices[at]);
                   indices[at] = view.indices[position];
                   if (position == rule.self_position) values[at] = view.values[position];
                 });
}

template <class Index>
void take_whole_rows(const Cuda& cuda, const WeightedRows<Index>& rows, const KeptEntries& kept,
                     Entries<Index, Cuda>& out) {
  const auto* offsets = out.offsets.data();
  auto* indices = out.ids.data();
  auto* values = out.values.data();
  for_each_kept(cuda, "take_whole_rows", kept,
                [=] __device__(std::int64_t row, std::int64_t position, std::int64_t rank) {
                  if (!rows.rule(row).whole()) return;
                  indices[offsets[row] + rank] = rows.rows.views[row].indices[position];
                  values[offsets[row] + rank] = rows.whole_value(row, position);
                });
}

template <class Index>
void draw_weighted_rows(const Cuda& cuda, const LayerDraw& layer, const RowsToDraw<Index>& all,
                        const SamplerShape& shape, Entries<Index, Cuda>& out) {
  const auto kept = find_positive(cuda, all);
  WeightedRows<Index> rows = {all, kept.view(), layer, shape.aggregation};
  const bool shares = shape.aggregation == Aggregation::kMean, draws = layer.draws();
  DeviceArray<RowWeights> weights;
  if (shares || draws) {
    weights = weights_of_rows(cuda, rows, kept.word_count);
    rows.weights = weights.data();
  }
  DeviceArray<std::uint64_t> before;
  if (shares || (draws && shape.draw == DrawLaw::kRace)) {
    before = weights_before(cuda, rows, kept.word_count);
    rows.weight_before = before.data();
  }
  make_room(cuda, rows, out);
  if (draws) {
    (shape.draw == DrawLaw::kRace ? draw_by_race<Index> : draw_by_its<Index>)(cuda, layer, rows, out);
    take_weighted(cuda, rows, out);
  }
  take_whole_rows(cuda, rows, kept, out);
}

// ---- Both ---------------------------------------------------------------------------------------

template <class Index>
class GraphSageDraw final : public RowDraw<Index, Cuda> {
 public:
  /// For a matrix of so many columns.
  GraphSageDraw(const SamplerShape& shape, std::int64_t columns)
      : shape_(shape), in_registers_(columns <= kMostInLanes) {}

  bool has_values() const override { return shape_.weighs_picks(); }
  Purpose purpose() const override { return purpose_of_draws(shape_); }
  bool keeps_small_rows() const override { return !has_values(); }

  void draw(const Cuda& cuda, const LayerDraw& layer, const RowView<Index>* views, const RowKey* keys,
            std::int64_t count, Entries<Index, Cuda>& out) const override {
    const auto diagonal = diagonal_positions(cuda, layer, views, keys, count, shape_.aggregation);
    const RowsToDraw<Index> rows = {views, keys, diagonal.data(), count};
    if (shape_.weighted)
      draw_weighted_rows(cuda, layer, rows, shape_, out);
    else
      draw_uniform_rows(cuda, layer, rows, has_values(), in_registers_, out);
  }

 private:
  SamplerShape shape_;
  bool in_registers_;
};

}  // namespace

template <class Index>
std::unique_ptr<SamplerOn<Cuda>> make_graphsage(const Cuda&, const DistCsr<Index, Cuda>& a,
                                                const SamplerShape& shape) {
  check_weights(a.on_host(), shape);
  return make_node_wise<Index, Cuda>("graphsage", a, shape,
                                     std::make_unique<GraphSageDraw<Index>>(shape, a.local.columns));
}

ESPALIER_INSTANTIATE_SAMPLER(graphsage, Cuda)

}  // namespace espalier
