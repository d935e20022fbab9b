// The types of the vertices of minibatches, as runs of their lists.
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "espalier/base/shared_list.hpp"
#include "espalier/sample/minibatch.hpp"
#include "espalier/sample/sampler.hpp"

namespace espalier {

/// [lists][ends] how many ids of each ascending list lie below each end. On a GPU the host waits.
inline std::vector<std::int64_t> count_below(const Cpu&, std::span<const std::span<const std::int64_t>> lists,
                                             const SharedList<std::int64_t>& ends) {
  std::vector<std::int64_t> counts;
  for (const auto& list : lists)
    for (const auto end : ends.host()) counts.push_back(std::ranges::lower_bound(list, end) - list.begin());
  return counts;
}
std::vector<std::int64_t> count_below(const Cuda& cuda, std::span<const std::span<const std::int64_t>> lists,
                                      const SharedList<std::int64_t, Cuda>& ends);

/// The runs of minibatches, kept beside what they keep, and shown to each block, whose columns they
/// are of. type_ends: where the vertices of each type end; empty: one type, nothing to say.
template <class Space>
void add_type_runs(const Space& space, const SharedList<std::int64_t, Space>& type_ends,
                   std::span<const SeedBatch> batches, std::vector<MinibatchOn<Space>>& minibatches) {
  if (type_ends.size() == 0) return;
  // Seeds stand in any order; the new vertices of a layer ascend, and begin runs of their own.
  std::vector<std::span<const std::int64_t>> lists;
  for (const auto& minibatch : minibatches)
    for (const auto& block : minibatch.blocks)
      lists.push_back(minibatch.vertices.subspan(block.rows, block.columns - block.rows));
  const auto below = count_below(space, lists, type_ends);

  struct Kept {
    std::vector<TypeRun> runs;
    std::shared_ptr<const void> before;
  };
  const auto types = static_cast<int>(type_ends.size());
  std::size_t list = 0;
  for (std::size_t b = 0; b < minibatches.size(); ++b) {
    auto& minibatch = minibatches[b];
    auto kept = std::make_shared<Kept>();
    auto& runs = kept->runs;
    // Ends the vertices of a type at `end`; of a list that begins at `least` or behind it.
    const auto extend = [&](std::int64_t least, std::int64_t end, int type) {
      const auto begin = runs.empty() ? 0 : runs.back().end;
      if (end == begin) return;
      if (begin > least && runs.back().type == type)
        runs.back().end = end;
      else
        runs.push_back({begin, end, type});
    };
    const auto type_of = [&](std::int64_t v) {
      return static_cast<int>(std::ranges::upper_bound(type_ends.host(), v) - type_ends.host().begin());
    };
    for (std::size_t k = 0; k < batches[b].seeds().size(); ++k)
      extend(0, static_cast<std::int64_t>(k) + 1, type_of(batches[b].seeds()[k]));
    const auto layers = minibatch.blocks.size();
    std::vector<std::size_t> counts(layers);
    for (auto l = layers; l-- > 0;) {  // from the seeds on
      for (int type = 0; type < types; ++type)
        extend(minibatch.blocks[l].rows,
               minibatch.blocks[l].rows + below[(list + l) * static_cast<std::size_t>(types) + type], type);
      counts[l] = runs.size();
    }
    for (std::size_t l = 0; l < layers; ++l) minibatch.blocks[l].runs = std::span(runs).first(counts[l]);
    list += layers;
    kept->before = std::exchange(minibatch.memory, nullptr);
    minibatch.memory = std::move(kept);
    minibatch.type_ends = type_ends;
  }
}

}  // namespace espalier
