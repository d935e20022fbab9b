// LADIES on a GPU (ladies.cpp says what is drawn). Batches go in groups whose dense sums fit a budget. Over the supports
// of a group, one under the other, stand
//
//     columns, weights   where the sum of the frontier's rows is positive
//     prefix             [support of all + 1] sums of weights over the whole group, wrapping: a batch's own are differences
//     nodes              a WeightTree for every batch that draws; one thread of a warp draws for a batch
//     factors            0 where a column is not picked, else its factor, which is always positive
//
// and the columns with a factor are the picks, ascending.
#include "device_layer_wise.hpp"
#include "espalier/base/device_algorithms.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/sample/draw.hpp"
#include "espalier/sample/ladies.hpp"
#include "espalier/base/search.hpp"
#include "espalier/sparse/sum_rows.hpp"

namespace espalier {

namespace {

// The supports of a group of batches, as kernels see them.
struct Supports {
  const std::int64_t* offsets;  // [batches + 1]
  std::int64_t batches;
  const std::uint64_t* prefix;  // [offsets[batches] + 1]

  __device__ std::int64_t size(std::int64_t batch) const { return offsets[batch + 1] - offsets[batch]; }
  __device__ std::int64_t batch_of(std::int64_t k) const { return segment_of(offsets, batches, k); }
  __device__ std::uint64_t weight(std::int64_t k) const { return prefix[k + 1] - prefix[k]; }
  // Of all weights of a batch.
  __device__ std::uint64_t total(std::int64_t batch) const {
    return prefix[offsets[batch + 1]] - prefix[offsets[batch]];
  }
  // Without drawing?
  __device__ bool takes_all(std::int64_t batch, std::int64_t fanout) const {
    return fanout < 0 || size(batch) <= fanout;
  }
};

// sums: in, the columns' sums; out, their weights. overflow[b] (0 before) becomes 1 where one does not fit.
void weigh(const Cuda& cuda, SamplerMode mode, const std::int64_t* offsets, std::int64_t batches,
           std::uint64_t* sums, std::int64_t count, std::int32_t* overflow) {
  for_each(cuda, "ladies_weigh", count, [=] __device__(std::int64_t k) {
    bool too_large = false;
    sums[k] = ladies_weight(sums[k], mode, &too_large);
    if (too_large) overflow[segment_of(offsets, batches, k)] = 1;
  });
}

// For every column: does the sum of its batch's weights wrap there? Of batches that are taken whole the factor, of
// others 0 and the node of the tree.
void prepare(const Cuda& cuda, SamplerMode mode, Supports supports, std::int64_t count, std::int64_t fanout,
             std::uint64_t* nodes, double* factors, std::int32_t* overflow) {
  for_each(cuda, "ladies_prepare", count, [=] __device__(std::int64_t k) {
    const auto batch = supports.batch_of(k), begin = supports.offsets[batch];
    const auto weight = supports.weight(k);
    // Sums up to k that do not wrap are exact, so the first that does is less than what was added.
    if (supports.prefix[k + 1] - supports.prefix[begin] < weight) overflow[batch] = 1;
    const bool whole = supports.takes_all(batch, fanout);
    if (!whole) nodes[k] = WeightTree::node(supports.prefix + begin, k - begin + 1);
    factors[k] = !whole                            ? 0.0
                 : mode == SamplerMode::kReference ? inverse_probability(supports.total(batch), weight)
                                                   : 1.0;
  });
}

// A warp for each batch, of which one thread draws: what a draw finds depends on all before it.
__global__ void __launch_bounds__(kWarp)
    ladies_draw(SamplerMode mode, Supports supports, RandomStream stream, const std::int64_t* numbers,
                std::int64_t fanout, const std::int32_t* overflow, std::uint64_t* nodes, double* factors) {
  const auto batch = static_cast<std::int64_t>(blockIdx.x);
  if (threadIdx.x > 0 || supports.takes_all(batch, fanout) || overflow[batch] != 0) return;
  stream.batch = static_cast<std::uint64_t>(numbers[batch]);
  RandomWords words(stream);
  const auto begin = supports.offsets[batch];
  WeightTree tree(supports.prefix + begin, supports.size(batch), nodes + begin);
  const auto total = tree.left();
  for (std::int64_t j = 1; j <= fanout; ++j) {
    const auto left = tree.left();
    const auto position = tree.draw(words.next());
    factors[begin + position] = mode == SamplerMode::kPaper
                                    ? 1.0
                                    : pick_factor(mode, total, left, tree.weight(position), j, fanout, 1.0);
  }
}

// The batches' own vertices join the picks. A warp's worth of threads for each batch.
template <class Index>
__global__ void __launch_bounds__(kBlockThreads)
    ladies_add_seeds(Supports supports, const Index* columns, const std::int64_t* vertices,
                     const std::int64_t* frontier_offsets, const std::int64_t* seeds, double* factors) {
  const auto batch = static_cast<std::int64_t>(blockIdx.x);
  const auto* const begin = columns + supports.offsets[batch];
  const auto size = supports.size(batch), count = seeds[batch];
  for (std::int64_t s = threadIdx.x; s < count; s += kBlockThreads) {
    const auto seed = static_cast<Index>(vertices[frontier_offsets[batch] + s]);
    const auto* const found = std::lower_bound(begin, begin + size, seed);
    if (found == begin + size || *found != seed) continue;
    const auto k = supports.offsets[batch] + (found - begin);
    factors[k] = inverse_probability(supports.total(batch), supports.weight(k));
  }
}

void flag_picks(const Cuda& cuda, const double* factors, std::int64_t count, std::int64_t* picked) {
  for_each(cuda, "ladies_flag", count, [=] __device__(std::int64_t k) { picked[k] = factors[k] > 0; });
}

// status: [batches] where the picks of a batch end, or -1 where its weights did not fit.
void report(const Cuda& cuda, const std::int64_t* places, const std::int64_t* offsets, std::int64_t batches,
            const std::int32_t* overflow, std::int64_t* status) {
  for_each(cuda, "ladies_report", batches, [=] __device__(std::int64_t batch) {
    status[batch] = overflow[batch] != 0 ? -1 : places[offsets[batch + 1]];
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

// What one group of batches picked.
template <class Index>
struct GroupPicks {
  DeviceArray<Index> columns;
  DeviceArray<double> factors;
};

template <class Index>
class DeviceLadies final : public DeviceLayerDistribution<Index> {
 public:
  DeviceLadies(const DeviceDistCsr<Index>& m, SamplerMode mode, std::int64_t budget)
      : m_(m), mode_(mode), weight_(ladies_entry_weight(*m.host, mode)), budget_(budget) {}

  void begin(const Cuda& cuda, std::span<const RandomStream>, std::span<const std::int64_t>) override {
    const auto bytes_per_batch = 8 * std::max<std::int64_t>(m_.host->rows(), 1);
    const auto budget = budget_ > 0 ? budget_ : cuda.free_memory() / kShareOfFree;
    batches_at_once_ = std::max<std::int64_t>(budget / bytes_per_batch, 1);
  }

  DeviceLayerPicks<Index> pick(const Cuda& cuda, const LayerInput& input) override {
    DeviceLayerPicks<Index> picks;
    std::vector<GroupPicks<Index>> groups;
    const auto batches = input.frontier.batches();
    for (std::int64_t first = 0; first < batches; first += batches_at_once_)
      groups.push_back(
          pick_of_group(cuda, input, first, std::min(first + batches_at_once_, batches), picks.offsets));
    upload(cuda, std::span<const std::int64_t>(picks.offsets), picks.device_offsets);
    join(cuda, std::move(groups), picks);
    return picks;
  }

  bool normalizes_rows() const override { return mode_ == SamplerMode::kReference; }
  bool uses_sums() const override { return true; }

 private:
  // A batch needs 8 bytes of dense sums per vertex, and at most 56 for each column of its support.
  static constexpr std::int64_t kShareOfFree = 8;

  // The picks of the batches first .. last - 1, whose ends are appended to `offsets`.
  GroupPicks<Index> pick_of_group(const Cuda& cuda, const LayerInput& input, std::int64_t first,
                                  std::int64_t last, std::vector<std::int64_t>& offsets) const {
    DeviceSums<Index> sums;
    sum_rows(cuda, m_.local, input.pieces, first, last, weight_, sums);
    const auto batches = last - first, count = sums.offsets.back();
    const auto* const support_offsets = sums.device_offsets.data();
    DeviceArray<std::int32_t> overflow(static_cast<std::size_t>(batches));
    fill_zero(cuda, overflow);
    weigh(cuda, mode_, support_offsets, batches, sums.sums.data(), count, overflow.data());
    DeviceArray<std::uint64_t> prefix(static_cast<std::size_t>(count) + 1),
        nodes(static_cast<std::size_t>(count));
    exclusive_sum(cuda, sums.sums.data(), prefix.data(), count);
    const Supports supports = {support_offsets, batches, prefix.data()};
    DeviceArray<double> factors(nodes.size());
    prepare(cuda, mode_, supports, count, input.fanout, nodes.data(), factors.data(), overflow.data());
    launch(cuda, "ladies_draw", ladies_draw, dim3(static_cast<unsigned>(batches)), dim3(kWarp), mode_,
           supports, input.stream, input.numbers + first, input.fanout, overflow.data(), nodes.data(),
           factors.data());
    if (mode_ == SamplerMode::kReference)
      launch(cuda, "ladies_add_seeds", ladies_add_seeds<Index>, dim3(static_cast<unsigned>(batches)),
             dim3(kBlockThreads), supports, sums.columns.data(), input.frontier.vertices.data(),
             input.frontier.device_offsets.data() + first, input.seeds + first, factors.data());
    return take(cuda, sums, factors, overflow, offsets);
  }

  // The columns with a factor.
  GroupPicks<Index> take(const Cuda& cuda, const DeviceSums<Index>& sums, const DeviceArray<double>& factors,
                         const DeviceArray<std::int32_t>& overflow,
                         std::vector<std::int64_t>& offsets) const {
    const auto count = sums.offsets.back();
    DeviceArray<std::int64_t> picked(factors.size()), places(factors.size() + 1), status(overflow.size());
    flag_picks(cuda, factors.data(), count, picked.data());
    exclusive_sum(cuda, picked.data(), places.data(), count);
    report(cuda, places.data(), sums.device_offsets.data(), sums.lists(), overflow.data(), status.data());
    const auto before = offsets.back();
    const auto ends = download(cuda, status);
    for (std::size_t b = 0; b < ends.size(); ++b) {
      check_ladies_weights(ends[b] < 0, sums.offsets[b + 1] - sums.offsets[b]);
      offsets.push_back(before + ends[b]);
    }
    GroupPicks<Index> picks;
    picks.columns.resize(static_cast<std::size_t>(offsets.back() - before));
    picks.factors.resize(picks.columns.size());
    take_picks(cuda, sums.columns.data(), factors.data(), places.data(), count, picks.columns.data(),
               picks.factors.data());
    return picks;
  }

  static void join(const Cuda& cuda, std::vector<GroupPicks<Index>> groups, DeviceLayerPicks<Index>& picks) {
    if (groups.size() == 1) {
      picks.columns = std::move(groups[0].columns);
      picks.factors = std::move(groups[0].factors);
      return;
    }
    picks.columns.resize(static_cast<std::size_t>(picks.offsets.back()));
    picks.factors.resize(picks.columns.size());
    std::size_t at = 0;
    for (const auto& group : groups) {
      const auto size = group.columns.size();
      copy_bytes_on_device(cuda, group.columns.data(), picks.columns.data() + at, size * sizeof(Index));
      copy_bytes_on_device(cuda, group.factors.data(), picks.factors.data() + at, size * sizeof(double));
      at += size;
    }
  }

  const DeviceDistCsr<Index>& m_;
  SamplerMode mode_;
  EntryWeight weight_;
  std::int64_t budget_, batches_at_once_ = 1;
};

}  // namespace

template <class Index>
std::unique_ptr<DeviceSampler> make_ladies(const Cuda&, const DeviceDistCsr<Index>& m,
                                           const SamplerShape& shape, std::int64_t budget) {
  return make_layer_wise<Index>(m, shape, std::make_unique<DeviceLadies<Index>>(m, shape.mode, budget));
}

#define ESPALIER_INSTANTIATE(Index)                                                             \
  template std::unique_ptr<DeviceSampler> make_ladies(const Cuda&, const DeviceDistCsr<Index>&, \
                                                      const SamplerShape&, std::int64_t);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
