// The draws of ladies.cpp for the batches of a group. Over their stacked supports stand
//
//     columns, weights   where the sum of the frontier's rows is positive
//     prefix             [support of all + 1] sums of weights over the whole group, wrapping: a
//                        batch's own are differences
//     nodes              a WeightTree for every list that draws (a batch, or a relation of one);
//                        one thread of a warp draws for a list
//     factors            0 where a column is not picked, else its factor, which is always positive
//
// and the columns with a factor are the picks, ascending.
#include "ladies.inl.hpp"

#include "espalier/base/device_algorithms.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/base/write_alike.hpp"
#include "espalier/sample/draw.hpp"
#include "samplers.inl.hpp"

namespace espalier {

namespace {

// The supports of a group of batches, as kernels see them: one of each batch, or of its relations.
struct Supports {
  const std::int64_t* offsets;  // [count + 1]
  std::int64_t count, of_batch;
  std::int64_t of_all;               // the fanout,
  const std::int64_t* of_relations;  // or [of_batch]
  const std::uint64_t* prefix;       // [offsets[count] + 1]

  __device__ std::int64_t size(std::int64_t list) const { return offsets[list + 1] - offsets[list]; }
  __device__ std::int64_t list_of(std::int64_t k) const { return segment_of(offsets, count, k); }
  __device__ std::int64_t fanout(std::int64_t list) const {
    return of_relations == nullptr ? of_all : of_relations[list % of_batch];
  }
  __device__ std::uint64_t weight(std::int64_t k) const { return prefix[k + 1] - prefix[k]; }
  // Of all weights of a list.
  __device__ std::uint64_t total(std::int64_t list) const {
    return prefix[offsets[list + 1]] - prefix[offsets[list]];
  }
  // Without drawing?
  __device__ bool takes_all(std::int64_t list) const {
    return fanout(list) < 0 || size(list) <= fanout(list);
  }
};

// Where the columns of each batch and relation begin; [batches x relations + 1].
template <class Index>
DeviceArray<std::int64_t> cut_by_relation(const Cuda& cuda, const ColumnsOf& columns,
                                          const Sums<Index, Cuda>& sums) {
  const auto batches = sums.lists();
  const std::int64_t relations = columns.relations;
  DeviceArray<std::int64_t> cuts(batches * relations + 1);
  auto* const to = cuts.data();
  const auto* const offsets = sums.offsets.data();
  const auto* const ids = sums.columns.data();
  for_each(cuda, "ladies_cut", batches * relations + 1, [=] __device__(std::int64_t list) {
    const auto batch = list / relations;
    if (batch == batches) {
      to[list] = offsets[batches];
      return;
    }
    const auto* const begin = ids + offsets[batch];
    to[list] = offsets[batch] + count_below(begin, offsets[batch + 1] - offsets[batch],
                                            static_cast<Index>(columns.begins[list % relations]));
  });
  return cuts;
}

// sums: in, the columns' sums; out, their weights. overflow[b] becomes 1 where one does not fit.
void weigh(const Cuda& cuda, SamplerMode mode, Supports supports, std::uint64_t* sums, std::int64_t count,
           std::int32_t* overflow) {
  for_each(cuda, "ladies_weigh", count, [=] __device__(std::int64_t k) {
    bool too_large = false;
    sums[k] = ladies_weight(sums[k], mode, &too_large);
    if (too_large) write_alike(overflow + supports.list_of(k), 1);
  });
}

// For every column: does the sum of weights wrap there? The factor, or 0 and the tree's node.
void prepare(const Cuda& cuda, SamplerMode mode, Supports supports, std::int64_t count, std::uint64_t* nodes,
             double* factors, std::int32_t* overflow) {
  for_each(cuda, "ladies_prepare", count, [=] __device__(std::int64_t k) {
    const auto list = supports.list_of(k), begin = supports.offsets[list];
    const auto weight = supports.weight(k);
    // Sums up to k that do not wrap are exact, so the first that does is less than what was added.
    if (supports.prefix[k + 1] - supports.prefix[begin] < weight) write_alike(overflow + list, 1);
    const bool whole = supports.takes_all(list);
    if (!whole) nodes[k] = WeightTree::node(supports.prefix + begin, k - begin + 1);
    factors[k] = !whole                            ? 0.0
                 : mode == SamplerMode::kReference ? inverse_probability(supports.total(list), weight)
                                                   : 1.0;
  });
}

// A warp for each list, of which one thread draws: what a draw finds depends on all before it.
__global__ void __launch_bounds__(kWarp)
    ladies_draw(SamplerMode mode, Supports supports, RandomStream stream, const std::int64_t* numbers,
                const std::int32_t* overflow, std::uint64_t* nodes, double* factors) {
  const auto list = static_cast<std::int64_t>(blockIdx.x);
  if (threadIdx.x > 0 || supports.takes_all(list) || overflow[list] != 0) return;
  stream.batch = static_cast<std::uint64_t>(numbers[list / supports.of_batch]);
  stream.relation = static_cast<std::uint64_t>(list % supports.of_batch);
  RandomWords words(stream);
  const auto begin = supports.offsets[list], fanout = supports.fanout(list);
  WeightTree tree(supports.prefix + begin, supports.size(list), nodes + begin);
  const auto total = tree.left();
  for (std::int64_t j = 1; j <= fanout; ++j) {
    const auto left = tree.left();
    const auto position = tree.draw(words.next_below(left));
    factors[begin + position] = mode == SamplerMode::kPaper
                                    ? 1.0
                                    : pick_factor(mode, total, left, tree.weight(position), j, fanout, 1.0);
  }
}

// The batches' own vertices join the picks, of one list each. A block for each batch.
template <class Index>
__global__ void __launch_bounds__(kBlockThreads)
    ladies_add_seeds(Supports supports, const Index* columns, const std::int64_t* vertices,
                     const std::int64_t* frontier_offsets, const std::int64_t* seeds, double* factors) {
  const auto batch = static_cast<std::int64_t>(blockIdx.x);
  const auto* const begin = columns + supports.offsets[batch];
  const auto size = supports.size(batch), count = seeds[batch];
  for (std::int64_t s = threadIdx.x; s < count; s += kBlockThreads) {
    const auto seed = static_cast<Index>(vertices[frontier_offsets[batch] + s]);
    const auto found = count_below(begin, size, seed);
    if (found == size || begin[found] != seed) continue;
    const auto k = supports.offsets[batch] + found;
    factors[k] = inverse_probability(supports.total(batch), supports.weight(k));
  }
}

void flag_picks(const Cuda& cuda, const double* factors, std::int64_t count, std::int64_t* picked) {
  for_each(cuda, "ladies_flag", count, [=] __device__(std::int64_t k) { picked[k] = factors[k] > 0; });
}

// status: [batches] where the picks of a batch end, or -1 where its weights did not fit.
void report(const Cuda& cuda, const std::int64_t* places, Supports supports, const std::int32_t* overflow,
            std::int64_t* status) {
  for_each(cuda, "ladies_report", supports.count / supports.of_batch, [=] __device__(std::int64_t batch) {
    const auto first = batch * supports.of_batch, end = first + supports.of_batch;
    status[batch] = places[supports.offsets[end]];
    for (auto list = first; list < end; ++list)
      if (overflow[list] != 0) status[batch] = -1;
  });
}

template <class Index>
void take_picks(const Cuda& cuda, const Index* columns, const double* factors, const std::int64_t* places,
                std::int64_t count, Index* picked, double* of_picked) {
  for_each(cuda, "ladies_take", count, [=] __device__(std::int64_t k) {
    if (!(factors[k] > 0)) return;
    picked[places[k]] = columns[k];
    of_picked[places[k]] = factors[k];
  });
}

// The columns with a factor.
template <class Index>
GroupPicks<Index, Cuda> take(const Cuda& cuda, const Sums<Index, Cuda>& sums, Supports supports,
                             const DeviceArray<double>& factors, const DeviceArray<std::int32_t>& overflow) {
  const auto count = sums.offsets.back();
  DeviceArray<std::int64_t> picked(count), places(count + 1), status(sums.lists());
  flag_picks(cuda, factors.data(), count, picked.data());
  exclusive_sum(cuda, picked.data(), places.data(), count);
  report(cuda, places.data(), supports, overflow.data(), status.data());
  GroupPicks<Index, Cuda> picks;
  std::int64_t end = 0;
  for (const auto end_of_batch : download(cuda, status)) {
    const auto batch = std::ssize(picks.counts);
    check_ladies_weights(end_of_batch < 0, sums.offsets[batch + 1] - sums.offsets[batch]);
    picks.counts.push_back(end_of_batch - std::exchange(end, end_of_batch));
  }
  picks.columns.resize(end);
  picks.factors.resize(end);
  take_picks(cuda, sums.columns.data(), factors.data(), places.data(), count, picks.columns.data(),
             picks.factors.data());
  return picks;
}

}  // namespace

template <class Index>
GroupPicks<Index, Cuda> draw_from_sums(const Cuda& cuda, SamplerMode mode, const LayerInputOn<Cuda>& input,
                                       std::int64_t first, Sums<Index, Cuda>& sums) {
  const auto batches = sums.lists(), count = sums.offsets.back(), lists = batches * input.fanout.lists();
  DeviceArray<std::int64_t> cuts;
  if (lists > batches) cuts = cut_by_relation(cuda, input.fanout.columns, sums);
  DeviceArray<std::uint64_t> prefix(count + 1), nodes(count);
  const Supports supports = {lists > batches ? cuts.data() : sums.offsets.data(),
                             lists,
                             input.fanout.lists(),
                             input.fanout.of_all,
                             input.fanout.of_relations.data(),
                             prefix.data()};
  DeviceArray<std::int32_t> overflow(lists);
  fill_zero(cuda, overflow);
  weigh(cuda, mode, supports, sums.sums.data(), count, overflow.data());
  exclusive_sum(cuda, sums.sums.data(), prefix.data(), count);
  DeviceArray<double> factors(count);
  prepare(cuda, mode, supports, count, nodes.data(), factors.data(), overflow.data());
  launch(cuda, "ladies_draw", ladies_draw, dim3(static_cast<unsigned>(lists)), dim3(kWarp), mode, supports,
         input.stream, input.frontier.numbers.data() + first, overflow.data(), nodes.data(), factors.data());
  if (mode == SamplerMode::kReference)
    launch(cuda, "ladies_add_seeds", ladies_add_seeds<Index>, dim3(static_cast<unsigned>(batches)),
           dim3(kBlockThreads), supports, sums.columns.data(), input.frontier.vertices.data(),
           input.frontier.offsets.data() + first, input.seeds.data() + first, factors.data());
  return take(cuda, sums, supports, factors, overflow);
}

template <class Index>
std::unique_ptr<SamplerOn<Cuda>> make_ladies(const Cuda&, const DistCsr<Index, Cuda>& m,
                                             const SamplerShape& shape) {
  return make_layer_wise<Index, Cuda>("ladies", m, shape,
                                      std::make_unique<LadiesDistribution<Index, Cuda>>(m, shape.mode));
}

ESPALIER_INSTANTIATE_SAMPLER(ladies, Cuda)

}  // namespace espalier
