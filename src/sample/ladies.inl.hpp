// LADIES for every space: ladies.cpp says what is drawn; it and ladies.cu draw, from the sums of
// some batches at a time.
#pragma once

#include "espalier/base/arrays.hpp"
#include "espalier/sample/ladies.hpp"
#include "layer_wise.hpp"

namespace espalier {

/// The picks of consecutive batches.
template <class Index, class Space>
struct GroupPicks {
  std::vector<std::int64_t> counts;  ///< of each batch
  Array<Space, Index> columns;       ///< ascending within a batch
  Array<Space, double> factors;
};

/// The picks of the batches from `first` on, whose sums are given and may be changed.
template <class Index>
GroupPicks<Index, Cpu> draw_from_sums(const Cpu& cpu, SamplerMode mode, const LayerInputOn<Cpu>& input,
                                      std::int64_t first, SparseSum<Index>& sum);
template <class Index>
GroupPicks<Index, Cuda> draw_from_sums(const Cuda& cuda, SamplerMode mode, const LayerInputOn<Cuda>& input,
                                       std::int64_t first, Sums<Index, Cuda>& sums);

template <class Index, class Space>
class LadiesDistribution final : public LayerDistribution<Index, Space> {
 public:
  LadiesDistribution(const DistCsr<Index, Space>& m, SamplerMode mode)
      : mode_(mode), weight_(ladies_entry_weight(m.on_host(), mode)) {}

  void begin(const Space&, std::span<const RandomStream>) override {}

  LayerPicks<Index, Space> pick(const Space& space, Product<Index, Space>& product,
                                const LayerInputOn<Space>& input) override {
    std::vector<GroupPicks<Index, Space>> groups(input.frontier.batches());  // by their first batch
    product.sum(space, weight_, [&](std::int64_t first, SumOn<Index, Space>& sums) {
      groups[first] = draw_from_sums(space, mode_, input, first, sums);
    });
    std::vector<std::int64_t> offsets = {0};
    std::vector<Array<Space, Index>> columns;
    std::vector<Array<Space, double>> factors;
    for (auto& group : groups) {
      for (const auto count : group.counts) offsets.push_back(offsets.back() + count);
      if (group.counts.empty()) continue;
      columns.push_back(std::move(group.columns));
      factors.push_back(std::move(group.factors));
    }
    return {{space, std::move(offsets)}, join(space, std::move(columns)), join(space, std::move(factors))};
  }

  bool normalizes_rows() const override { return mode_ == SamplerMode::kReference; }
  bool uses_sums() const override { return true; }

 private:
  SamplerMode mode_;
  EntryWeight weight_;
};

}  // namespace espalier
