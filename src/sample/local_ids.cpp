#include "espalier/sample/local_ids.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <numeric>

#include "espalier/base/arrays.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/id_map.hpp"

namespace espalier {

namespace {

constexpr std::int64_t kChunkWords = 1024;  // of marks, counted by one thread

void check_places(std::int64_t places) {
  ESPALIER_CHECK(places < (std::int64_t{1} << 31), "a block of {} columns; use smaller batches", places);
}

void check_distinct(std::int64_t listed, std::int64_t distinct) {
  ESPALIER_CHECK(listed == distinct, "a frontier of {} rows holds {} distinct vertices", listed, distinct);
}

std::uint64_t bit_of(std::int64_t id) {
  return std::uint64_t{1} << (id % 64);
}

// Sets the bits of a list. Threads that meet in a word agree on it.
template <class Id>
void mark(const Cpu& cpu, std::span<const Id> ids, Buffer<std::uint64_t>& marks) {
  const auto count = std::ssize(ids);
  if (cpu.threads == 1) {
    for (const auto id : ids) marks[id / 64] |= bit_of(id);
    return;
  }
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t id = ids[k];
    std::atomic_ref(marks[id / 64]).fetch_or(bit_of(id), std::memory_order_relaxed);
  }
}

template <class Index>
void extend_by_hash(std::span<const Index> picks, Buffer<std::int64_t>& vertices, std::int32_t* local) {
  const auto known = std::ssize(vertices);
  IdMap place_of(known + std::ssize(picks));
  for (const auto vertex : vertices) place_of.insert(vertex);
  check_distinct(known, place_of.size());
  // A provisional place for each new id as it appears; final ones follow when they are sorted.
  for (std::size_t k = 0; k < picks.size(); ++k) {
    const auto place = place_of.insert(picks[k]);
    local[k] = static_cast<std::int32_t>(place);
    if (place == std::ssize(vertices)) vertices.push_back(picks[k]);
  }
  check_places(std::ssize(vertices));
  const Buffer<std::int64_t> provisional(vertices.begin() + known, vertices.end());
  std::sort(vertices.begin() + known, vertices.end());
  for (auto at = known; at < std::ssize(vertices); ++at) place_of.assign(vertices[at], at);
  Buffer<std::int32_t> final_place(provisional.size());
  for (std::size_t k = 0; k < provisional.size(); ++k)
    final_place[k] = static_cast<std::int32_t>(place_of.find(provisional[k]));
  for (std::size_t k = 0; k < picks.size(); ++k)
    if (local[k] >= known) local[k] = final_place[local[k] - known];
}

}  // namespace

inline std::int64_t LocalIds::rank_of(std::int64_t id) const {
  const auto word = static_cast<std::size_t>(id / 64);
  return rank_[word] + std::popcount(marked_[word] & (bit_of(id) - 1));
}

template <class Index>
void LocalIds::extend_by_marks(const Cpu& cpu, std::span<const Index> picks, Buffer<std::int64_t>& vertices,
                               std::int32_t* local) {
  const auto words = ids_ / 64 + 1;
  if (marked_.empty()) {
    known_.assign(words, 0);
    marked_.assign(words, 0);
    rank_.resize(words);
  }
  const auto known = std::ssize(vertices);
  mark(cpu, std::span<const std::int64_t>(vertices), known_);
  mark(cpu, picks, marked_);

  // Ranks, chunk by chunk: counted, summed up, written.
  const auto chunks = (words + kChunkWords - 1) / kChunkWords;
  Buffer<std::int64_t> marked_before(chunks + 1, 0), known_before(marked_before);
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    std::int64_t marked = 0, of_known = 0;
    for (auto w = chunk * kChunkWords; w < std::min(words, (chunk + 1) * kChunkWords); ++w) {
      const auto i = static_cast<std::size_t>(w);
      marked_[i] |= known_[i];
      marked += std::popcount(marked_[i]);
      of_known += std::popcount(known_[i]);
    }
    marked_before[chunk + 1] = marked;
    known_before[chunk + 1] = of_known;
  }
  std::inclusive_scan(marked_before.begin(), marked_before.end(), marked_before.begin());
  std::inclusive_scan(known_before.begin(), known_before.end(), known_before.begin());
  check_distinct(known, known_before.back());
  check_places(marked_before.back());
  vertices.resize(marked_before.back());
  place_.resize(vertices.size());
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const auto c = static_cast<std::size_t>(chunk);
    auto rank = marked_before[c];
    auto next = known + rank - known_before[c];  // the place of the next new id
    for (auto w = chunk * kChunkWords; w < std::min(words, (chunk + 1) * kChunkWords); ++w) {
      const auto i = static_cast<std::size_t>(w);
      const auto marks = marked_[i];
      rank_[i] = static_cast<std::int32_t>(rank);
      for (auto fresh = marks & ~known_[i]; fresh != 0; fresh &= fresh - 1) {
        const auto bit = std::countr_zero(fresh);
        place_[rank + std::popcount(marks & ((std::uint64_t{1} << bit) - 1))] =
            static_cast<std::int32_t>(next);
        vertices[next++] = w * 64 + bit;
      }
      rank += std::popcount(marks);
    }
  }
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t k = 0; k < known; ++k) place_[rank_of(vertices[k])] = static_cast<std::int32_t>(k);

#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t k = 0; k < std::ssize(picks); ++k) local[k] = place_[rank_of(picks[k])];
  std::ranges::fill(known_, 0);
  std::ranges::fill(marked_, 0);
}

template <class Index>
void LocalIds::extend(const Cpu& cpu, std::span<const Index> picks, Buffer<std::int64_t>& vertices,
                      std::int32_t* local) {
  if (prefers_marks(ids_, std::ssize(vertices) + std::ssize(picks)))
    extend_by_marks(cpu, picks, vertices, local);
  else
    extend_by_hash(picks, vertices, local);
}

LocalIds& kept_local_ids(std::int64_t ids) {
  thread_local LocalIds kept(0);
  if (kept.ids() != ids) kept = LocalIds(ids);
  return kept;
}

// A batch for each thread while there are enough of them, else all threads inside of each.
template <class Index>
Frontier extend(const Cpu& cpu, std::int64_t ids, const Frontier& frontier, const Index* picks,
                const SharedList<std::int64_t>& offsets, std::int32_t* local) {
  const auto batches = frontier.batches();
  std::vector<Buffer<std::int64_t>> lists(batches);
  const bool share = batches < cpu.threads;
#pragma omp parallel for num_threads(share ? 1 : cpu.threads) schedule(dynamic, 1)
  for (std::int64_t b = 0; b < batches; ++b) {
    const auto* const known = frontier.vertices.data() + frontier.begin(b);
    const std::span<const Index> of_batch(picks + offsets[b], picks + offsets[b + 1]);
    lists[b].reserve(frontier.size(b) + of_batch.size());
    lists[b].assign(known, known + frontier.size(b));
    kept_local_ids(ids).extend(threads_for(share ? cpu : Cpu{1}, std::ssize(of_batch)), of_batch, lists[b],
                               local + offsets[b]);
  }
  std::vector<std::int64_t> begins = {0};
  for (const auto& list : lists) begins.push_back(begins.back() + std::ssize(list));
  return {join(cpu, std::move(lists)), {cpu, std::move(begins)}, frontier.numbers};
}

#define ESPALIER_INSTANTIATE(Index)                                                                         \
  template void LocalIds::extend(const Cpu&, std::span<const Index>, Buffer<std::int64_t>&, std::int32_t*); \
  template Frontier extend(const Cpu&, std::int64_t, const Frontier&, const Index*,                         \
                           const SharedList<std::int64_t>&, std::int32_t*);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
