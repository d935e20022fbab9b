#include <cuda/atomic>

#include "each_entry.hpp"
#include "espalier/base/arrays.hpp"
#include "espalier/base/device_algorithms.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/sample/local_ids.hpp"

namespace espalier {

namespace {

using Word = unsigned long long;

constexpr std::int64_t kWordsOfCounter = 4;  // one sector of memory
constexpr std::int64_t kIdsOfCounter = 64 * kWordsOfCounter;
// Bits of both kinds, the counts, and their sums.
constexpr std::int64_t kBytesOfCounter = 2 * 8 * kWordsOfCounter + 2 * 8;
constexpr std::int64_t kBudget = std::int64_t{512} << 20, kSmallBudget = std::int64_t{64} << 20;

// The bits of a group of batches. Those of its batch b are at counters b * counters ... A count has
// two halves: known ids in the upper 32 bits, new ones in the lower.
struct IdMarks {
  std::int64_t counters;        // of a batch
  Word* known;                  // [batches * counters * kWordsOfCounter] ids in F[l]
  Word* fresh;                  // beside known: first all picks, then those that are not known
  const std::uint64_t* before;  // [batches * counters + 1] counts of earlier counters
};

// Where the bit of an id is.
struct Bit {
  std::int64_t counter;
  int within;  // its counter's 256
};

__device__ inline Bit bit_of(const IdMarks& marks, std::int64_t batch, std::int64_t id) {
  return {batch * marks.counters + id / kIdsOfCounter, static_cast<int>(id % kIdsOfCounter)};
}

__device__ inline std::int64_t known_in(std::uint64_t count) {
  return static_cast<std::int64_t>(count >> 32);
}
__device__ inline std::int64_t fresh_in(std::uint64_t count) {
  return static_cast<std::int64_t>(count & 0xffffffffu);
}

__device__ inline void set(Word* words, Bit bit) {
  Word* word = words + bit.counter * kWordsOfCounter + bit.within / 64;
  const Word mask = Word{1} << (bit.within % 64);
  // A bit that seems unset may be set again: no harm.
  const ::cuda::atomic_ref<Word, ::cuda::thread_scope_device> shared(*word);
  if ((shared.load(::cuda::memory_order_relaxed) & mask) == 0) atomicOr(word, mask);
}

// The four words of a counter.
struct CounterWords {
  Word word[kWordsOfCounter];
};

__device__ inline CounterWords load(const Word* words, std::int64_t counter) {
  const auto* pair = reinterpret_cast<const ulonglong2*>(words + counter * kWordsOfCounter);
  const auto low = pair[0], high = pair[1];
  return {{low.x, low.y, high.x, high.y}};
}

struct Rank {
  bool is_set;
  int below;  // set bits of the counter before this one
};

__device__ inline Rank rank_of(const Word* words, Bit bit) {
  const auto four = load(words, bit.counter);
  Rank rank = {false, 0};
#pragma unroll
  for (int w = 0; w < kWordsOfCounter; ++w) {
    const int here = bit.within - 64 * w;  // < 0: the word comes after the bit
    const Word below = here >= 64 ? ~Word{0} : here >= 0 ? (Word{1} << here) - 1 : 0;
    rank.below += __popcll(four.word[w] & below);
    if (here >= 0 && here < 64) rank.is_set = (four.word[w] >> here & 1) != 0;
  }
  return rank;
}

// ---- Steps of a group, in order -----------------------------------------------------------------

// From "all picks" to "those that are not known", and the counts.
void count_marks(const Cuda& cuda, const IdMarks& marks, std::int64_t batches, std::uint64_t* counts) {
  for_each(cuda, "count_marks", batches * marks.counters, [=] __device__(std::int64_t counter) {
    const auto known = load(marks.known, counter), picked = load(marks.fresh, counter);
    int known_count = 0, fresh_count = 0;
    bool both = false;
#pragma unroll
    for (int w = 0; w < kWordsOfCounter; ++w) {
      known_count += __popcll(known.word[w]);
      fresh_count += __popcll(picked.word[w] & ~known.word[w]);
      both = both || (picked.word[w] & known.word[w]) != 0;
    }
    counts[counter] = static_cast<std::uint64_t>(known_count) << 32 | static_cast<std::uint64_t>(fresh_count);
    if (!both) return;
    for (int w = 0; w < kWordsOfCounter; ++w)
      marks.fresh[counter * kWordsOfCounter + w] = picked.word[w] & ~known.word[w];
  });
}

// The sums where batches begin, and at the end.
Buffer<std::uint64_t> sums_at_batches(const Cuda& cuda, const IdMarks& marks, std::int64_t batches) {
  DeviceArray<std::uint64_t> sums(batches + 1);
  auto* to = sums.data();
  for_each(cuda, "sums_at_batches", batches + 1,
           [=] __device__(std::int64_t batch) { to[batch] = marks.before[batch * marks.counters]; });
  return download(cuda, sums);
}

// Known vertices keep their places; place[rank among the known of the group] is where.
void keep_known(const Cuda& cuda, BatchRange group, const IdMarks& marks, const FrontierOn<Cuda>& frontier,
                const std::int64_t* new_offsets, std::int64_t* vertices, std::int32_t* place) {
  const auto* from = frontier.vertices.data();
  const auto* offsets = frontier.offsets.data();
  for_each_in_batches(cuda, "keep_known", group, frontier.offsets,
                      [=] __device__(std::int64_t batch, std::int64_t k) {
                        const auto vertex = from[k], at = k - offsets[batch];
                        const auto bit = bit_of(marks, batch - group.first, vertex);
                        place[known_in(marks.before[bit.counter]) + rank_of(marks.known, bit).below] =
                            static_cast<std::int32_t>(at);
                        vertices[new_offsets[batch - group.first] + at] = vertex;
                      });
}

// A thread per word of bits writes its new vertices behind the known ones.
void add_fresh(const Cuda& cuda, BatchRange group, const IdMarks& marks, const FrontierOn<Cuda>& frontier,
               const std::int64_t* new_offsets, std::int64_t* vertices) {
  const auto* offsets = frontier.offsets.data();
  for_each(
      cuda, "add_fresh", group.count() * marks.counters * kWordsOfCounter, [=] __device__(std::int64_t w) {
        auto left = marks.fresh[w];
        if (left == 0) return;
        const auto counter = w / kWordsOfCounter, batch = counter / marks.counters;
        const int within = static_cast<int>(w % kWordsOfCounter) * 64;
        const auto rank = fresh_in(marks.before[counter]) - fresh_in(marks.before[batch * marks.counters]) +
                          rank_of(marks.fresh, {counter, within}).below;
        const auto known = offsets[group.first + batch + 1] - offsets[group.first + batch];
        auto* to = vertices + new_offsets[batch] + known + rank;
        const auto first_id = (counter % marks.counters) * kIdsOfCounter + within;
        for (; left != 0; left &= left - 1) *to++ = first_id + __ffsll(static_cast<long long>(left)) - 1;
      });
}

template <class Index>
void write_places(const Cuda& cuda, BatchRange group, const IdMarks& marks, const FrontierOn<Cuda>& frontier,
                  const Index* ids, const SharedList<std::int64_t, Cuda>& pick_offsets,
                  const std::int32_t* place, std::int32_t* local) {
  const auto* offsets = frontier.offsets.data();
  for_each_in_batches(
      cuda, "write_places", group, pick_offsets, [=] __device__(std::int64_t batch, std::int64_t k) {
        const auto in_group = batch - group.first;
        const auto bit = bit_of(marks, in_group, ids[k]);
        const auto before = marks.before[bit.counter];
        const auto fresh = rank_of(marks.fresh, bit);
        if (fresh.is_set)
          local[k] =
              static_cast<std::int32_t>(offsets[batch + 1] - offsets[batch] + fresh_in(before) -
                                        fresh_in(marks.before[in_group * marks.counters]) + fresh.below);
        else
          local[k] = place[known_in(before) + rank_of(marks.known, bit).below];
      });
}

template <class Index>
void mark_all(const Cuda& cuda, BatchRange group, const IdMarks& marks, const FrontierOn<Cuda>& frontier,
              const Index* ids, const SharedList<std::int64_t, Cuda>& pick_offsets) {
  const auto* vertices = frontier.vertices.data();
  for_each_in_batches(cuda, "mark_known", group, frontier.offsets,
                      [=] __device__(std::int64_t batch, std::int64_t k) {
                        set(marks.known, bit_of(marks, batch - group.first, vertices[k]));
                      });
  for_each_in_batches(cuda, "mark_picks", group, pick_offsets,
                      [=] __device__(std::int64_t batch, std::int64_t k) {
                        set(marks.fresh, bit_of(marks, batch - group.first, ids[k]));
                      });
}

// [batches + 1] where the lists of a group begin once new vertices are there, from the first on.
std::vector<std::int64_t> new_offsets_of(BatchRange group, const FrontierOn<Cuda>& frontier,
                                         std::span<const std::uint64_t> sums) {
  std::vector<std::int64_t> offsets = {0};
  for (auto batch = group.first; batch < group.last; ++batch) {
    const auto b = static_cast<std::size_t>(batch - group.first);
    const auto listed = frontier.size(batch);
    const auto distinct = static_cast<std::int64_t>((sums[b + 1] >> 32) - (sums[b] >> 32));
    ESPALIER_CHECK(listed == distinct, "a frontier of {} rows holds {} distinct vertices", listed, distinct);
    const auto places =
        listed + static_cast<std::int64_t>((sums[b + 1] & 0xffffffffu) - (sums[b] & 0xffffffffu));
    ESPALIER_CHECK(places < (std::int64_t{1} << 31), "a block of {} columns; use smaller batches", places);
    offsets.push_back(offsets.back() + places);
  }
  return offsets;
}

// The new lists of a group; their offsets are added to `all_offsets`.
template <class Index>
DeviceArray<std::int64_t> extend_group(const Cuda& cuda, BatchRange group, std::int64_t counters,
                                       const FrontierOn<Cuda>& frontier, const Index* picks,
                                       const SharedList<std::int64_t, Cuda>& pick_offsets,
                                       std::int32_t* local, std::vector<std::int64_t>& all_offsets) {
  const auto all = static_cast<std::size_t>(group.count() * counters);
  DeviceArray<Word> known(all * kWordsOfCounter), fresh(all * kWordsOfCounter);
  DeviceArray<std::uint64_t> counts(all), before(all + 1);
  fill_zero(cuda, known);
  fill_zero(cuda, fresh);
  const IdMarks marks = {counters, known.data(), fresh.data(), before.data()};
  mark_all(cuda, group, marks, frontier, picks, pick_offsets);
  count_marks(cuda, marks, group.count(), counts.data());
  exclusive_sum(cuda, counts.data(), before.data(), static_cast<std::int64_t>(all));

  const auto offsets = new_offsets_of(group, frontier, sums_at_batches(cuda, marks, group.count()));
  DeviceArray<std::int64_t> new_offsets;
  upload(cuda, std::span<const std::int64_t>(offsets), new_offsets);
  DeviceArray<std::int64_t> vertices(offsets.back());
  DeviceArray<std::int32_t> place(
      static_cast<std::size_t>(frontier.begin(group.last) - frontier.begin(group.first)));
  keep_known(cuda, group, marks, frontier, new_offsets.data(), vertices.data(), place.data());
  add_fresh(cuda, group, marks, frontier, new_offsets.data(), vertices.data());
  write_places(cuda, group, marks, frontier, picks, pick_offsets, place.data(), local);
  const auto base = all_offsets.back();
  for (std::size_t b = 1; b < offsets.size(); ++b) all_offsets.push_back(base + offsets[b]);
  return vertices;
}

// How many batches go together. A half of a count holds the ids of all of them.
std::int64_t batches_at_once(const Cuda& cuda, std::int64_t counters, std::int64_t batches,
                             std::int64_t budget) {
  const auto wanted = batches * counters * kBytesOfCounter;
  if (budget == 0) budget = wanted <= kSmallBudget ? kSmallBudget : std::min(kBudget, cuda.free_memory() / 4);
  const auto by_memory = budget / (counters * kBytesOfCounter),
             by_count = (std::int64_t{1} << 31) / (counters * kIdsOfCounter);
  return std::max<std::int64_t>(1, std::min(by_memory, by_count));
}

}  // namespace

template <class Index>
FrontierOn<Cuda> extend(const Cuda& cuda, std::int64_t ids, const FrontierOn<Cuda>& frontier,
                        const Index* picks, const SharedList<std::int64_t, Cuda>& offsets,
                        std::int32_t* local, std::int64_t budget) {
  const DevicePurpose purpose("local ids of sampled vertices");
  const auto counters = ids / kIdsOfCounter + 1, batches = frontier.batches();
  const auto at_once = batches_at_once(cuda, counters, batches, budget);
  std::vector<std::int64_t> begins = {0};
  std::vector<DeviceArray<std::int64_t>> pieces;
  for (std::int64_t first = 0; first < batches; first += at_once)
    pieces.push_back(extend_group(cuda, BatchRange{first, std::min(batches, first + at_once)}, counters,
                                  frontier, picks, offsets, local, begins));
  return {join(cuda, std::move(pieces)), {cuda, std::move(begins)}, frontier.numbers};
}

#define ESPALIER_INSTANTIATE(Index)                                                                  \
  template FrontierOn<Cuda> extend(const Cuda&, std::int64_t, const FrontierOn<Cuda>&, const Index*, \
                                   const SharedList<std::int64_t, Cuda>&, std::int32_t*, std::int64_t);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
