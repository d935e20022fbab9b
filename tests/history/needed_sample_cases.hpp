// Samples of what is needed beside pruned samples, for the tests of both spaces.
#pragma once

#include "espalier/base/host_device.hpp"
#include "espalier/history/prune.hpp"
#include "history/prune_cases.hpp"
#include "mpi_test.hpp"
#include "partition/owned.hpp"
#include "sample/uneven_batches.hpp"
#include "typed_graph.hpp"

namespace espalier {

struct NeededJob {
  const char* sampler;
  bool weighted;
  SamplerShape shape;
  bool typed = false;
};

inline std::vector<NeededJob> needed_jobs() {
  return {{"graphsage", false, {.fanout = {5, 3, 2}}},
          {"graphsage", true, {.fanout = {4, -1, 3}, .weighted = true, .aggregation = Aggregation::kMatrix}},
          {"labor", false, {.fanout = {4, 3}}},
          {"labor", false, {.fanout = {3, 3, 2}, .share_batches = 4}},
          {"graphsage", false, {.fanout = {5, 3, 2}}, true},
          {"graphsage",
           true,
           {.fanout = {4, 3},
            .relation_fanout = {{4, -1, 0, 2, 9, 3, 2}, {-1, 2, 2, 20, 3, 1, 1}},
            .weighted = true},
           true},
          {"labor",
           false,
           {.fanout = {2, 2}, .relation_fanout = {{4, 1, 0, 2, -1, 3, 2}, {1, 2, 2, 2, 3, 1, 1}}},
           true}};
}

inline constexpr std::int64_t kNeededVertices = 120;

template <class Index>
DistCsr<Index> needed_matrix(const Grid& grid, const NeededJob& job, const Ownership& ownership) {
  const auto schema = typed_schema(kNeededVertices);
  return job.typed ? typed_matrix(grid, schema, typed_graph<Index>(schema, 9, job.weighted, test_seed(9)),
                                  ownership)
                   : distribute(grid, random_graph<Index>(kNeededVertices, 7, job.weighted, test_seed(9)),
                                ownership);
}

/// Hits of a share of all vertices, others in every layer.
inline std::uint8_t hits(int layer, std::int64_t vertex, int percent) {
  return static_cast<std::uint8_t>(mix(static_cast<std::uint64_t>(1000 * vertex + layer)) % 100 <
                                   static_cast<std::uint64_t>(percent));
}

template <class Space>
Array<Space, std::uint8_t> hits_of(const Space& space, int layer, std::span<const std::int64_t> list,
                                   int percent) {
  Buffer<std::uint8_t> flags;
  for (const auto v : read(space, list)) flags.push_back(hits(layer, v, percent));
  return copy_to(space, std::span<const std::uint8_t>(flags));
}

/// What can be compared: blocks that begin at 0, and no positions.
template <class Space>
HostPruned comparable(const Space& space, PrunedMinibatchOn<Space> pruned) {
  std::vector<Buffer<std::int64_t>> indptr;
  for (auto& block : pruned.blocks) {
    const auto first = read(space, block.indptr, 1)[0];
    auto& own = indptr.emplace_back(read(space, block.indptr, block.rows + 1));
    for (auto& offset : own) offset -= first;
    block.indices += first;
    block.values = block.values + first;
    block.relations = block.relations + first;
  }
  auto host = to_host(space, pruned);
  for (std::size_t l = 0; l < host.blocks.size(); ++l) host.blocks[l].indptr = indptr[l];
  for (auto& layer : host.layers)
    for (auto* rows : {&layer.computed, &layer.cached}) rows->positions = rows->columns;
  return host;
}

/// The law, for hits of every share; collective.
template <class Space>
void expect_needed_is_pruned(const Space& space, SamplerOn<Space>& sampler, std::size_t layers) {
  const UnevenBatches mine(kNeededVertices);
  const auto whole = sampler.sample(space, mine.batches, 5, 3);
  for (const int percent : {0, 30, 70, 100}) {
    SCOPED_TRACE(fmt::format("{} % hit", percent));
    std::vector<std::vector<std::int64_t>> lists_asked;
    std::vector<Array<Space, std::uint8_t>> kept;
    const auto find = [&](int layer, std::span<const std::span<const std::int64_t>> lists) {
      kept.clear();
      std::vector<std::span<const std::uint8_t>> flags;
      for (const auto& list : lists) kept.push_back(hits_of(space, layer, list, percent));
      for (std::size_t m = 0; m < lists.size(); ++m)
        flags.push_back(percent == 0 && m % 2 == 0
                            ? std::span<const std::uint8_t>()
                            : std::span<const std::uint8_t>(kept[m].data(), kept[m].size()));
      return flags;
    };
    const auto needed =
        sample_needed<Space>(space, sampler, layers, mine.batches, 5, 3, FindHits<Space>(find));
    ASSERT_EQ(needed.minibatches.size(), whole.size());
    for (std::size_t m = 0; m < whole.size(); ++m) {
      std::vector<Array<Space, std::uint8_t>> arrays;
      std::vector<std::span<const std::uint8_t>> of_lists;
      for (std::size_t l = 1; l < layers; ++l)
        arrays.push_back(
            hits_of(space, static_cast<int>(l),
                    whole[m].vertices.first(static_cast<std::size_t>(whole[m].blocks[l].columns)), percent));
      for (const auto& array : arrays) of_lists.emplace_back(array.data(), array.size());
      const auto pruned = prune(space, whole[m], of_lists);
      EXPECT_EQ(needed.minibatches[m].number, pruned.number);
      expect_same(comparable(space, needed.minibatches[m]), comparable(space, pruned));
      if (percent == 100) EXPECT_EQ(needed.minibatches[m].inputs().size(), 0u) << "seeds may hit too";
      if (percent == 30 && !mine.batches[m].seeds().empty())
        EXPECT_LT(pruned.after.entries, pruned.before.entries) << "something has left";
    }
    if (percent == 0)
      EXPECT_EQ(needed.digest, sample_digests(space, std::span<const MinibatchOn<Space>>(whole)));
  }
}

}  // namespace espalier
