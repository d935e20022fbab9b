// FastGCN on a GPU (fastgcn.cpp says what is drawn). The picks do not depend on frontiers, so those of all batches and
// layers of a call are drawn together, in the CPU's rounds. A *list* is the draws of one batch and layer, a slot of it
// one pick. In every round
//
//     points     a list's slots from `taken` on draw a point each, on the axis without the list's taken vertices
//     sort       all slots by (list, vertex), stably: a slot that comes first of its vertex was hit first and is taken
//                (earlier rounds' come first, and are not hit again); the others are dropped
//     compact    the taken ones move to the front of their list, in the order of their draws; in the order of the sort they
//                are the intervals to cut out
//
// until no slot is open; then the sort is that of the picks.
#include "espalier/sample/fastgcn.hpp"

#include <algorithm>
#include <bit>

#include "device_layer_wise.hpp"
#include "espalier/base/device_algorithms.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/base/search.hpp"
#include "fastgcn.hpp"

namespace espalier {

namespace {

// The lists of a call, layer by layer.
struct DrawLists {
  const std::int64_t* begin;    // [count + 1] slots
  const RandomStream* streams;  // [count]
  std::int64_t count;
  const std::uint64_t* prefix;  // [vertices + 1] of all weights
  std::int64_t vertices;

  __device__ std::int64_t of(std::int64_t slot) const { return segment_of(begin, count, slot); }
  __device__ std::uint64_t total() const { return prefix[vertices]; }
  __device__ std::uint64_t weight(std::int64_t vertex) const { return prefix[vertex + 1] - prefix[vertex]; }
};

// What is cut out of the axis of each list: [slots], from where the list begins, ascending. CutAxis is the same on the
// host.
struct CutIntervals {
  const std::uint64_t* shortened_start;  // where each was, on the axis without those before it
  const std::uint64_t* width_to;         // of it and all before it
};

// The point number `point` of those that are left, where `taken` intervals were cut out.
__device__ std::uint64_t on_whole_axis(const CutIntervals& cut, std::int64_t begin, std::int64_t taken,
                                       std::uint64_t point) {
  const auto* const starts = cut.shortened_start + begin;
  const auto passed = std::upper_bound(starts, starts + taken, point) - starts;
  return passed == 0 ? point : point + cut.width_to[begin + passed - 1];
}

// Vertices for the open slots, and the sort's keys of all.
void draw_points(const Cuda& cuda, DrawLists lists, CutIntervals cut, const std::int64_t* taken,
                 const std::uint64_t* words_used, std::int64_t slots, std::int64_t* vertices,
                 std::uint64_t* keys, std::int64_t* numbers) {
  for_each(cuda, "fastgcn_points", slots, [=] __device__(std::int64_t slot) {
    const auto list = lists.of(slot), begin = lists.begin[list], open = slot - begin - taken[list];
    if (open >= 0) {
      const auto word = random64(lists.streams[list], words_used[list] + static_cast<std::uint64_t>(open));
      const auto removed = taken[list] == 0 ? 0 : cut.width_to[begin + taken[list] - 1];
      const auto point = on_whole_axis(cut, begin, taken[list], mulhi(word, lists.total() - removed));
      vertices[slot] = find_interval(lists.prefix, lists.vertices, point);
    }
    keys[slot] = static_cast<std::uint64_t>(list * lists.vertices + vertices[slot]);
    numbers[slot] = slot;
  });
}

// For place p of the sorted slots: does it hold the first of its vertex, and then the vertex' weight. first_of_slot: the
// same in the order of slots.
void flag_firsts(const Cuda& cuda, DrawLists lists, const std::uint64_t* sorted, const std::int64_t* numbers,
                 std::int64_t slots, std::int64_t* first, std::uint64_t* width, std::int64_t* first_of_slot) {
  for_each(cuda, "fastgcn_firsts", slots, [=] __device__(std::int64_t p) {
    const bool is_first = p == 0 || sorted[p - 1] != sorted[p];
    const auto vertex = static_cast<std::int64_t>(sorted[p] % static_cast<std::uint64_t>(lists.vertices));
    first[p] = is_first;
    width[p] = is_first ? lists.weight(vertex) : 0;
    first_of_slot[numbers[p]] = is_first;
  });
}

// The firsts of each list: in the order of slots to `vertices`, in the order of the sort to the intervals.
// before, before_slot, width: exclusive sums of what flag_firsts wrote.
void compact(const Cuda& cuda, DrawLists lists, const std::uint64_t* sorted, const std::int64_t* before,
             const std::uint64_t* width, const std::int64_t* before_slot, std::int64_t slots,
             const std::int64_t* drawn, std::int64_t* vertices, std::uint64_t* shortened_start,
             std::uint64_t* width_to) {
  for_each(cuda, "fastgcn_compact", slots, [=] __device__(std::int64_t p) {
    const auto begin = lists.begin[lists.of(p)];
    if (before_slot[p + 1] > before_slot[p]) vertices[begin + before_slot[p] - before_slot[begin]] = drawn[p];
    if (before[p + 1] == before[p]) return;
    const auto vertex = static_cast<std::int64_t>(sorted[p] % static_cast<std::uint64_t>(lists.vertices));
    const auto place = begin + before[p] - before[begin];
    shortened_start[place] = lists.prefix[vertex] - (width[p] - width[begin]);
    width_to[place] = width[p + 1] - width[begin];
  });
}

// The lists' counters after a round.
void end_round(const Cuda& cuda, DrawLists lists, const std::int64_t* before, std::int64_t* taken,
               std::uint64_t* words_used) {
  for_each(cuda, "fastgcn_end_round", lists.count, [=] __device__(std::int64_t list) {
    const auto begin = lists.begin[list], end = lists.begin[list + 1];
    words_used[list] += static_cast<std::uint64_t>(end - begin - taken[list]);
    taken[list] = before[end] - before[begin];
  });
}

void weights_in_order(const Cuda& cuda, DrawLists lists, const std::int64_t* vertices, std::int64_t slots,
                      std::uint64_t* weights) {
  for_each(cuda, "fastgcn_weights", slots,
           [=] __device__(std::int64_t slot) { weights[slot] = lists.weight(vertices[slot]); });
}

// drawn: exclusive sums of the weights in order.
template <class Index>
void value_picks(const Cuda& cuda, SamplerMode mode, DrawLists lists, const std::uint64_t* sorted,
                 const std::int64_t* numbers, const std::uint64_t* drawn, std::int64_t slots, Index* columns,
                 double* factors) {
  for_each(cuda, "fastgcn_values", slots, [=] __device__(std::int64_t p) {
    const auto list = lists.of(p), begin = lists.begin[list], picks = lists.begin[list + 1] - begin,
               slot = numbers[p];
    const auto left = lists.total() - (drawn[slot] - drawn[begin]);
    columns[p] = static_cast<Index>(sorted[p] % static_cast<std::uint64_t>(lists.vertices));
    factors[p] = pick_factor(mode, lists.total(), left, drawn[slot + 1] - drawn[slot], slot - begin + 1,
                             picks, static_cast<double>(picks));
  });
}

// The picks of all lists, one list under the other.
template <class Index>
struct ListPicks {
  std::vector<std::int64_t> offsets = {0};  // [lists + 1]
  DeviceArray<Index> columns;
  DeviceArray<double> factors;
};

// What the rounds work on.
struct Rounds {
  DeviceArray<std::int64_t> taken, vertices, drawn, numbers, sorted_numbers, first, before, first_of_slot,
      before_slot;
  DeviceArray<std::uint64_t> words_used, shortened_start, width_to, keys, sorted, widths, width_before;

  Rounds(const Cuda& cuda, std::size_t lists, std::size_t slots) : taken(lists), words_used(lists) {
    fill_zero(cuda, taken);
    fill_zero(cuda, words_used);
    for (auto* array : {&vertices, &drawn, &numbers, &sorted_numbers, &first, &first_of_slot})
      array->resize(slots);
    for (auto* array : {&shortened_start, &width_to, &keys, &sorted, &widths}) array->resize(slots);
    for (auto* array : {&before, &before_slot}) array->resize(slots + 1);
    width_before.resize(slots + 1);
  }
  std::int64_t slots() const { return std::ssize(keys); }
};

// One round; how many slots are open after it.
std::int64_t draw_round(const Cuda& cuda, const DrawLists& lists, Rounds& r) {
  const auto slots = r.slots();
  draw_points(cuda, lists, {r.shortened_start.data(), r.width_to.data()}, r.taken.data(), r.words_used.data(),
              slots, r.drawn.data(), r.keys.data(), r.numbers.data());
  sort_pairs(cuda, r.keys.data(), r.sorted.data(), r.numbers.data(), r.sorted_numbers.data(), slots,
             static_cast<int>(std::bit_width(static_cast<std::uint64_t>(lists.count * lists.vertices))));
  flag_firsts(cuda, lists, r.sorted.data(), r.sorted_numbers.data(), slots, r.first.data(), r.widths.data(),
              r.first_of_slot.data());
  exclusive_sum(cuda, r.first.data(), r.before.data(), slots);
  exclusive_sum(cuda, r.first_of_slot.data(), r.before_slot.data(), slots);
  exclusive_sum(cuda, r.widths.data(), r.width_before.data(), slots);
  compact(cuda, lists, r.sorted.data(), r.before.data(), r.width_before.data(), r.before_slot.data(), slots,
          r.drawn.data(), r.vertices.data(), r.shortened_start.data(), r.width_to.data());
  end_round(cuda, lists, r.before.data(), r.taken.data(), r.words_used.data());
  r.drawn.swap(r.vertices);
  return slots - download(cuda, r.before.data() + slots, 1)[0];
}

template <class Index>
class DeviceFastGcn final : public DeviceLayerDistribution<Index> {
 public:
  DeviceFastGcn(const Cuda& cuda, const DeviceDistCsr<Index>& m, const SamplerShape& shape)
      : vertices_(m.host->rows()), mode_(shape.mode), on_host_(*m.host, shape) {
    upload(cuda, on_host_.weights().prefix(), prefix_);
  }

  void begin(const Cuda& cuda, std::span<const RandomStream> streams,
             std::span<const std::int64_t> fanout) override {
    const auto layers = std::ssize(fanout);
    Buffer<RandomStream> keyed;
    picks_.offsets.assign(1, 0);
    for (std::int64_t layer = 1; layer <= layers; ++layer) {
      const auto of_layer = fanout[static_cast<std::size_t>(layers - layer)];
      for (auto stream : streams) {
        stream.layer = static_cast<std::uint64_t>(layer);
        keyed.push_back(stream);
        picks_.offsets.push_back(picks_.offsets.back() + (on_host_.takes_all(of_layer) ? 0 : of_layer));
      }
    }
    draw(cuda, upload(cuda, keyed));
  }

  DeviceLayerPicks<Index> pick(const Cuda& cuda, const LayerInput& input) override {
    return on_host_.takes_all(input.fanout) ? take_all(cuda, input.frontier.batches())
                                            : take_drawn(cuda, input.stream.layer, input.frontier.batches());
  }

  bool normalizes_rows() const override { return false; }
  bool uses_sums() const override { return false; }

 private:
  // The picks of all lists, of which list k has offsets[k + 1] - offsets[k] > 0 or takes all.
  void draw(const Cuda& cuda, const DeviceArray<RandomStream>& streams) {
    const auto slots = picks_.offsets.back();
    picks_.columns.resize(static_cast<std::size_t>(slots));
    picks_.factors.resize(static_cast<std::size_t>(slots));
    if (slots == 0) return;
    DeviceArray<std::int64_t> begin;
    upload(cuda, std::span<const std::int64_t>(picks_.offsets), begin);
    const DrawLists lists = {begin.data(), streams.data(), std::ssize(picks_.offsets) - 1, prefix_.data(),
                             vertices_};
    Rounds rounds(cuda, streams.size(), static_cast<std::size_t>(slots));
    while (draw_round(cuda, lists, rounds) > 0) {
    }
    weights_in_order(cuda, lists, rounds.drawn.data(), slots, rounds.widths.data());
    exclusive_sum(cuda, rounds.widths.data(), rounds.width_before.data(), slots);
    value_picks(cuda, mode_, lists, rounds.sorted.data(), rounds.sorted_numbers.data(),
                rounds.width_before.data(), slots, picks_.columns.data(), picks_.factors.data());
  }

  DeviceLayerPicks<Index> take_drawn(const Cuda& cuda, std::uint64_t layer, std::int64_t batches) const {
    DeviceLayerPicks<Index> picks;
    const auto first = (layer - 1) * static_cast<std::uint64_t>(batches);
    const auto begin = picks_.offsets[first];
    for (std::int64_t b = 1; b <= batches; ++b)
      picks.offsets.push_back(picks_.offsets[first + static_cast<std::uint64_t>(b)] - begin);
    upload(cuda, std::span<const std::int64_t>(picks.offsets), picks.device_offsets);
    const auto count = static_cast<std::size_t>(picks.offsets.back());
    picks.columns.resize(count);
    picks.factors.resize(count);
    copy_bytes_on_device(cuda, picks_.columns.data() + begin, picks.columns.data(), count * sizeof(Index));
    copy_bytes_on_device(cuda, picks_.factors.data() + begin, picks.factors.data(), count * sizeof(double));
    return picks;
  }

  DeviceLayerPicks<Index> take_all(const Cuda& cuda, std::int64_t batches) const {
    const auto whole = on_host_.whole_support();
    const auto size = whole.columns.size();
    const auto columns = upload(cuda, whole.columns);
    DeviceArray<double> factors;
    upload(cuda, std::span<const double>(whole.factors), factors);
    DeviceLayerPicks<Index> picks;
    picks.columns.resize(size * static_cast<std::size_t>(batches));
    picks.factors.resize(picks.columns.size());
    for (std::size_t b = 0; b < static_cast<std::size_t>(batches); ++b) {
      copy_bytes_on_device(cuda, columns.data(), picks.columns.data() + b * size, size * sizeof(Index));
      copy_bytes_on_device(cuda, factors.data(), picks.factors.data() + b * size, size * sizeof(double));
      picks.offsets.push_back(static_cast<std::int64_t>((b + 1) * size));
    }
    upload(cuda, std::span<const std::int64_t>(picks.offsets), picks.device_offsets);
    return picks;
  }

  std::int64_t vertices_;
  SamplerMode mode_;
  FastGcnDraws<Index> on_host_;        // the distribution
  DeviceArray<std::uint64_t> prefix_;  // [vertices + 1] of its weights
  ListPicks<Index> picks_;             // of the current call: [layers][batches], layer 1 first
};

}  // namespace

template <class Index>
std::unique_ptr<DeviceSampler> make_fastgcn(const Cuda& cuda, const DeviceDistCsr<Index>& m,
                                            const SamplerShape& shape) {
  return make_layer_wise<Index>(m, shape, std::make_unique<DeviceFastGcn<Index>>(cuda, m, shape));
}

#define ESPALIER_INSTANTIATE(Index)                                                              \
  template std::unique_ptr<DeviceSampler> make_fastgcn(const Cuda&, const DeviceDistCsr<Index>&, \
                                                       const SamplerShape&);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
