// Sampling what is needed, for every space: prune.cpp and prune.cu instantiate it.
#pragma once

#include "espalier/history/needed_sample.hpp"
#include "prune.inl.hpp"

namespace espalier {

/// The runs of types of vertices in any order.
inline std::vector<TypeRun> runs_of(std::span<const std::int64_t> vertices,
                                    std::span<const std::int64_t> type_ends) {
  std::vector<TypeRun> runs;
  if (type_ends.empty()) return runs;
  for (const auto v : vertices) {
    const auto type = static_cast<int>(std::ranges::upper_bound(type_ends, v) - type_ends.begin());
    const auto at = runs.empty() ? 0 : runs.back().end;
    if (runs.empty() || runs.back().type != type) runs.push_back({at, at, type});
    ++runs.back().end;
  }
  return runs;
}

template <class Space>
NeededSampleOn<Space> sample_needed(const Space& space, SamplerOn<Space>& sampler, std::size_t layers,
                                    std::span<const SeedBatch> batches, std::uint64_t seed,
                                    std::uint64_t epoch, const FindHits<Space>& find_hits) {
  NeededSampleOn<Space> result;
  std::vector<PrunedMaker<Space>> makers;
  std::vector<SeedBatch> rows(batches.begin(), batches.end());
  std::vector<Buffer<std::int64_t>> on_host(batches.size());
  for (std::size_t k = 0; k < layers; ++k) {
    const auto l = layers - 1 - k;
    auto drawn = sampler.sample_layer(space, rows, seed, epoch, k);
    result.digest += sample_digests(space, drawn, static_cast<std::int64_t>(l) + 1);
    if (k == 0)
      for (std::size_t m = 0; m < batches.size(); ++m)
        makers.emplace_back(batches[m].number, layers, drawn[m].type_ends,
                            runs_of(batches[m].seeds(), drawn[m].type_ends.host()));
    std::vector<std::span<const std::int64_t>> lists;
    for (const auto& minibatch : drawn) lists.push_back(minibatch.vertices);
    const auto hits = l == 0 ? std::vector<std::span<const std::uint8_t>>(lists.size())
                             : find_hits(static_cast<int>(l), lists);
    for (std::size_t m = 0; m < drawn.size(); ++m) {
      makers[m].add(space, l, drawn[m].blocks[0], lists[m].data(), nullptr,
                    hits[m].empty() ? nullptr : hits[m].data(), drawn[m].memory);
      if (l == 0) continue;
      const auto& next = makers[m].computed(l).vertices;
      on_host[m].resize(next.size());
      copy_from(space, next.data(), std::ssize(next), on_host[m].data());
      rows[m] = {batches[m].number, on_host[m]};
    }
  }
  for (auto& maker : makers) result.minibatches.push_back(maker.take());
  return result;
}

}  // namespace espalier
