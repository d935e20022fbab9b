// The draws of fastgcn.cpp on a GPU. A slot of a list is one of its picks. In every round
//
//     points     a list's slots from `taken` on draw a point each, on the axis without the list's
//                taken vertices
//     sort       all slots by (list, vertex), stably: a slot that comes first of its vertex was
//                hit first and is taken (earlier rounds' come first, and are not hit again); the
//                others are dropped
//     compact    the taken ones move to the front of their list, in the order of their draws; in
//                the order of the sort they are the intervals to cut out
//
// until no slot is open; then the sort is that of the picks.
#include "fastgcn.hpp"

#include <bit>

#include "each_entry.hpp"
#include "espalier/base/device_algorithms.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/base/launch.hpp"
#include "samplers.inl.hpp"
#include "spread_weights.hpp"

namespace espalier {

void find_intervals(const Cuda& cuda, const WeightAxisOn<Cuda>& axis, const std::uint64_t* points,
                    std::int64_t count, Interval* intervals) {
  const auto* const prefix = axis.prefix.data();
  const auto vertices = std::ssize(axis.prefix) - 1, first = axis.first_vertex;
  for_each(cuda, "find_intervals", count, [=] __device__(std::int64_t k) {
    intervals[k] = interval_at(prefix, vertices, first, points[k]);
  });
}

void put(const Cuda& cuda, const Interval* from, const std::int64_t* order, std::int64_t count,
         Interval* to) {
  for_each(cuda, "put", count, [=] __device__(std::int64_t k) { to[order[k]] = from[k]; });
}

namespace {

// The lists of a call, layer by layer.
struct DrawLists {
  const std::int64_t* begin;   // [count + 1] slots
  const KeyedStream* streams;  // [count]
  std::int64_t count;
  const AxisPart* parts;  // [part_count] that the lists draw from, one after another
  std::int64_t part_count;

  __device__ std::int64_t of(std::int64_t slot) const { return segment_of(begin, count, slot); }
  __device__ const AxisPart& part(std::int64_t list) const { return parts[list % part_count]; }
};

// What is cut out of each list's axis: [slots], from where the list begins, ascending (as CutAxis).
struct CutIntervals {
  const std::uint64_t* shortened_start;  // where each was, on the axis without those before it
  const std::uint64_t* width_to;         // of it and all before it
};

// The point number `point` of those that are left, where `taken` intervals were cut out.
__device__ std::uint64_t on_whole_axis(const CutIntervals& cut, std::int64_t begin, std::int64_t taken,
                                       std::uint64_t point) {
  const auto* const starts = cut.shortened_start + begin;
  const auto passed = count_below(starts, taken, point + 1);  // that begin at it or before
  return passed == 0 ? point : point + cut.width_to[begin + passed - 1];
}

// open[k] = the open slots of list k.
void count_open(const Cuda& cuda, DrawLists lists, const std::int64_t* taken, std::int64_t* open) {
  for_each(cuda, "fastgcn_open", lists.count, [=] __device__(std::int64_t list) {
    open[list] = lists.begin[list + 1] - lists.begin[list] - taken[list];
  });
}

// A point for every open slot, list after list: those of list k from open_begin[k] on.
void draw_points(const Cuda& cuda, DrawLists lists, CutIntervals cut, const std::int64_t* taken,
                 const std::uint64_t* words_used, const std::int64_t* open_begin, std::int64_t points,
                 std::uint64_t* to) {
  for_each(cuda, "fastgcn_points", points, [=] __device__(std::int64_t k) {
    const auto list = segment_of(open_begin, lists.count, k), begin = lists.begin[list],
               open = k - open_begin[list];
    const auto removed = taken[list] == 0 ? 0 : cut.width_to[begin + taken[list] - 1];
    const auto& part = lists.part(list);
    const auto point = random_below(lists.streams[list], words_used[list] + static_cast<std::uint64_t>(open),
                                    part.total - removed);
    to[k] = part.begin + on_whole_axis(cut, begin, taken[list], point);
  });
}

// The hits of a round into the open slots.
void put_hits(const Cuda& cuda, DrawLists lists, const std::int64_t* taken, const std::int64_t* open_begin,
              const Interval* hits, std::int64_t points, Interval* drawn) {
  for_each(cuda, "fastgcn_hits", points, [=] __device__(std::int64_t k) {
    const auto list = segment_of(open_begin, lists.count, k);
    drawn[lists.begin[list] + taken[list] + k - open_begin[list]] = hits[k];
  });
}

// The sort's keys: a slot's list in the upper bits, its vertex in the lower `bits`.
void make_keys(const Cuda& cuda, DrawLists lists, int bits, const Interval* drawn, std::int64_t slots,
               std::uint64_t* keys, std::int64_t* numbers) {
  for_each(cuda, "fastgcn_keys", slots, [=] __device__(std::int64_t slot) {
    keys[slot] =
        static_cast<std::uint64_t>(lists.of(slot)) << bits | static_cast<std::uint64_t>(drawn[slot].vertex);
    numbers[slot] = slot;
  });
}

// For sorted slot p: is it the first of its vertex, and then its weight. first_of_slot: by slots.
void flag_firsts(const Cuda& cuda, const std::uint64_t* sorted, const std::int64_t* numbers,
                 const Interval* drawn, std::int64_t slots, std::int64_t* first, std::uint64_t* width,
                 std::int64_t* first_of_slot) {
  for_each(cuda, "fastgcn_firsts", slots, [=] __device__(std::int64_t p) {
    const bool is_first = p == 0 || sorted[p - 1] != sorted[p];
    first[p] = is_first;
    width[p] = is_first ? drawn[numbers[p]].weight : 0;
    first_of_slot[numbers[p]] = is_first;
  });
}

// The firsts of each list: in the order of slots to `kept`, in the order of the sort to the
// intervals. before, before_slot, width: exclusive sums of what flag_firsts wrote.
void compact(const Cuda& cuda, DrawLists lists, const std::int64_t* numbers, const std::int64_t* before,
             const std::uint64_t* width, const std::int64_t* before_slot, std::int64_t slots,
             const Interval* drawn, Interval* kept, std::uint64_t* shortened_start, std::uint64_t* width_to) {
  for_each(cuda, "fastgcn_compact", slots, [=] __device__(std::int64_t p) {
    const auto list = lists.of(p), begin = lists.begin[list];
    if (before_slot[p + 1] > before_slot[p]) kept[begin + before_slot[p] - before_slot[begin]] = drawn[p];
    if (before[p + 1] == before[p]) return;
    const auto place = begin + before[p] - before[begin];
    shortened_start[place] = drawn[numbers[p]].start - lists.part(list).begin - (width[p] - width[begin]);
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

void weights_in_order(const Cuda& cuda, const Interval* drawn, std::int64_t slots, std::uint64_t* weights) {
  for_each(cuda, "fastgcn_weights", slots,
           [=] __device__(std::int64_t slot) { weights[slot] = drawn[slot].weight; });
}

// before: exclusive sums of the weights in order.
template <class Index>
void value_picks(const Cuda& cuda, SamplerMode mode, DrawLists lists, const std::int64_t* numbers,
                 const Interval* drawn, const std::uint64_t* before, std::int64_t slots, Index* columns,
                 double* factors) {
  for_each(cuda, "fastgcn_values", slots, [=] __device__(std::int64_t p) {
    const auto list = lists.of(p), begin = lists.begin[list], picks = lists.begin[list + 1] - begin,
               slot = numbers[p];
    const auto total = lists.part(list).total, left = total - (before[slot] - before[begin]);
    columns[p] = static_cast<Index>(drawn[slot].vertex);
    factors[p] = pick_factor(mode, total, left, drawn[slot].weight, slot - begin + 1, picks,
                             static_cast<double>(picks));
  });
}

}  // namespace

struct DrawRoundsOn<Cuda>::State {
  SharedList<std::int64_t, Cuda> offsets;
  DeviceArray<AxisPart> parts;
  std::int64_t missing;
  int vertex_bits, key_bits;  // of the sort's keys
  DeviceArray<KeyedStream> streams;
  DeviceArray<Interval> drawn, kept;  // [slots]
  DeviceArray<std::int64_t> taken, open, open_begin, numbers, sorted_numbers, first, before, first_of_slot,
      before_slot;
  DeviceArray<std::uint64_t> words_used, shortened_start, width_to, keys, sorted, widths, width_before;

  DrawLists lists() const {
    return {offsets.data(), streams.data(), std::ssize(taken), parts.data(), std::ssize(parts)};
  }
  std::int64_t slots() const { return offsets.back(); }
};

DrawRoundsOn<Cuda>::DrawRoundsOn(const Cuda& cuda, std::span<const KeyedStream> streams,
                                 const SharedList<std::int64_t, Cuda>& offsets,
                                 const std::vector<AxisPart>& parts, std::int64_t vertices)
    : state_(std::make_unique<State>()) {
  auto& s = *state_;
  const auto slots = offsets.back(), lists = std::ssize(streams);
  s.vertex_bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(vertices)));
  s.key_bits = s.vertex_bits + static_cast<int>(std::bit_width(static_cast<std::uint64_t>(lists)));
  ESPALIER_CHECK(s.key_bits <= 64, "{} batches and layers of {} vertices in a call; take fewer", lists,
                 vertices);
  s.offsets = offsets;
  s.parts = copy_to(cuda, std::span<const AxisPart>(parts));
  s.missing = slots;
  s.streams = copy_to(cuda, streams);
  for (auto* array : {&s.taken, &s.open}) array->resize(lists);
  s.open_begin.resize(lists + 1);
  s.words_used.resize(lists);
  fill_zero(cuda, s.taken);
  fill_zero(cuda, s.words_used);
  for (auto* array : {&s.drawn, &s.kept}) array->resize(slots);
  for (auto* array : {&s.numbers, &s.sorted_numbers, &s.first, &s.first_of_slot}) array->resize(slots);
  for (auto* array : {&s.shortened_start, &s.width_to, &s.keys, &s.sorted, &s.widths}) array->resize(slots);
  for (auto* array : {&s.before, &s.before_slot}) array->resize(slots + 1);
  s.width_before.resize(slots + 1);
}
DrawRoundsOn<Cuda>::~DrawRoundsOn() = default;

std::int64_t DrawRoundsOn<Cuda>::missing() const {
  return state_->missing;
}

DeviceArray<std::uint64_t> DrawRoundsOn<Cuda>::next_points(const Cuda& cuda) {
  auto& s = *state_;
  count_open(cuda, s.lists(), s.taken.data(), s.open.data());
  exclusive_sum(cuda, s.open.data(), s.open_begin.data(), std::ssize(s.open));
  DeviceArray<std::uint64_t> points(s.missing);
  draw_points(cuda, s.lists(), {s.shortened_start.data(), s.width_to.data()}, s.taken.data(),
              s.words_used.data(), s.open_begin.data(), s.missing, points.data());
  return points;
}

void DrawRoundsOn<Cuda>::take(const Cuda& cuda, const DeviceArray<Interval>& hits) {
  auto& s = *state_;
  if (s.missing == 0) return;  // others miss some
  const auto lists = s.lists();
  const auto slots = s.slots();
  put_hits(cuda, lists, s.taken.data(), s.open_begin.data(), hits.data(), s.missing, s.drawn.data());
  make_keys(cuda, lists, s.vertex_bits, s.drawn.data(), slots, s.keys.data(), s.numbers.data());
  sort_pairs(cuda, s.keys.data(), s.sorted.data(), s.numbers.data(), s.sorted_numbers.data(), slots,
             s.key_bits);
  flag_firsts(cuda, s.sorted.data(), s.sorted_numbers.data(), s.drawn.data(), slots, s.first.data(),
              s.widths.data(), s.first_of_slot.data());
  exclusive_sum(cuda, s.first.data(), s.before.data(), slots);
  exclusive_sum(cuda, s.first_of_slot.data(), s.before_slot.data(), slots);
  exclusive_sum(cuda, s.widths.data(), s.width_before.data(), slots);
  compact(cuda, lists, s.sorted_numbers.data(), s.before.data(), s.width_before.data(), s.before_slot.data(),
          slots, s.drawn.data(), s.kept.data(), s.shortened_start.data(), s.width_to.data());
  end_round(cuda, lists, s.before.data(), s.taken.data(), s.words_used.data());
  s.drawn.swap(s.kept);
  s.missing = slots - download(cuda, s.before.data() + slots, 1)[0];
}

template <class Index>
LayerPicks<Index, Cuda> DrawRoundsOn<Cuda>::picks(const Cuda& cuda, SamplerMode mode) const {
  auto& s = *state_;
  const auto slots = s.slots();
  LayerPicks<Index, Cuda> picks = {s.offsets, DeviceArray<Index>(slots), DeviceArray<double>(slots)};
  if (slots == 0) return picks;
  weights_in_order(cuda, s.drawn.data(), slots, s.widths.data());
  exclusive_sum(cuda, s.widths.data(), s.width_before.data(), slots);
  value_picks(cuda, mode, s.lists(), s.sorted_numbers.data(), s.drawn.data(), s.width_before.data(), slots,
              picks.columns.data(), picks.factors.data());
  return picks;
}

template <class T>
void copy_lists(const Cuda& cuda, const DeviceArray<T>& from, const SharedList<std::int64_t, Cuda>& sources,
                const SharedList<std::int64_t, Cuda>& offsets, DeviceArray<T>& to) {
  to.resize(offsets.back());
  auto* const copies = to.data();
  const auto* const numbers = from.data();
  const auto *const first = sources.data(), *const begins = offsets.data();
  for_each_in_batches(cuda, "fastgcn_copy", {0, sources.size()}, offsets,
                      [=] __device__(std::int64_t list, std::int64_t k) {
                        copies[k] = numbers[first[list] + k - begins[list]];
                      });
}

template <class Index>
std::unique_ptr<SamplerOn<Cuda>> make_fastgcn(const Cuda& cuda, const DistCsr<Index, Cuda>& m,
                                              const SamplerShape& shape) {
  return make_layer_wise<Index, Cuda>("fastgcn", m, shape,
                                      std::make_unique<FastGcnDistribution<Index, Cuda>>(cuda, m, shape));
}

ESPALIER_INSTANTIATE_SAMPLER(fastgcn, Cuda)

}  // namespace espalier
